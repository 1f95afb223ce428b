package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// EC2 refuses every launch for a reason other than capacity, so that no other offering helps. Launches become rare, few
// NodeClaims exist at a time, and a change of the NodePool is tried at once.
func TestRefusedLaunchesBackOff(t *testing.T) {
	far := time.Now().Add(100 * 365 * 24 * time.Hour)
	for _, tt := range []struct {
		name          string
		refuse, allow func(*memcloud.Cloud)
		// minutes is how long launches are refused, and claims the maximum of NodeClaims meanwhile.
		minutes, claims int
	}{
		{
			"the answer has UnauthorizedOperation",
			func(c *memcloud.Cloud) { c.Block(event.Offering{}, "UnauthorizedOperation", far) }, (*memcloud.Cloud).Unblock, 5, 5,
		},
		{
			"the answer has InvalidParameterCombination",
			func(c *memcloud.Cloud) { c.Block(event.Offering{}, "InvalidParameterCombination", far) }, (*memcloud.Cloud).Unblock, 5, 5,
		},
		// NodeClaims of a denied call stay until no copy of its request can launch instances.
		{
			"the call is denied",
			func(c *memcloud.Cloud) { c.Deny(memcloud.CreateFleet) }, func(c *memcloud.Cloud) { c.Allow(memcloud.CreateFleet) }, 7, 70,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g"}})
			if err != nil {
				t.Fatal(err)
			}
			run := func(d time.Duration) {
				t.Helper()
				if _, err := w.Run(ctx, d, func() bool { return false }); err != nil {
					t.Fatal(err)
				}
			}
			calls := func() int { return w.Cloud.Counts()[memcloud.CreateFleet].Calls }
			class, web, _ := nodeClassAndDeployment(w)
			if err := w.Apply(ctx, class, strictNodePool()); err != nil {
				t.Fatal(err)
			}
			run(150 * time.Second)
			tt.refuse(w.Cloud)
			before := calls()
			if err := w.Apply(ctx, web); err != nil {
				t.Fatal(err)
			}
			most := 0
			for range tt.minutes * 6 {
				run(10 * time.Second)
				claims, err := cluster.List[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims)
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, len(claims))
			}
			// Pauses of 1, 2, 4, 8, 16 and 32 s take a minute, and each later one another minute.
			if n := calls() - before; n < tt.minutes || n > tt.minutes+8 {
				t.Errorf("%d CreateFleet calls in %d minutes", n, tt.minutes)
			}
			if most > tt.claims {
				t.Errorf("up to %d NodeClaims for %d pods, want at most %d", most, *web.Spec.Replicas, tt.claims)
			}
			if !hasEvent(w, cluster.Pods, "FailedScheduling", "launches in a row of the NodePool with ") {
				t.Error("no Event on a pod says that EC2 refuses the launches of the NodePool")
			}

			tt.allow(w.Cloud)
			before = calls()
			w.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
				o.(*karpenter.NodePool).Spec.Weight = new(int32(7))
			})
			run(10 * time.Second)
			if calls() == before {
				t.Error("the changed NodePool launched nothing within 10 s")
			}
		})
	}
}

// hasEvent reports whether an object of the kind has an Event with the reason and a message that contains the text.
func hasEvent(w *embedded.EmbeddedCluster, kind cluster.Kind, reason, text string) bool {
	for _, e := range w.Kube.Events() {
		if e.Kind == kind && e.Reason == reason && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}
