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

// tasks is an SQS whose latest task goes through the given states, one at each look.
type tasks struct {
	states    []string
	looked    int
	started   *sqs.StartMessageMoveTaskInput
	cancelled bool
}

func (s *tasks) StartMessageMoveTask(_ context.Context, in *sqs.StartMessageMoveTaskInput, _ ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error) {
	s.started = in
	return &sqs.StartMessageMoveTaskOutput{TaskHandle: aws.String("h")}, nil
}

func (s *tasks) ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error) {
	if len(s.states) == 0 {
		return &sqs.ListMessageMoveTasksOutput{}, nil
	}
	state := s.states[min(s.looked, len(s.states)-1)]
	s.looked++
	return &sqs.ListMessageMoveTasksOutput{Results: []types.ListMessageMoveTasksResultEntry{{
		Status: &state, TaskHandle: aws.String("h"), ApproximateNumberOfMessagesMoved: int64(s.looked), FailureReason: aws.String("KMS"),
	}}}, nil
}

func (s *tasks) CancelMessageMoveTask(context.Context, *sqs.CancelMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error) {
	s.cancelled = true
	return &sqs.CancelMessageMoveTaskOutput{}, nil
}

// TestMove follows a task to its end, whatever that is. The first look is at the task
// before ours.
func TestMove(t *testing.T) {
	for _, test := range []struct {
		name   string
		states []string
		// stop is the pause at which somebody interrupts, if any.
		stop                           int
		started, cancelled, interrupts bool
		moved                          int
		kind                           fault.Kind
	}{
		{"moves", []string{"COMPLETED", "RUNNING", "COMPLETED"}, 0, true, false, false, 3, ""},
		{"another task runs", []string{"RUNNING"}, 0, false, false, false, 0, fault.Conflict},
		{"SQS gives up", []string{"COMPLETED", "FAILED"}, 0, true, false, false, 2, fault.Retry},
		{"somebody else cancels", []string{"COMPLETED", "CANCELLING", "CANCELLED"}, 0, true, false, true, 3, ""},
		{"interrupted", []string{"COMPLETED", "RUNNING", "CANCELLING", "CANCELLED"}, 2, true, true, true, 4, ""},
		{"interrupted as it ends", []string{"COMPLETED", "RUNNING", "COMPLETED"}, 2, true, true, false, 3, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &tasks{states: test.states}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			pauses := 0
			m := replay.Mover{Tasks: s, From: "from", To: "to", Rate: 10_000, Tell: func(int) {}, Pause: func(ctx context.Context, _ time.Duration) error {
				if pauses++; pauses == test.stop {
					stop()
				}
				return ctx.Err()
			}}
			out, err := m.Move(ctx)
			if fault.KindOf(err) != test.kind || (s.started != nil) != test.started || s.cancelled != test.cancelled || out.Interrupted != test.interrupts || out.Replayed != test.moved {
				t.Fatalf("%+v, %v, started %v, cancelled %t", out, err, s.started, s.cancelled)
			}
			if test.kind != "" && fault.HintOf(err) == "" {
				t.Errorf("%v says no remedy", err)
			}
			if test.started && (*s.started.SourceArn != "from" || *s.started.DestinationArn != "to" || *s.started.MaxNumberOfMessagesPerSecond != replay.RateMax) {
				t.Errorf("it asked for %+v", s.started)
			}
		})
	}
	if _, err := (replay.Mover{Tasks: &tasks{states: []string{"RUNNING"}}}).Move(t.Context()); err == nil || !strings.Contains(err.Error(), "is already running") {
		t.Error(err)
	}
}
