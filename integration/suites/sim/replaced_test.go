package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Every node drifts, and each is deleted after its replacement is initialized, one at a time as the budget
// requires.
func TestDriftIsReplacedThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g", "c7g", "r6i"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "1"}}
	if err := w.Apply(ctx, class, pool, web); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(ctx, 5*time.Minute, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	w.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Template.Labels["tier"] = "gold"
	})
	done := func() bool {
		claims, err := cluster.List[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims)
		return err == nil && !slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool { return c.Labels["tier"] != "gold" })
	}
	if seen, err := w.Run(ctx, 40*time.Minute, done); err != nil || !seen {
		t.Fatalf("after 40 min not all nodes are as the pool wants them: %v", err)
	}
	requireReplacementsFirst(t, w)
}

// requireReplacementsFirst reads the log of writes: one node is disrupted at a time, after its replacements are
// initialized.
func requireReplacementsFirst(t *testing.T, w *embedded.EmbeddedCluster) {
	t.Helper()
	claims, gone := map[string]*karpenter.NodeClaim{}, 0
	for _, e := range w.Kube.Effects() {
		if e.Kind != cluster.NodeClaims {
			continue
		}
		delete(claims, e.Key.Name)
		if e.After == nil {
			continue
		}
		claim := e.After.(*karpenter.NodeClaim)
		claims[e.Key.Name] = claim
		going := 0
		for _, c := range claims {
			p := planning.ReadProposal(c)
			acts := p != nil && !p.ConfirmedAt.IsZero()
			if (acts || c.DeletionTimestamp != nil) && !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) {
				going++
			}
		}
		if going > 1 {
			t.Fatalf("%s: %d nodes are going at a time", e.At, going)
		}
		if e.Verb != memcluster.VerbDelete {
			continue
		}
		gone++
		p := planning.ReadProposal(claim)
		if p == nil || len(p.Replacements) == 0 {
			t.Fatalf("%s: %s went for %+v", e.At, claim.Name, p)
		}
		for _, name := range p.Replacements {
			if c := claims[name]; c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
				t.Fatalf("%s: %s went before %s was there", e.At, claim.Name, name)
			}
		}
	}
	if gone < 2 {
		t.Errorf("%d nodes were replaced", gone)
	}
}
