package solver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// requiring makes the pod require one value of a node label.
func requiring(key, value string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}},
		}}}
	}
}

// lifecycleRules select nodes by the labels that lifecycle sets on them.
var lifecycleRules = map[string]func(*planning.PodSpec){
	"selector of registered":  selecting(karpenter.NodeRegisteredLabelKey, "true"),
	"selector of initialized": selecting(karpenter.NodeInitializedLabelKey, "true"),
	"affinity to registered":  requiring(karpenter.NodeRegisteredLabelKey, "true"),
	"affinity to initialized": requiring(karpenter.NodeInitializedLabelKey, "true"),
	"no selector":             func(*planning.PodSpec) {},
}

// TestDaemonsOfNewNodes counts daemons on new nodes that select labels which a node gets only when
// it is registered or initialized.
func TestDaemonsOfNewNodes(t *testing.T) {
	for name, rule := range lifecycleRules {
		t.Run(name, func(t *testing.T) {
			batch := inZones(planningtest.NewPods("w", 1, "1500m", "64Mi"))
			nowhere := func(s *planning.PodSpec) {
				s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}}}
			}
			batch.Snapshot.DaemonSets = []planning.PodSpec{planningtest.NewPods("nowhere", 1, "1", "64Mi", nowhere).Spec, planningtest.NewPods("ds", 1, "1", "64Mi", rule).Spec}
			result := solve(t, batch)
			if len(result.Nodes) != 1 {
				t.Fatalf("%d nodes, want 1: %+v", len(result.Nodes), result.Unplaced)
			}
			planned := &result.Nodes[0]
			if got := planned.Requests.Cpu(); got.Cmp(resource.MustParse("2500m")) != 0 {
				t.Errorf("cpu requests of the node = %s, want 2500m for the pod and the daemon", got)
			}
			for _, key := range []string{karpenter.NodeRegisteredLabelKey, karpenter.NodeInitializedLabelKey} {
				if values, stated := planned.Requirements[key]; stated {
					t.Errorf("the claim requires %s %s, a label that the kubelet sets later", key, values)
				}
			}
		})
	}
}

// TestDaemonsOfClaims counts the same daemons on a NodeClaim without a node, and on an uninitialized
// node. Each has room for the pod or the daemon, not both.
func TestDaemonsOfClaims(t *testing.T) {
	states := map[string]func(*planning.Node){
		"launched": func(n *planning.Node) { n.Registered, n.Initialized, n.Ready = false, false, false },
		"not launched": func(n *planning.Node) {
			n.Launched, n.Registered, n.Initialized, n.Ready = false, false, false, false
		},
		"registered":     func(n *planning.Node) { n.Initialized = false },
		"is initialized": func(*planning.Node) {},
	}
	for state, edit := range states {
		for name, rule := range lifecycleRules {
			t.Run(state+", "+name, func(t *testing.T) {
				batch := inZones(planningtest.NewPods("w", 1, "1500m", "64Mi"))
				batch.Snapshot.DaemonSets = []planning.PodSpec{planningtest.NewPods("ds", 1, "1", "64Mi", rule).Spec}
				batch.Snapshot.Nodes = []planning.Node{node("n", edit)}
				result := solve(t, batch)
				if onto, fresh := len(result.Nominations), len(result.Nodes); onto != 0 || fresh != 1 {
					t.Errorf("%d pods on the node and %d new nodes, want 0 and 1 because of the daemon", onto, fresh)
				}
			})
		}
	}
}

