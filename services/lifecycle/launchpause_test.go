package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// EC2 refuses a launch for a reason other than capacity: its NodePool is paused before the claims are deleted, because the next plan
// would request the same again. A successful launch ends the pause.
func TestRefusedLaunchPausesNodePool(t *testing.T) {
	s := newTestCluster(t)
	class := s.addNodeClass("")
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: class.Name}
	})
	settle := func(id string, refusals ...event.Refusal) (paused []planning.Unavailable) {
		t.Helper()
		s.launchIntent(id, 1)
		s.reconcile()
		s.handleMessage(s.newMessage(event.LaunchSettled{Intent: id, Wanted: 1, Spent: true, Refusals: refusals}), "")
		s.reconcile()
		return slices.DeleteFunc(s.unavailableOfferings(), func(u planning.Unavailable) bool { return u.NodePool == "" })
	}
	short, denied := event.Refusal{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{offering}}, event.Refusal{Code: "UnauthorizedOperation"}
	if got := settle("one", short); len(got) != 0 {
		t.Errorf("a lack of capacity pauses the NodePool: %+v", got)
	}
	pool, err := cluster.Get[*karpenter.NodePool](t.Context(), s.Server, cluster.NodePools, cluster.Key{Name: "default"})
	if err != nil {
		t.Fatal(err)
	}
	want := planning.Unavailable{NodePool: "default", SpecKey: planning.LaunchSpecKey(pool, class), Refused: 1, Until: s.now.Add(time.Second), Reason: denied.Code}
	if diff := cmp.Diff([]planning.Unavailable{want}, settle("two", denied)); diff != "" {
		t.Error(diff)
	}
	writes := s.Effects()
	slices.Reverse(writes)
	recorded := slices.IndexFunc(writes, func(e memcluster.Effect) bool { return e.Key.Name == planning.UnavailableConfigMapName })
	deleted := slices.IndexFunc(writes, func(e memcluster.Effect) bool { return e.Verb == memcluster.VerbDelete && e.Key.Name == "two-0" })
	if recorded < 0 || deleted < 0 || recorded < deleted {
		t.Errorf("of the last writes, the pause was write %d and the deletion write %d, want the pause first", recorded, deleted)
	}
	s.now = s.now.Add(time.Minute)
	want.Refused, want.Until = 2, s.now.Add(2*time.Second)
	if diff := cmp.Diff([]planning.Unavailable{want}, settle("three", denied, short)); diff != "" {
		t.Error(diff)
	}
	s.restartService()
	s.launchIntent("four", 1)
	s.handleMessage(s.newMessage(launchSettled("four", 1, "i-1")), "")
	if got := settle("five", short); len(got) != 0 {
		t.Errorf("after a successful launch %+v is recorded", got)
	}
	want.Refused, want.Until = 1, s.now.Add(time.Second)
	if diff := cmp.Diff([]planning.Unavailable{want}, settle("six", denied)); diff != "" {
		t.Error(diff)
	}
}
