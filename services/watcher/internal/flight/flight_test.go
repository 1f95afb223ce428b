package flight_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/flight"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

func TestDecide(t *testing.T) {
	const never = -1 * time.Nanosecond
	for _, test := range []struct {
		name string
		view flight.View
		want flight.Action
	}{
		{"idle, nobody waits", flight.View{SinceBatch: never}, flight.Wait},
		{"idle, a window is open", flight.View{SinceBatch: never, Waiting: true}, flight.Wait},
		{"idle, a window is over", flight.View{SinceBatch: never, Waiting: true, Due: true}, flight.Open},
		{"a window is over, and everybody went away", flight.View{SinceBatch: never, Due: true}, flight.Wait},

		{"sent by another, who died", flight.View{Outbox: is(outbox.Sent), SinceSent: never}, flight.Repeat},
		{"just sent", flight.View{Outbox: is(outbox.Sent), SinceSent: 0}, flight.Wait},
		{"sent a while ago", flight.View{Outbox: is(outbox.Sent), SinceSent: flight.Resend - 1}, flight.Wait},
		{"sent too long ago", flight.View{Outbox: is(outbox.Sent), SinceSent: flight.Resend}, flight.Repeat},
		{"in flight, and a window is over", flight.View{Outbox: is(outbox.Sent), Waiting: true, Due: true}, flight.Wait},
		{"no plan for nearly too long", flight.View{Outbox: is(outbox.Sent), InState: flight.GiveUpSent - 1}, flight.Wait},
		{"no plan for too long", flight.View{Outbox: is(outbox.Sent), InState: flight.GiveUpSent}, flight.GiveUp},

		{"no plan of a part for nearly too long", flight.View{Outbox: is(outbox.Sent), Hunting: true, InState: flight.GiveUpPart - 1}, flight.Wait},
		{"no plan of a part for too long", flight.View{Outbox: is(outbox.Sent), Hunting: true, InState: flight.GiveUpPart}, flight.GiveUp},

		{"being applied", flight.View{Outbox: is(outbox.Applying), SinceSent: never}, flight.Wait},
		{"being applied, and sent long ago", flight.View{Outbox: is(outbox.Applying), SinceSent: time.Hour, Waiting: true, Due: true}, flight.Wait},
		{"being applied for nearly too long", flight.View{Outbox: is(outbox.Applying), InState: flight.GiveUpApplying - 1}, flight.Wait},
		{"being applied for too long", flight.View{Outbox: is(outbox.Applying), InState: flight.GiveUpApplying}, flight.GiveUp},

		{"a part being applied for nearly too long", flight.View{Outbox: is(outbox.Applying), Hunting: true, InState: flight.GiveUpApplyingPart - 1}, flight.Wait},
		{"a part being applied for too long", flight.View{Outbox: is(outbox.Applying), Hunting: true, InState: flight.GiveUpApplyingPart}, flight.GiveUp},

		{"done, not seen", flight.View{Outbox: is(outbox.Done), Sight: flight.Behind, Waiting: true, Due: true}, flight.Wait},
		{"done, not seen for nearly too long", flight.View{Outbox: is(outbox.Done), Sight: flight.Behind, Waiting: true, Due: true, InState: flight.GiveUpSeeing - 1}, flight.Wait},
		{"done, not seen for too long", flight.View{Outbox: is(outbox.Done), Sight: flight.Behind, Waiting: true, Due: true, InState: flight.GiveUpSeeing}, flight.Open},
		{"done, and one claim is not admitted for nearly too long", flight.View{Outbox: is(outbox.Done), Sight: flight.Unsure, Waiting: true, Due: true, InState: time.Minute, Unsure: flight.GiveUpUnsure - 1}, flight.Wait},
		{"done, and one claim is not admitted for too long", flight.View{Outbox: is(outbox.Done), Sight: flight.Unsure, Waiting: true, Due: true, InState: time.Minute, Unsure: flight.GiveUpUnsure}, flight.Open},
		{"done and seen", flight.View{Outbox: is(outbox.Done), Sight: flight.Full, Waiting: true, Due: true}, flight.Open},
		{"a part is done and seen", flight.View{Outbox: is(outbox.Done), Sight: flight.Full, Waiting: true, Hunting: true}, flight.Open},
		{"a part is done and not seen", flight.View{Outbox: is(outbox.Done), Sight: flight.Behind, Waiting: true, Hunting: true}, flight.Wait},
		{"done and seen, nothing new", flight.View{Outbox: is(outbox.Done), Sight: flight.Full, Waiting: true, SinceBatch: flight.Reopen - 1}, flight.Wait},
		{"done and seen, and they still wait", flight.View{Outbox: is(outbox.Done), Sight: flight.Full, Waiting: true, SinceBatch: flight.Reopen}, flight.Open},
		{"done and seen, nobody waits", flight.View{Outbox: is(outbox.Done), Sight: flight.Full, Due: true, SinceBatch: time.Hour}, flight.Wait},
	} {
		if got := flight.Decide(test.view); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func is(state outbox.State) outbox.Outbox { return outbox.Outbox{State: state} }

// The planner must have had its time before a batch is given up: its budget, and
// a message that was lost and sent again.
func TestPatience(t *testing.T) {
	const solve = 60 * time.Second
	if flight.GiveUpSent < solve+flight.Resend {
		t.Errorf("a batch is given up after %s", flight.GiveUpSent)
	}
}
