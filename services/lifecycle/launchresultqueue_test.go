package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Launch results that wait together are handled in one turn: those of one intent in order, and an error or a panic of one
// intent does not affect the others.
func TestLaunchResultsShareATurn(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 2), s.planIntent(held, "two", 1), s.planIntent(held, "three", 1), s.planIntent(held, "four", 1)), "")
	s.startService(&countingClient{Client: failingClient{s.ClientFor("lifecycle"), "four-0", fault.Denied}, panics: "two-0"})
	kinds, early := s.deliverTogether(
		s.newMessage(launchSettled("three", 1, "i-3")), s.newMessage(launchSettled("one", 2, "i-1")), s.newMessage(launchSettled("two", 1, "i-2")),
		s.newMessage(launchSettled("one", 2, "i-1", "i-4")), s.newMessage(launchSettled("four", 1, "i-5")))
	if diff := cmp.Diff([]fault.Kind{"", "", fault.Bug, "", fault.Denied}, kinds); diff != "" || early > 0 {
		t.Errorf("%d results were handled before their turn; errors (-want +got):\n%s", early, diff)
	}
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "i-4", "three-0": "i-3", "two-0": "", "four-0": ""}, s.boundInstances()); diff != "" {
		t.Errorf("bound instances (-want +got):\n%s", diff)
	}
}
