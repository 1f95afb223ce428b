package lifecycle_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// B056: what only the whole request shows is said where a person looks, on the
// class, and once in ten minutes; it holds up nothing else of the plan.
func TestB056PlansAreToldOnTheClass(t *testing.T) {
	s := newSite(t)
	s.class("")
	tooLong := scheduling.Warning{NodePool: "default", NodeClass: "default", Rule: launchspec.WarnUnwritable, Message: "it has 20000 bytes, and EC2 takes 16384 (try: move it)"}
	plan := func() []event.Envelope {
		held := s.batch()
		s.handle(s.planMade(held, scheduling.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Warnings: []scheduling.Warning{
			tooLong,
			{NodePool: "default", NodeClass: "default", Rule: launchspec.WarnUserData, Message: "nearly"},
			{NodePool: "default", NodeClass: "gone", Rule: launchspec.WarnTags, Message: "nobody to tell"},
		}, Intents: []scheduling.PlannedIntent{s.planned(held, "intent"+strconv.FormatUint(held.Seq, 10), 1)}}), "")
		return s.sent()
	}
	said := func() (out []string) {
		for _, e := range s.Events() {
			if e.About.GetName() == "default" && e.Type == "Warning" {
				out = append(out, e.Reason+" "+e.Message)
			}
		}
		return out
	}
	want := []string{"LaunchNotPossible NodePool default: " + tooLong.Message, "LaunchWarning NodePool default: nearly"}
	for range 2 {
		if sent := plan(); len(sent) != 1 || sent[0].Type != event.LaunchRequestedType {
			t.Errorf("sent %v", words(sent))
		}
		if got := said(); !slices.Equal(got, want) {
			t.Fatalf("said %q", got)
		}
	}
	s.now = s.now.Add(10 * time.Minute)
	plan()
	if got := said(); len(got) != 4 {
		t.Errorf("said %q", got)
	}
}
