// Package sqs implements SQS's JSON protocol on memqueue.
//
// A queue's URL is the server's own address with account and name, so it works for
// clients with their own endpoint and for clients that follow the URL. Long polls wait on
// the real clock, also if the model has another one.
package sqs

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Account and Region are part of every ARN.
const (
	Account = "123456789012"
	Region  = "eu-west-1"
)

// Service is the API.
type Service struct {
	awsjson.API
	broker *memqueue.Broker

	mu sync.Mutex
	// attributes are the attributes that the model does not support, such as a policy.
	attributes map[string]map[string]string
	tasks      []*task
}

// New returns a service for the broker's queues.
func New(broker *memqueue.Broker) *Service {
	s := &Service{broker: broker, attributes: map[string]map[string]string{}}
	s.API = awsjson.API{Target: "AmazonSQS", Version: "1.0", Operations: map[string]awsjson.Operation{
		"SendMessage":                  awsjson.Op(s.sendMessage),
		"SendMessageBatch":             awsjson.Op(s.sendMessageBatch),
		"ReceiveMessage":               awsjson.Op(s.receiveMessage),
		"DeleteMessage":                awsjson.Op(s.deleteMessage),
		"DeleteMessageBatch":           awsjson.Op(s.deleteMessageBatch),
		"ChangeMessageVisibility":      awsjson.Op(s.changeVisibility),
		"ChangeMessageVisibilityBatch": awsjson.Op(s.changeVisibilityBatch),
		"GetQueueUrl":                  awsjson.Op(s.getQueueURL),
		"GetQueueAttributes":           awsjson.Op(s.getQueueAttributes),
		"SetQueueAttributes":           awsjson.Op(s.setQueueAttributes),
		"CreateQueue":                  awsjson.Op(s.createQueue),
		"ListQueues":                   awsjson.Op(s.listQueues),
		"ListDeadLetterSourceQueues":   awsjson.Op(s.listSources),
		"StartMessageMoveTask":         awsjson.Op(s.startMove),
		"ListMessageMoveTasks":         awsjson.Op(s.listMoves),
		"CancelMessageMoveTask":        awsjson.Op(s.cancelMove),
		"PurgeQueue":                   awsjson.Op(s.purgeQueue),
	}}
	return s
}

// ARN returns a queue's ARN.
func ARN(name string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + name }

// nameOf returns the queue's name in an ARN.
func nameOf(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }

// URL returns a queue's URL on a server.
func URL(server, name string) string { return server + "/" + Account + "/" + name }

func urlFor(r *http.Request, name string) string { return URL("http://"+r.Host, name) }

// queue returns a queue by its URL.
func (s *Service) queue(url string) (*memqueue.Queue, error) {
	q, ok := s.broker.FindQueue(path.Base(url))
	if !ok {
		return nil, noQueue(path.Base(url))
	}
	return q, nil
}

func noQueue(name string) error {
	return &awsjson.Error{
		Shape: "QueueDoesNotExist", Code: "AWS.SimpleQueueService.NonExistentQueue",
		Message: fmt.Sprintf("The queue %s does not exist.", name),
	}
}

func badValue(format string, args ...any) error {
	return &awsjson.Error{Shape: "InvalidParameterValue", Code: "InvalidParameterValue", Message: fmt.Sprintf(format, args...)}
}

// checkBatch rejects invalid batches.
func checkBatch(ids []string) error {
	switch {
	case len(ids) == 0:
		return &awsjson.Error{Shape: "EmptyBatchRequest", Code: "AWS.SimpleQueueService.EmptyBatchRequest", Message: "no entries"}
	case len(ids) > 10:
		return &awsjson.Error{Shape: "TooManyEntriesInBatchRequest", Code: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
			Message: fmt.Sprintf("%d entries", len(ids))}
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			return &awsjson.Error{Shape: "BatchEntryIdsNotDistinct", Code: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", Message: id}
		}
		seen[id] = true
	}
	return nil
}

type failure struct {
	ID          string `json:"Id"`
	Code        string
	Message     string
	SenderFault bool
}

// failureOf returns the entry of a batch response for an error.
func failureOf(id string, err error) failure {
	if e, ok := errors.AsType[*awsjson.Error](err); ok {
		return failure{ID: id, Code: e.Shape, Message: e.Message, SenderFault: true}
	}
	return failure{ID: id, Code: "InternalError", Message: err.Error()}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
