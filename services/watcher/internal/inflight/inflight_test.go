package inflight_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/inflight"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

func TestDecideInEachState(t *testing.T) {
	const never = -1 * time.Nanosecond
	for _, test := range []struct {
		name string
		view inflight.BatchState
		want inflight.Action
	}{
		{"idle, no pod is pending", inflight.BatchState{SinceBatch: never}, inflight.Wait},
		{"idle, a window is open", inflight.BatchState{SinceBatch: never, HasPending: true}, inflight.Wait},
		{"idle, a window is over", inflight.BatchState{SinceBatch: never, HasPending: true, WindowOver: true}, inflight.Build},
		{"a window is over, and all pods are deleted", inflight.BatchState{SinceBatch: never, WindowOver: true}, inflight.Wait},

		{"sent by a process that stopped", inflight.BatchState{Outbox: is(outbox.Sent), SinceSent: never}, inflight.SendAgain},
		{"just sent", inflight.BatchState{Outbox: is(outbox.Sent), SinceSent: 0}, inflight.Wait},
		{"sent a while ago", inflight.BatchState{Outbox: is(outbox.Sent), SinceSent: inflight.ResendInterval - 1}, inflight.Wait},
		{"sent ResendInterval ago", inflight.BatchState{Outbox: is(outbox.Sent), SinceSent: inflight.ResendInterval}, inflight.SendAgain},
		{"in flight, and a window is over", inflight.BatchState{Outbox: is(outbox.Sent), HasPending: true, WindowOver: true}, inflight.Wait},
		{"no plan, before the timeout", inflight.BatchState{Outbox: is(outbox.Sent), InState: inflight.SentTimeout - 1}, inflight.Wait},
		{"no plan, after the timeout", inflight.BatchState{Outbox: is(outbox.Sent), InState: inflight.SentTimeout}, inflight.GiveUp},

		{"no plan for a part, before the timeout", inflight.BatchState{Outbox: is(outbox.Sent), Bisecting: true, InState: inflight.PartSentTimeout - 1}, inflight.Wait},
		{"no plan for a part, after the timeout", inflight.BatchState{Outbox: is(outbox.Sent), Bisecting: true, InState: inflight.PartSentTimeout}, inflight.GiveUp},

		{"executing", inflight.BatchState{Outbox: is(outbox.Applying), SinceSent: never}, inflight.Wait},
		{"executing, sent long ago", inflight.BatchState{Outbox: is(outbox.Applying), SinceSent: time.Hour, HasPending: true, WindowOver: true}, inflight.Wait},
		{"executing, before the timeout", inflight.BatchState{Outbox: is(outbox.Applying), InState: inflight.ApplyingTimeout - 1}, inflight.Wait},
		{"executing, after the timeout", inflight.BatchState{Outbox: is(outbox.Applying), InState: inflight.ApplyingTimeout}, inflight.GiveUp},

		{"executing a part, before the timeout", inflight.BatchState{Outbox: is(outbox.Applying), Bisecting: true, InState: inflight.PartApplyingTimeout - 1}, inflight.Wait},
		{"executing a part, after the timeout", inflight.BatchState{Outbox: is(outbox.Applying), Bisecting: true, InState: inflight.PartApplyingTimeout}, inflight.GiveUp},

		{"done, not in the cache", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Stale, HasPending: true, WindowOver: true}, inflight.Wait},
		{"done, not in the cache, before the timeout", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Stale, HasPending: true, WindowOver: true, InState: inflight.CacheTimeout - 1}, inflight.Wait},
		{"done, not in the cache, after the timeout", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Stale, HasPending: true, WindowOver: true, InState: inflight.CacheTimeout}, inflight.Build},
		{"done, one claim is not admitted, before the timeout", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Unconfirmed, HasPending: true, WindowOver: true, InState: time.Minute, UnconfirmedFor: inflight.UnconfirmedTimeout - 1}, inflight.Wait},
		{"done, one claim is not admitted, after the timeout", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Unconfirmed, HasPending: true, WindowOver: true, InState: time.Minute, UnconfirmedFor: inflight.UnconfirmedTimeout}, inflight.Build},
		{"done and in the cache", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Complete, HasPending: true, WindowOver: true}, inflight.Build},
		{"a part is done and in the cache", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Complete, HasPending: true, Bisecting: true}, inflight.Build},
		{"a part is done and not in the cache", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Stale, HasPending: true, Bisecting: true}, inflight.Wait},
		{"done and in the cache, before ReplanInterval", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Complete, HasPending: true, SinceBatch: inflight.ReplanInterval - 1}, inflight.Wait},
		{"done and in the cache, after ReplanInterval", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Complete, HasPending: true, SinceBatch: inflight.ReplanInterval}, inflight.Build},
		{"done and in the cache, no pod is pending", inflight.BatchState{Outbox: is(outbox.Done), Visibility: inflight.Complete, WindowOver: true, SinceBatch: time.Hour}, inflight.Wait},
	} {
		if got := inflight.Decide(test.view); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func is(state outbox.State) outbox.Outbox { return outbox.Outbox{State: state} }

// A batch times out only after the planner's limit and one lost and resent message.
func TestTimeoutAllowsOneResend(t *testing.T) {
	const solve = 60 * time.Second
	if inflight.SentTimeout < solve+inflight.ResendInterval {
		t.Errorf("a batch times out after %s", inflight.SentTimeout)
	}
}
