package sqs

import (
	"encoding/base64"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
)

// The states of a task.
const (
	running   = "RUNNING"
	completed = "COMPLETED"
	cancelled = "CANCELLED"
	failed    = "FAILED"
)

// task is a message-move task. Without a rate it completes at once. With a rate it moves
// the messages that are due by the broker's clock whenever tasks are listed.
type task struct {
	TaskHandle                       string `json:",omitempty"`
	Status                           string
	SourceArn                        string
	DestinationArn                   string `json:",omitempty"`
	MaxNumberOfMessagesPerSecond     int    `json:",omitempty"`
	ApproximateNumberOfMessagesMoved int
	StartedTimestamp                 int64
	FailureReason                    string `json:",omitempty"`

	started time.Time
}

func notFound(message string) error {
	return &awsjson.Error{Shape: "ResourceNotFoundException", Code: "ResourceNotFoundException", Message: message, Status: http.StatusNotFound}
}

func (s *Service) startMove(_ *http.Request, in struct {
	SourceArn, DestinationArn    string
	MaxNumberOfMessagesPerSecond int
}) (any, error) {
	if !s.isDeadLetterQueue(nameOf(in.SourceArn)) {
		return nil, notFound("The source queue is not the dead-letter queue of any queue.")
	}
	if n := in.MaxNumberOfMessagesPerSecond; n < 0 || n > 500 {
		return nil, badValue("Value %d for parameter MaxNumberOfMessagesPerSecond is invalid.", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if s.advance(t); t.SourceArn == in.SourceArn && t.Status == running {
			return nil, &awsjson.Error{Shape: "UnsupportedOperation", Code: "AWS.SimpleQueueService.UnsupportedOperation",
				Message: "There is already a task running. Only one active task is allowed for a source queue arn at a given time."}
		}
	}
	now := s.broker.Now()
	t := &task{
		TaskHandle: base64.StdEncoding.EncodeToString([]byte(in.SourceArn + "#" + strconv.Itoa(len(s.tasks)))), Status: running,
		SourceArn: in.SourceArn, DestinationArn: in.DestinationArn, MaxNumberOfMessagesPerSecond: in.MaxNumberOfMessagesPerSecond,
		StartedTimestamp: now.UnixMilli(), started: now,
	}
	if s.advance(t); t.Status == failed {
		return nil, notFound(t.FailureReason)
	}
	s.tasks = append(s.tasks, t)
	return map[string]string{"TaskHandle": t.TaskHandle}, nil
}

// advance moves the messages that are due. The caller holds the lock.
func (s *Service) advance(t *task) {
	if t.Status != running {
		return
	}
	due, from := math.MaxInt, nameOf(t.SourceArn)
	if rate := t.MaxNumberOfMessagesPerSecond; rate > 0 {
		due = int(s.broker.Now().Sub(t.started).Seconds()*float64(rate)) - t.ApproximateNumberOfMessagesMoved
	}
	to := ""
	if t.DestinationArn != "" {
		to = nameOf(t.DestinationArn)
	}
	moved, err := s.broker.MoveUpTo(from, to, due)
	if t.ApproximateNumberOfMessagesMoved += moved; err != nil {
		t.Status, t.FailureReason = failed, err.Error()
		return
	}
	if q, ok := s.broker.FindQueue(from); due == math.MaxInt || ok && q.Stats().Visible == 0 {
		t.Status = completed
	}
}

func (s *Service) isDeadLetterQueue(name string) bool {
	return slices.ContainsFunc(s.broker.Queues(), func(source string) bool {
		q, _ := s.broker.FindQueue(source)
		return q.Options().DeadLetter == name
	})
}

// listMoves returns a queue's tasks, the latest first. As in SQS, a completed task has no
// handle.
func (s *Service) listMoves(_ *http.Request, in struct {
	SourceArn  string
	MaxResults int
}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := []task{}
	for _, t := range slices.Backward(s.tasks) {
		s.advance(t)
		if shown := *t; t.SourceArn == in.SourceArn && len(results) < max(1, in.MaxResults) {
			if shown.Status != running {
				shown.TaskHandle = ""
			}
			results = append(results, shown)
		}
	}
	return map[string][]task{"Results": results}, nil
}

func (s *Service) cancelMove(_ *http.Request, in struct{ TaskHandle string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.tasks, func(t *task) bool { return t.TaskHandle == in.TaskHandle })
	if at < 0 {
		return nil, notFound("There is no such task.")
	}
	t := s.tasks[at]
	if s.advance(t); t.Status != running {
		return nil, notFound("The task is " + t.Status + ".")
	}
	t.Status = cancelled
	return map[string]int{"ApproximateNumberOfMessagesMoved": t.ApproximateNumberOfMessagesMoved}, nil
}