// TestDaemonsOfSomeZones reserves capacity for the daemon of one zone on a NodeClaim that may get it, and not on one of another zone.
func TestDaemonsOfSomeZones(t *testing.T) {
	for zones, onto := range map[string]int{"a b": 0, "a": 0, "b": 1} {
		batch := inZones(planningtest.NewPods("w", 1, "1500m", "64Mi"))
		batch.Snapshot.DaemonSets = []planning.PodSpec{planningtest.NewPods("ds", 1, "1", "64Mi", selecting(zoneKey, "ap-northeast-2a")).Spec}
		batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) {
			n.Launched, n.Registered, n.Initialized, n.Ready = false, false, false, false
			delete(n.Labels, zoneKey)
			values := strings.Fields(zones)
			for i := range values {
				values[i] = "ap-northeast-2" + values[i]
			}
			n.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: zoneKey, Operator: karpenter.NodeSelectorOpIn, Values: values}}
		})}
		if result := solve(t, batch); len(result.Nominations) != onto || len(result.Nodes) != 1-onto {
			t.Errorf("a NodeClaim for the zones %s: %d pods on it and %d new nodes, want %d and %d", zones, len(result.Nominations), len(result.Nodes), onto, 1-onto)
		}
	}
}

// TestPodsThatSelectReadyNodes launches one node for such a pod, and no second one while the first is
// not ready.
func TestPodsThatSelectReadyNodes(t *testing.T) {
	pods := planningtest.NewPods("w", 1, "1500m", "64Mi", selecting(karpenter.NodeInitializedLabelKey, "true"))
	if result := solve(t, inZones(pods)); len(result.Nodes) != 1 {
		t.Errorf("%d nodes, want 1: %+v", len(result.Nodes), result.Unplaced)
	}
	batch := inZones(pods)
	batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) { n.Initialized = false })}
	result := solver.Solve(batch, planningtest.NewCatalogue())
	if onto, fresh := len(result.Nominations), len(result.Nodes); onto != 1 || fresh != 0 {
		t.Errorf("%d pods on the node and %d new nodes, want 1 and 0", onto, fresh)
	}
}

// TestDaemonsThatRepelPods plans a pod that must not share a node with a daemon, in either direction. Each new node of zone a runs the
// daemon, so the pod needs a node in another zone; if all zones run it, no node is launched.
func TestDaemonsThatRepelPods(t *testing.T) {
	web, agent := requireLabels("app", "web"), requireLabels("app", "agent")
	for name, tt := range map[string]struct {
		pod, daemon func(*planning.PodSpec)
		repelled    bool
	}{
		"the pod repels the daemon": {pod: averse(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "agent")}), repelled: true},
		"the daemon repels the pod": {daemon: averse(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "web")}), repelled: true},
		"the pod repels others":     {pod: averse(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "other")})},
		"the pod repels the daemon of another namespace": {
			pod: averse(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "agent"), Namespaces: []string{"other"}}),
		},
	} {
		for _, everywhere := range []bool{false, true} {
			edit := func(edits ...func(*planning.PodSpec)) func(*planning.PodSpec) {
				return func(s *planning.PodSpec) {
					for _, one := range edits {
						if one != nil {
							one(s)
						}
					}
				}
			}
			batch := inZones(planningtest.NewPods("web", 1, "100m", "64Mi", edit(web, tt.pod)))
			where := selecting(zoneKey, "ap-northeast-2a")
			if everywhere {
				where = nil
			}
			batch.Snapshot.DaemonSets = []planning.PodSpec{planningtest.NewPods("ds", 1, "50m", "10Mi", edit(agent, tt.daemon, where)).Spec}
			result := solver.Solve(batch, planningtest.NewCatalogue())
			if repelled := tt.repelled && everywhere; len(result.Nodes) == 1 == repelled || count(result.Unplaced) == 1 != repelled {
				t.Errorf("%s, daemons everywhere %t: %d nodes, unplaced %+v", name, everywhere, len(result.Nodes), result.Unplaced)
			}
			for _, u := range result.Unplaced {
				if why := u.Rejections[0].Detail; !strings.Contains(why, "DaemonSet's pod that cannot share a node") {
					t.Errorf("%s: rejected because %s", name, why)
				}
			}
			for _, n := range result.Nodes {
				for _, o := range n.Offerings {
					if tt.repelled && o.Zone == "ap-northeast-2a" {
						t.Errorf("%s: the node may be launched in the zone of the daemon", name)
					}
				}
			}
		}
	}
}
