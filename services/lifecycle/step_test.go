package lifecycle_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/memcluster"
)

// A claim that waits at the door while the outbox cannot be read holds up no
// drain (B242).
func TestB242UnreadableOutbox(t *testing.T) {
	s := newSite(t)
	s.running()
	held := s.batch()
	waits := s.planned(held, "two", 1).Claims[0].Object
	s.Seed(&waits)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.Inject(memcluster.Fault{Verb: memcluster.VerbGet, Kind: cluster.ConfigMaps, As: fault.Retry, Times: 100})
	s.now = s.now.Add(time.Second)
	s.cache.Flush()
	if err := s.svc.Step(t.Context()); !fault.Is(err, fault.Retry) {
		t.Errorf("the unread outbox is not told: %v", err)
	}
	if node := s.node(); len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != karpenter.DisruptedTaint() {
		t.Errorf("the node has the taints %v", node.Spec.Taints)
	}
}
