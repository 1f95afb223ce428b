package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/event"
)

// What a look sends belongs to the story that it goes on with: tags to the launch's, the
// end to the notice's; and a node's coming and going are told in them, though no message
// says so.
func TestALookGoesOnWithItsStory(t *testing.T) {
	s := newSite(t)
	var spans []string
	s.start(s.As("lifecycle"), func(c *lifecycle.Config) {
		c.Span = func(name string, of event.Envelope, from, to time.Time) {
			if from.After(to) || len(of.Data) != 0 {
				t.Errorf("%s from %s to %s", name, from, to)
			}
			spans = append(spans, name+" in "+of.Correlation)
		}
	})
	s.step()
	launched := s.asks("one")
	i := slices.IndexFunc(launched, func(e event.Envelope) bool { return e.Type == event.LaunchRequestedType })
	if i < 0 {
		t.Fatalf("nothing was launched: %v", words(launched))
	}
	story := launched[i].Correlation
	answer := s.message(settled("one", 1, "i-1"))
	answer.Correlation, answer.Traceparent = story, "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	s.handle(answer, "")
	s.join("node-1", "i-1")
	s.pass(40 * time.Second)
	told := func(want event.Type, correlation string) {
		t.Helper()
		found := 0
		for _, e := range s.sent() {
			if e.Type != want {
				continue
			}
			found++
			if e.Correlation != correlation || e.Traceparent == "" {
				t.Errorf("%s is of story %s with %q, want %s", want, e.Correlation, e.Traceparent, correlation)
			}
		}
		if found == 0 {
			t.Errorf("no %s was sent", want)
		}
	}
	told(event.TagRequestedType, story)
	notice := s.notice(event.SpotInterruption, "i-1", "terminate")
	notice.Correlation, notice.Traceparent = "noticed", "00-fedcba9876543210fedcba9876543210-0123456789abcdef-01"
	s.handle(notice, "")
	s.pass(40 * time.Second)
	told(event.TerminateRequestedType, "noticed")
	s.handle(s.message(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
	s.pass(5 * time.Second)
	if diff := cmp.Diff([]string{"node initialized in " + story, "node gone in noticed"}, spans); diff != "" {
		t.Error(diff)
	}
}

// A launch that is asked for again is in the story that asked for it first, and a process
// that lost its memory asks all the same.
func TestALaunchThatIsAskedForAgainIsInItsStory(t *testing.T) {
	for name, lost := range map[string]bool{"remembered": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			first := s.asks("one")
			if lost {
				s.restart()
			}
			s.pass(35 * time.Second)
			again := slices.DeleteFunc(s.sent(), func(e event.Envelope) bool { return e.Type != event.LaunchRequestedType })
			if len(again) == 0 {
				t.Fatal("it is not asked for again")
			}
			i := slices.IndexFunc(first, func(e event.Envelope) bool { return e.Type == event.LaunchRequestedType })
			if same := again[0].Correlation == first[i].Correlation; again[0].ID != first[i].ID || same == lost {
				t.Errorf("first %+v, then %+v", first[i], again[0])
			}
		})
	}
}

// asks admits an intent of one claim, and gives what was sent.
func (s *site) asks(id string) []event.Envelope {
	s.t.Helper()
	held := s.batch()
	s.handle(s.plan(held, s.planned(held, id, 1)), "")
	return s.sent()
}
