package embedded

import (
	"context"
	"errors"
	"testing"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// A timeout of a service does not end a call, whether the host derived it from the activity's context or from none, but a
// cancellation does.
func TestIgnoreTimeouts(t *testing.T) {
	env, err := New(Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i"}})
	if err != nil {
		t.Fatal(err)
	}
	dead := tapper{actor: "planner-0"}.newSender(env, "planner-dead")
	ignoreTimeouts(func(ctx context.Context) {
		expired, cancel := context.WithTimeout(ctx, 0)
		defer cancel()
		if err := expired.Err(); err != nil {
			t.Errorf("a timeout of the activity's context: %v", err)
		}
		detached, cancelDetached := context.WithTimeout(context.WithoutCancel(ctx), 0)
		defer cancelDetached()
		if err := dead.Send(detached, queue.Outgoing{Type: "test", Body: []byte("{}")}); err != nil {
			t.Errorf("a message sent with a timeout of a detached context: %v", err)
		}
		cancel()
		if err := expired.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("after the cancellation of the activity's context: %v", err)
		}
	})(t.Context())
}
