package replay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// fakeTasks simulates an SQS whose latest task changes its state at each read.
type fakeTasks struct {
	states    []string
	lists     int
	started   *sqs.StartMessageMoveTaskInput
	cancelled bool
}

func (s *fakeTasks) StartMessageMoveTask(_ context.Context, in *sqs.StartMessageMoveTaskInput, _ ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error) {
	s.started = in
	return &sqs.StartMessageMoveTaskOutput{TaskHandle: aws.String("h")}, nil
}

func (s *fakeTasks) ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error) {
	if len(s.states) == 0 {
		return &sqs.ListMessageMoveTasksOutput{}, nil
	}
	state := s.states[min(s.lists, len(s.states)-1)]
	s.lists++
	return &sqs.ListMessageMoveTasksOutput{Results: []types.ListMessageMoveTasksResultEntry{{
		Status: &state, TaskHandle: aws.String("h"), ApproximateNumberOfMessagesMoved: int64(s.lists), FailureReason: aws.String("KMS"),
	}}}, nil
}

func (s *fakeTasks) CancelMessageMoveTask(context.Context, *sqs.CancelMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error) {
	s.cancelled = true
	return &sqs.CancelMessageMoveTaskOutput{}, nil
}

// TestMoveAll waits for the end of a task. The first read is of the task before.
func TestMoveAll(t *testing.T) {
	for _, test := range []struct {
		name   string
		states []string
		// stop is the number of the pause in which the context ends; 0 for none.
		stop                           int
		started, cancelled, interrupts bool
		moved                          int
		kind                           fault.Kind
	}{
		{"moves", []string{"COMPLETED", "RUNNING", "COMPLETED"}, 0, true, false, false, 3, ""},
		{"another task runs", []string{"RUNNING"}, 0, false, false, false, 0, fault.Conflict},
		{"fails", []string{"COMPLETED", "FAILED"}, 0, true, false, false, 2, fault.Retry},
		{"another client cancels", []string{"COMPLETED", "CANCELLING", "CANCELLED"}, 0, true, false, true, 3, ""},
		{"interrupted", []string{"COMPLETED", "RUNNING", "CANCELLING", "CANCELLED"}, 2, true, true, true, 4, ""},
		{"interrupted as it ends", []string{"COMPLETED", "RUNNING", "COMPLETED"}, 2, true, true, false, 3, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeTasks{states: test.states}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			pauses := 0
			m := replay.Mover{Tasks: s, From: "from", To: "to", Rate: 10_000, Report: func(int) {}, Pause: func(ctx context.Context, _ time.Duration) error {
				if pauses++; pauses == test.stop {
					stop()
				}
				return ctx.Err()
			}}
			out, err := m.MoveAll(ctx)
			if fault.KindOf(err) != test.kind || (s.started != nil) != test.started || s.cancelled != test.cancelled || out.Interrupted != test.interrupts || out.Replayed != test.moved {
				t.Fatalf("%+v, %v, started %v, cancelled %t", out, err, s.started, s.cancelled)
			}
			if test.kind != "" && fault.FindHint(err) == "" {
				t.Errorf("%v has no hint", err)
			}
			if test.started && (*s.started.SourceArn != "from" || *s.started.DestinationArn != "to" || *s.started.MaxNumberOfMessagesPerSecond != replay.RateMax) {
				t.Errorf("the request is %+v", s.started)
			}
		})
	}
	if _, err := (replay.Mover{Tasks: &fakeTasks{states: []string{"RUNNING"}}}).MoveAll(t.Context()); err == nil || !strings.Contains(err.Error(), "is already running") {
		t.Error(err)
	}
}
