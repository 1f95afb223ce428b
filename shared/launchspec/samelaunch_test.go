package launchspec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// randomNodes returns nodes that share two lists of offerings and have random requirements.
func randomNodes(random *rand.Rand) []planning.PlannedNode {
	types, zones, markets := []string{"m1", "m2", "m3"}, []string{"a", "b"}, []string{"spot", "on-demand"}
	var lists [2][]planning.PricedOffering
	for i := range lists {
		for price := range 12 {
			o := planning.PricedOffering{PricePerHour: float64(price + 1)}
			o.InstanceType, o.Zone, o.CapacityType = types[random.IntN(3)], zones[random.IntN(2)], markets[random.IntN(2)]
			lists[i] = append(lists[i], o)
		}
	}
	some := func(words []string) planning.Values { return planning.In(words[random.IntN(len(words)):]...) }
	nodes := make([]planning.PlannedNode, 24)
	for i := range nodes {
		nodes[i] = planning.PlannedNode{Offerings: lists[random.IntN(2)], Requirements: planning.Requirements{"team": some(types)}}
		for key, words := range map[string][]string{corev1.LabelInstanceTypeStable: types, corev1.LabelTopologyZone: zones, karpenter.CapacityTypeLabelKey: markets} {
			if random.IntN(2) == 0 {
				nodes[i].Requirements.Add(key, some(words))
			}
		}
		if random.IntN(4) == 0 {
			nodes[i].Requirements.Add("team", planning.AnyValue().WithMinValues(1))
		}
	}
	return nodes
}

// TestHaveSameLaunch checks that nodes with the same launch have equal offerings to launch, also for nodes that differ in
// requirements that no filter reads.
func TestHaveSameLaunch(t *testing.T) {
	exotic := func(instanceType string) bool { return instanceType == "m1" }
	same, different := 0, 0
	for seed := range uint64(50) {
		nodes := randomNodes(rand.New(rand.NewPCG(seed, 1)))
		for i := range nodes {
			for j := range nodes[:i] {
				diff := cmp.Diff(launchspec.Launchable(&nodes[i], exotic), launchspec.Launchable(&nodes[j], exotic))
				switch {
				case !launchspec.HaveSameLaunch(&nodes[i], &nodes[j]):
					if diff != "" {
						different++
					}
				case diff != "":
					t.Fatalf("seed %d, nodes %d and %d: %s", seed, i, j, diff)
				case !cmp.Equal(nodes[i].Requirements, nodes[j].Requirements, cmp.Comparer(planning.Values.Equals)):
					same++
				}
			}
		}
	}
	if same == 0 || different == 0 {
		t.Errorf("%d pairs have the same launch for different requirements, and %d pairs different launches", same, different)
	}
}
