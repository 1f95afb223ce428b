package sqs

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

func (s *Service) getQueueURL(r *http.Request, in struct{ QueueName string }) (any, error) {
	if _, ok := s.broker.FindQueue(in.QueueName); !ok {
		return nil, noQueue(in.QueueName)
	}
	return map[string]string{"QueueUrl": urlFor(r, in.QueueName)}, nil
}

func (s *Service) createQueue(r *http.Request, in struct {
	QueueName  string
	Attributes map[string]string
}) (any, error) {
	if err := s.configure(in.QueueName, memqueue.QueueOptions{Visibility: seconds(30)}, in.Attributes); err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": urlFor(r, in.QueueName)}, nil
}

func (s *Service) setQueueAttributes(_ *http.Request, in struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes map[string]string
}) (any, error) {
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return nil, s.configure(q.Name(), q.Options(), in.Attributes)
}

// redrive is the attribute RedrivePolicy. maxReceiveCount may be a number or a string.
type redrive struct {
	DeadLetterTargetArn string      `json:"deadLetterTargetArn"`
	MaxReceiveCount     json.Number `json:"maxReceiveCount"`
}

// configure sets attributes in o; it stores attributes that the model does not support
// unchanged.
func (s *Service) configure(name string, o memqueue.QueueOptions, attributes map[string]string) error {
	for attribute, value := range attributes {
		n, err := strconv.Atoi(value)
		switch attribute {
		case "VisibilityTimeout":
			o.Visibility = seconds(n)
		case "MessageRetentionPeriod":
			o.Retention = seconds(n)
		case "DelaySeconds":
			o.Delay = seconds(n)
		case "RedrivePolicy":
			o.MaxReceives, o.DeadLetter, err = parseRedrive(value)
		default:
			err = nil
		}
		if err != nil {
			return badValue("Invalid value for the parameter %s: %v", attribute, err)
		}
	}
	s.broker.Queue(name, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attributes[name] == nil {
		s.attributes[name] = map[string]string{}
	}
	maps.Copy(s.attributes[name], attributes)
	return nil
}

func parseRedrive(text string) (maxReceives int, deadLetter string, err error) {
	if text == "" {
		return 0, "", nil
	}
	var policy redrive
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return 0, "", err
	}
	maxReceives, err = strconv.Atoi(policy.MaxReceiveCount.String())
	return maxReceives, nameOf(policy.DeadLetterTargetArn), err
}

func (s *Service) getQueueAttributes(_ *http.Request, in struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}) (any, error) {
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	all := s.describe(q)
	if !slices.Contains(in.AttributeNames, "All") {
		maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(in.AttributeNames, name) })
	}
	return map[string]any{"Attributes": all}, nil
}

// describe returns a queue's attributes in SQS's format.
func (s *Service) describe(q *memqueue.Queue) map[string]string {
	s.mu.Lock()
	all := maps.Clone(s.attributes[q.Name()])
	s.mu.Unlock()
	if all == nil {
		all = map[string]string{}
	}
	o, stats := q.Options(), q.Stats()
	maps.Copy(all, map[string]string{
		"QueueArn":                              ARN(q.Name()),
		"ApproximateNumberOfMessages":           strconv.Itoa(stats.Visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(stats.Hidden),
		"ApproximateNumberOfMessagesDelayed":    "0",
		"VisibilityTimeout":                     strconv.Itoa(int(o.Visibility.Seconds())),
		"MessageRetentionPeriod":                strconv.Itoa(int(o.Retention.Seconds())),
		"DelaySeconds":                          strconv.Itoa(int(o.Delay.Seconds())),
	})
	if o.DeadLetter != "" {
		policy, _ := json.Marshal(redrive{ARN(o.DeadLetter), json.Number(strconv.Itoa(o.MaxReceives))})
		all["RedrivePolicy"] = string(policy)
	}
	return all
}

func (s *Service) listQueues(r *http.Request, in struct{ QueueNamePrefix string }) (any, error) {
	urls := []string{}
	for _, name := range s.broker.Queues() {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			urls = append(urls, urlFor(r, name))
		}
	}
	return map[string][]string{"QueueUrls": urls}, nil
}

// listSources returns the queues whose DLQ is the given queue.
func (s *Service) listSources(r *http.Request, in struct {
	QueueURL string `json:"QueueUrl"`
}) (any, error) {
	dead, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	urls := []string{}
	for _, name := range s.broker.Queues() {
		if q, _ := s.broker.FindQueue(name); q.Options().DeadLetter == dead.Name() {
			urls = append(urls, urlFor(r, name))
		}
	}
	return map[string][]string{"queueUrls": urls}, nil
}

func (s *Service) purgeQueue(_ *http.Request, in struct {
	QueueURL string `json:"QueueUrl"`
}) (any, error) {
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	q.Purge()
	return nil, nil //nolint:nilnil // an answer without members
}
