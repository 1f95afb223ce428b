package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Messages of a reconcile belong to the trace of their cause: tags to the launch's, terminations to
// the notice's. Node registrations and terminations are spans in it. Claims are annotated with the
// trace, so that the next leader continues it.
func TestReconcileContinuesTrace(t *testing.T) {
	for name, dies := range map[string]bool{"without a restart": false, "with a restart after each message": true} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			var spans []string
			live := func() {
				s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
					c.Span = func(told host.Span) {
						if told.Envelope.Cluster != clusterIdentity.Name {
							t.Errorf("the span %s is in the cluster %q", told.Name, told.Envelope.Cluster)
						}
						if told.Start.After(told.End) || len(told.Envelope.Data) != 0 || told.IsRoot {
							t.Errorf("%+v", told)
						}
						spans = append(spans, told.Name+" in "+told.Envelope.Correlation+" below "+told.Envelope.Traceparent)
					}
				})
				s.reconcile()
			}
			heard := func(e event.Envelope) {
				s.handleMessage(e, "")
				if dies {
					live()
				}
			}
			live()
			launched := s.launchAndTakeSent("one")
			i := slices.IndexFunc(launched, func(e event.Envelope) bool { return e.Type == event.LaunchRequestedType })
			if i < 0 {
				t.Fatalf("no launch was requested: %v", typesAndSubjects(launched))
			}
			story := launched[i].Correlation
			answer := s.newMessage(launchSettled("one", 1, "i-1"))
			answer.Correlation, answer.Traceparent = story, "00-"+story+"-0123456789abcdef-01"
			heard(answer)
			s.joinNode("node-1", "i-1")
			s.advance(40 * time.Second)
			s.expectSent(event.TagRequestedType, answer)
			notice := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
			if notice.Traceparent != notice.RootTraceparent() {
				t.Errorf("the notice has the trace %q, want %q", notice.Traceparent, notice.RootTraceparent())
			}
			heard(notice)
			s.advance(40 * time.Second)
			s.expectSent(event.TerminateRequestedType, notice)
			gone := s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now})
			if gone.Correlation != notice.Correlation {
				t.Errorf("the instance-gone message has the correlation %s, the notice %s", gone.Correlation, notice.Correlation)
			}
			heard(gone)
			s.advance(5 * time.Second)
			want := []string{
				"node initialized in " + story + " below " + answer.Traceparent,
				"node gone in " + notice.Correlation + " below " + notice.Traceparent,
			}
			if diff := cmp.Diff(want, spans); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// expectSent checks that messages of the type were sent, all in the trace of the cause.
func (s *testCluster) expectSent(want event.Type, cause event.Envelope) {
	s.t.Helper()
	found := 0
	for _, e := range s.takeSent() {
		if e.Type != want {
			continue
		}
		found++
		if e.Correlation != cause.Correlation || e.Traceparent != cause.Traceparent {
			s.t.Errorf("%s has correlation %s and trace %q, want %s and %q", want, e.Correlation, e.Traceparent, cause.Correlation, cause.Traceparent)
		}
	}
	if found == 0 {
		s.t.Errorf("no %s was sent", want)
	}
}

// A repeated launch request belongs to the trace of the first one, even after a restart.
func TestRepeatedLaunchKeepsTrace(t *testing.T) {
	for name, lost := range map[string]bool{"remembered": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			first := filterLaunches(s.launchAndTakeSent("one"))
			if lost {
				s.restartService()
			}
			s.advance(35 * time.Second)
			sameTrace(t, first, filterLaunches(s.takeSent()))
			if first[0].Traceparent == "" {
				t.Error("the first launch request has no trace")
			}
		})
	}
}

// A plan that repeats other launch requests leaves each in its own trace: that of its plan, or
// none if it cannot be read.
func TestPlanKeepsOtherTraces(t *testing.T) {
	for name, broken := range map[string]bool{"written": false, "unreadable": true} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			first := filterLaunches(s.launchAndTakeSent("one"))
			if broken {
				s.editClaim(func(c *karpenter.NodeClaim) { c.Annotations[planning.TraceAnnotation] = "?" })
				first[0].Correlation, first[0].Traceparent = first[0].ID, ""
			}
			s.now = s.now.Add(35 * time.Second)
			both := filterLaunches(s.launchAndTakeSent("two"))
			i := slices.IndexFunc(both, func(e event.Envelope) bool { return e.ID == first[0].ID })
			if len(both) != 2 || i < 0 {
				t.Fatalf("requested %v", typesAndSubjects(both))
			}
			sameTrace(t, first, both[i:i+1])
			if other := both[1-i]; other.Causation == "" || other.Correlation == first[0].Correlation || other.Traceparent == "" {
				t.Errorf("got the plan's own launch %+v", other)
			}
		})
	}
}

