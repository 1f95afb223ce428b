package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Nodes of a NodePool that never consolidates have Karpenter's Event on the Node and on
// the NodeClaim, every 15 minutes.
func TestNodesThatStayHaveEventsThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
	if err := w.Apply(ctx, class, pool, web); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(ctx, time.Hour, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), w.Kube, cluster.NodeClaims)
	if err != nil || len(claims) == 0 {
		t.Fatal(len(claims), err)
	}
	events := map[string]int{}
	for _, e := range w.Kube.Events() {
		if e.Reason == "Unconsolidatable" && e.Message == `NodePool "`+pool.Name+`" has consolidation disabled` {
			events[e.Kind.Kind+"/"+e.About.GetName()]++
		}
	}
	for _, c := range claims {
		for _, object := range []string{"NodeClaim/" + c.Name, "Node/" + c.Status.NodeName} {
			if n := events[object]; n < 3 || n > 4 {
				t.Errorf("%s has %d Events in an hour, want one in 15 minutes", object, n)
			}
		}
	}
}
