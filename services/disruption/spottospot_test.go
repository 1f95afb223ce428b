package disruption

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func onSpot(n *node) { n.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeSpot }

// apart lets each pod have a node of its own.
func apart(s *planning.PodSpec) {
	s.Labels = map[string]string{"app": "web"}
	s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}}}
}

// anyType returns a NodePool of all instance types of these capacity types.
func anyType(capacityTypes ...string) karpenter.NodePool {
	pool := fixture.Pool(fixture.Budgets("100%"))
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: capacityTypes},
		{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{fixture.Zone}},
	}
	return pool
}

// TestSpotNodesMoveOnce consolidates until nothing is found. Each pod needs a node of its own, and EC2 launches any option of a
// replacement, also the dearest. The launched type is one of the 15 cheapest, so the node is not replaced again, alone or with
// others.
func TestSpotNodesMoveOnce(t *testing.T) {
	pool := anyType(karpenter.CapacityTypeSpot)
	for pick, index := range map[string]func(options int) int{
		"the cheapest option":       func(int) int { return 0 },
		"a middle option":           func(n int) int { return n / 2 },
		"the dearest option":        func(n int) int { return n - 1 },
		"any option":                rand.New(rand.NewPCG(1, 1)).IntN,
		"any option of other draws": rand.New(rand.NewPCG(2, 1)).IntN,
	} {
		for count := 1; count <= 4; count++ {
			var nodes []node
			for i := range count {
				nodes = append(nodes, fixture.Node(fmt.Sprint("n", i), "m7g.4xlarge", onSpot, with(1, apart)))
			}
			moves := 0
			var launched []string
			for round := range 30 {
				s := fixture.Snapshot(pool, nodes...)
				s.Settings.Gates.SpotToSpotConsolidation = true
				found := Evaluate(s, fixture.Stock(s), Options{})
				if len(found.Commands) == 0 {
					break
				}
				next := slices.Clone(nodes)
				for _, c := range found.Commands {
					moves += c.PodsMoved
					for k, r := range c.Result.Nodes {
						instanceType := r.Offerings[index(len(r.Offerings))].InstanceType
						launched = append(launched, instanceType)
						next[c.Nodes[k]] = fixture.Node(fmt.Sprintf("r%d-%d", round, k), instanceType, onSpot, with(len(r.Pods), apart))
					}
				}
				nodes = next
			}
			if moves != count {
				t.Errorf("EC2 launches %s: %d pods were moved %d times: %s", pick, count, moves, strings.Join(launched, " "))
			}
		}
	}
}

// TestSetsKeepSpotNodes has a spot node next to an on-demand node, and pods that need a node each. Without the feature gate the
// spot node is not replaced by spot, although the on-demand node is.
func TestSetsKeepSpotNodes(t *testing.T) {
	for _, tt := range []struct {
		gate bool
		want string
	}{
		{false, "SingleNodeConsolidation -a +t2.micro"},
		{true, "MultiNodeConsolidation -a,b +t2.micro,t2.micro"},
	} {
		s := fixture.Snapshot(anyType(karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand),
			fixture.Node("a", "m7g.4xlarge", with(1, apart)), fixture.Node("b", "m7g.4xlarge", onSpot, with(1, apart)))
		s.Settings.Gates.SpotToSpotConsolidation = tt.gate
		if got := strings.Join(all(s, Evaluate(s, fixture.Stock(s), Options{})), "; "); got != tt.want {
			t.Errorf("feature gate %t: got %q, want %q", tt.gate, got, tt.want)
		}
	}
}