// sameTrace checks that both lists request the same launch in the same trace.
func sameTrace(t *testing.T, first, again []event.Envelope) {
	t.Helper()
	if len(first) != 1 || len(again) == 0 {
		t.Fatalf("requested %v, then %v", typesAndSubjects(first), typesAndSubjects(again))
	}
	one, other := first[0], again[0]
	if one.ID != other.ID || one.Correlation != other.Correlation || one.Traceparent != other.Traceparent {
		t.Errorf("requested %+v, then %+v", one, other)
	}
}

// filterLaunches returns the launch requests.
func filterLaunches(sent []event.Envelope) []event.Envelope {
	return slices.DeleteFunc(sent, func(e event.Envelope) bool { return e.Type != event.LaunchRequestedType })
}

// A redelivered notice, whose first write was lost, still writes its trace on the claim.
func TestTraceSurvivesLostWrite(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	client := &failingClient{s.ClientFor("lifecycle"), "one-0", fault.Conflict}
	s.startService(client)
	notice := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
	s.handleMessage(notice, fault.Conflict)
	client.name = ""
	s.handleMessage(notice, "")
	if c := s.getClaim("one-0"); c.Annotations[planning.TraceAnnotation] != notice.Traceparent {
		t.Errorf("got annotations %v", c.Annotations)
	}
}

// A claim with an invalid trace annotation belongs to no trace.
func TestInvalidTrace(t *testing.T) {
	for _, written := range []string{"", "?", "00-0123456789abcdef-0123456789abcdef-01", "00-xyz3456789abcdef0123456789abcdef-0123456789abcdef-01"} {
		s := newTestCluster(t)
		first := s.launchAndTakeSent("one")
		s.editClaim(func(c *karpenter.NodeClaim) { c.Annotations[planning.TraceAnnotation] = written })
		s.advance(35 * time.Second)
		again := filterLaunches(s.takeSent())
		if len(again) == 0 || again[0].Traceparent != "" || again[0].Correlation != again[0].ID || len(first) == 0 {
			t.Errorf("%q: %+v", written, again)
		}
	}
}

// launchAndTakeSent admits an intent of one claim and returns the sent messages.
func (s *testCluster) launchAndTakeSent(id string) []event.Envelope {
	s.t.Helper()
	held := s.startBatch()
	plan := s.planMessage(held, s.planIntent(held, id, 1))
	plan.Traceparent = plan.RootTraceparent()
	s.handleMessage(plan, "")
	return s.takeSent()
}

// A notice without a trace leaves the trace that the claim has.
func TestNoticeWithoutTrace(t *testing.T) {
	s := newTestCluster(t)
	s.launchAndTakeSent("one")
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	before := s.getClaim("one-0").Annotations[planning.TraceAnnotation]
	notice := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
	notice.Traceparent = ""
	s.handleMessage(notice, "")
	if got := s.getClaim("one-0").Annotations[planning.TraceAnnotation]; got != before || before == "" {
		t.Errorf("got trace %q, want %q", got, before)
	}
}

// A notice without a deadline writes nothing on the claim, and still causes the termination of its instance.
func TestNoticeWithoutDeadlineIsCause(t *testing.T) {
	s := newTestCluster(t)
	s.launchAndTakeSent("one")
	launched := s.newMessage(launchSettled("one", 1, "i-1"))
	launched.Traceparent = launched.RootTraceparent()
	s.handleMessage(launched, "")
	s.joinNode("node-1", "i-1")
	s.advance(5 * time.Second)
	s.takeSent()
	notice := s.newMessage(event.NodeNoticed{Kind: event.StateChange, InstanceID: "i-1", Noticed: s.now, Detail: "stopping"})
	notice.Traceparent = notice.RootTraceparent()
	s.handleMessage(notice, "")
	s.advance(10 * time.Second)
	s.expectSent(event.TerminateRequestedType, notice)
}
