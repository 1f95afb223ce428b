package sqs

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"

	"github.com/joist-autoscaler/joist/integration/fakeaws/awsjson"
)

// task is a message-move task. The model's tasks end at once.
type task struct {
	TaskHandle                       string
	Status                           string
	SourceArn                        string
	DestinationArn                   string `json:",omitempty"`
	ApproximateNumberOfMessagesMoved int
	StartedTimestamp                 int64
}

func (s *Service) startMove(_ *http.Request, in struct{ SourceArn, DestinationArn string }) (any, error) {
	from := nameOf(in.SourceArn)
	if !s.isDeadLetterQueue(from) {
		return nil, &awsjson.Error{Shape: "ResourceNotFoundException", Code: "ResourceNotFoundException",
			Message: "The source queue is not the dead-letter queue of any queue.", Status: http.StatusNotFound}
	}
	to := ""
	if in.DestinationArn != "" {
		to = nameOf(in.DestinationArn)
	}
	moved, err := s.broker.Move(from, to)
	if err != nil {
		return nil, &awsjson.Error{Shape: "ResourceNotFoundException", Code: "ResourceNotFoundException", Message: err.Error(), Status: http.StatusNotFound}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	handle := base64.StdEncoding.EncodeToString([]byte(in.SourceArn + "#" + strconv.Itoa(len(s.tasks))))
	s.tasks = append(s.tasks, task{
		TaskHandle: handle, Status: "COMPLETED", SourceArn: in.SourceArn, DestinationArn: in.DestinationArn,
		ApproximateNumberOfMessagesMoved: moved, StartedTimestamp: s.broker.Now().UnixMilli(),
	})
	return map[string]string{"TaskHandle": handle}, nil
}

func (s *Service) isDeadLetterQueue(name string) bool {
	return slices.ContainsFunc(s.broker.Queues(), func(source string) bool {
		q, _ := s.broker.Lookup(source)
		return q.Options().DeadLetter == name
	})
}

// listMoves gives the latest tasks of a queue first. SQS keeps the handle of a
// task that has ended to itself.
func (s *Service) listMoves(_ *http.Request, in struct{ SourceArn string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := []task{}
	for _, t := range slices.Backward(s.tasks) {
		if t.SourceArn == in.SourceArn {
			t.TaskHandle = ""
			results = append(results, t)
		}
	}
	return map[string][]task{"Results": results}, nil
}
