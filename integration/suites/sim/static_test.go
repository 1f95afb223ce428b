package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A static NodePool has the requested number of nodes, when it grows, shrinks, and drifts.
func TestStaticPoolThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{
		Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}, Gates: planning.Gates{StaticCapacity: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	class, _, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Spec.Replicas = new(int64(4))
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "1"}}
	if err := w.Apply(ctx, class, pool); err != nil {
		t.Fatal(err)
	}
	change := func(how func(*karpenter.NodePool)) {
		w.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) { how(o.(*karpenter.NodePool)) })
	}
	for _, step := range []struct {
		name   string
		change func(*karpenter.NodePool)
		after  time.Duration
		want   int
	}{
		{"four", func(*karpenter.NodePool) {}, 5 * time.Minute, 4},
		{"two", func(p *karpenter.NodePool) { p.Spec.Replicas = new(int64(2)) }, 5 * time.Minute, 2},
		{"three", func(p *karpenter.NodePool) { p.Spec.Replicas = new(int64(3)) }, 5 * time.Minute, 3},
		{"three of another kind", func(p *karpenter.NodePool) { p.Spec.Template.Labels["tier"] = "gold" }, 20 * time.Minute, 3},
		{"one, in the midst of another change", func(p *karpenter.NodePool) {
			p.Spec.Replicas, p.Spec.Template.Labels["tier"] = new(int64(1)), "silver"
		}, 20 * time.Minute, 1},
		{"none", func(p *karpenter.NodePool) { p.Spec.Replicas = new(int64(0)) }, 10 * time.Minute, 0},
	} {
		change(step.change)
		if _, err := w.Run(ctx, step.after, func() bool { return false }); err != nil {
			t.Fatal(err)
		}
		claims, err := cluster.List[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims)
		if err != nil || len(claims) != step.want {
			t.Fatalf("%s: there are %d nodes, want %d (%v)", step.name, len(claims), step.want, err)
		}
		for _, c := range claims {
			if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || c.DeletionTimestamp != nil || c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted) {
				t.Errorf("%s: %s is not as the pool asks: %+v", step.name, c.Name, c.Status.Conditions)
			}
		}
	}
}
