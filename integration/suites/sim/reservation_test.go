package sim_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A launch into one of two reservations fails, because another account filled it after it was counted, or because its
// owner reclaims it. The pods run at once in the other reservation and on demand, and only the failed reservation is
// recorded: as full, or as unavailable.
func TestFailedReservationsThroughAllServices(t *testing.T) {
	for _, tt := range []struct {
		name        string
		fail        func(w *embedded.EmbeddedCluster, id string)
		unavailable bool
	}{
		{"full", func(w *embedded.EmbeddedCluster, id string) { w.Cloud.UseReservation(id, 9) }, false},
		{"reclaimed", func(w *embedded.EmbeddedCluster, id string) { w.Cloud.ReclaimReservation(id) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i"}, Gates: planning.Gates{ReservedCapacity: true}})
			if err != nil {
				t.Fatal(err)
			}
			class, web, _ := nodeClassAndDeployment(w)
			mine, zone := map[string]string{"team": "web"}, w.AWS.Subnets[0].Zone
			failed := w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6i.xlarge", Zone: zone, Available: 9, Tags: mine})
			other := w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6i.xlarge", Zone: zone, Available: 2, Tags: mine})
			class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: mine}}
			pool := strictNodePool()
			for i := range pool.Spec.Template.Spec.Requirements {
				if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
					r.Values = []string{karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand}
				}
			}
			if err := w.Apply(ctx, class, pool); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Run(ctx, 150*time.Second, func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			tt.fail(w, failed.ID) // The catalogue was counted before.
			if err := w.Apply(ctx, web); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Run(ctx, 4*time.Minute, func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, r := range w.Cloud.Records() {
				count[r.Reservation]++
			}
			if count[failed.ID] != 0 || count[other.ID] != 2 || len(w.Cloud.Records()) != int(*web.Spec.Replicas) {
				t.Errorf("instances by reservation: %v", count)
			}
			object, err := cluster.Get[*corev1.ConfigMap](ctx, w.Kube, cluster.ConfigMaps, cluster.Key{Namespace: embedded.Namespace, Name: planning.UnavailableConfigMapName})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range planning.ReadUnavailable(object) {
				if u.Reservation != failed.ID || u.IsReservationFull() == tt.unavailable {
					t.Errorf("recorded %+v", u)
				}
			}
		})
	}
}
