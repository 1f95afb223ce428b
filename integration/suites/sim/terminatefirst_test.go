package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// With the gate TerminateFirstDrift, drifted nodes are removed before their replacements are launched if these need
// their place: in a full reservation, or under limits.nodes. Without the gate they stay.
func TestTerminateFirstThroughAllServices(t *testing.T) {
	const nodes = 2
	reservedOnly := func(p *karpenter.NodePool) {
		for i := range p.Spec.Template.Spec.Requirements {
			if r := &p.Spec.Template.Spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
				r.Values = []string{karpenter.CapacityTypeReserved}
			}
		}
	}
	static := func(p *karpenter.NodePool) { p.Spec.Replicas = new(int64(nodes)) }
	for _, tt := range []struct {
		name  string
		gate  bool
		edits []func(*karpenter.NodePool)
	}{
		{"reserved", true, []func(*karpenter.NodePool){reservedOnly}},
		{"reserved, gate off", false, []func(*karpenter.NodePool){reservedOnly}},
		{"static at its limit", true, []func(*karpenter.NodePool){static, func(p *karpenter.NodePool) {
			p.Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: *resource.NewQuantity(nodes, resource.DecimalSI)}
		}}},
		{"static and reserved", true, []func(*karpenter.NodePool){static, reservedOnly}},
		{"static and reserved, all at once", true, []func(*karpenter.NodePool){static, reservedOnly, func(p *karpenter.NodePool) {
			p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			w, err := embedded.New(embedded.Options{
				Seed: 1, Region: "us-west-2", Families: []string{"m6i"},
				Gates: planning.Gates{ReservedCapacity: true, StaticCapacity: true, TerminateFirstDrift: tt.gate},
			})
			if err != nil {
				t.Fatal(err)
			}
			class, web, _ := nodeClassAndDeployment(w)
			mine := map[string]string{"team": "web"}
			w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6i.xlarge", Zone: w.AWS.Subnets[0].Zone, Available: nodes, Tags: mine})
			class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: mine}}
			pool := strictNodePool()
			pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "1"}}
			for _, edit := range tt.edits {
				edit(pool)
			}
			objects := []cluster.Object{class, pool}
			if !pool.IsStatic() {
				web.Spec.Replicas = new(int32(nodes))
				objects = append(objects, web)
			}
			if err := w.Apply(ctx, objects...); err != nil {
				t.Fatal(err)
			}
			most, least := 0, nodes
			run := func(d time.Duration) {
				if _, err := w.Run(ctx, d, func() bool {
					running := 0
					for _, i := range w.Cloud.Records() {
						if i.State == cloud.Running || i.State == cloud.Pending {
							running++
						}
					}
					most, least = max(most, running), min(least, running)
					return false
				}); err != nil {
					t.Fatal(err)
				}
			}
			run(10 * time.Minute)
			before := ready(t, w, false)
			if len(before) != nodes {
				t.Fatalf("the cluster begins with %d nodes", len(before))
			}
			w.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
				o.(*karpenter.NodePool).Spec.Template.Labels["tier"] = "gold"
			})
			most, least = 0, nodes
			run(30 * time.Minute)
			if !tt.gate {
				if after := ready(t, w, true); !slices.Equal(before, after) || least < nodes {
					t.Errorf("the nodes were %q and are %q; at least %d ran", before, after, least)
				}
				return
			}
			after := ready(t, w, false)
			if len(after) != nodes || slices.ContainsFunc(after, func(name string) bool { return slices.Contains(before, name) }) {
				t.Errorf("the nodes were %q and are %q", before, after)
			}
			stay := nodes - 1
			if pool.Spec.Disruption.Budgets[0].Nodes == "100%" {
				stay = 0
			}
			if most != nodes || least != stay {
				t.Errorf("between %d and %d instances ran; want %d and %d", least, most, stay, nodes)
			}
		})
	}
}

// ready returns the names of the initialized NodeClaims, which have drifted or not.
func ready(t *testing.T, w *embedded.EmbeddedCluster, drifted bool) []string {
	t.Helper()
	claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), w.Kube, cluster.NodeClaims)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range claims {
		if c.DeletionTimestamp != nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted) != drifted {
			t.Errorf("NodeClaim %s (%s): %+v", c.Name, c.Labels[karpenter.CapacityTypeLabelKey], c.Status.Conditions)
		}
		out = append(out, c.Name)
	}
	slices.Sort(out)
	return out
}
