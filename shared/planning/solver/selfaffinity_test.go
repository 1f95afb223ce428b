package solver_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestFirstPodOfSeveralTerms plans a pod that both terms of its affinity select, while another such pod runs. kube-scheduler lets it be
// the first only if no such pod runs on a node with a label of either term.
func TestFirstPodOfSeveralTerms(t *testing.T) {
	terms := []corev1.PodAffinityTerm{{TopologyKey: "rack", LabelSelector: selector("app", "web")}, {TopologyKey: zoneKey, LabelSelector: selector("app", "web")}}
	for _, tt := range []struct {
		name   string
		labels []string
		placed bool
	}{
		{"both labels", []string{zoneKey, "ap-northeast-2a", "rack", "r1"}, true},
		{"no rack", []string{zoneKey, "ap-northeast-2a"}, false},
		{"no zone", []string{"rack", "r1"}, false},
		{"no labels", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(planningtest.NewPods("w", 1, "100m", "64Mi", requireLabels("app", "web"), affine(terms...)))
			requirePoolLabel(&batch.Snapshot.NodePools[0], "rack", karpenter.NodeSelectorOpIn, "r1", "r2")
			batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) {
				delete(n.Labels, zoneKey)
				for i := 0; i < len(tt.labels); i += 2 {
					n.Labels[tt.labels[i]] = tt.labels[i+1]
				}
				n.Pods = []planning.PodClass{planningtest.NewPods("r", 1, "100m", "64Mi", requireLabels("app", "web"))}
				n.Used = n.Allocatable
			})}
			if result := solve(t, batch); (count(result.Unplaced) == 0) != tt.placed {
				t.Errorf("%d unplaced, want the pod placed: %t", count(result.Unplaced), tt.placed)
			}
		})
	}
}

// TestAffinityFollowsOtherPods plans a database whose affinity over host names selects databases, and another without affinity, which
// kube-scheduler may bind first. So the first one must not open a node of its own: not before the other one's preference is
// dropped, and not when pods are placed one by one.
func TestAffinityFollowsOtherPods(t *testing.T) {
	follower := planningtest.NewPods("follower", 1, "1", "64Mi", requireLabels("app", "db"), affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "db")}),
		func(s *planning.PodSpec) { s.NodeSelector = map[string]string{zoneKey: "ap-northeast-2a"} })
	apart := func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "web")}},
		}}}
	}
	web := func(n *planning.Node) {
		n.Pods = []planning.PodClass{planningtest.NewPods("web-"+n.Name, 1, "100m", "64Mi", requireLabels("app", "web"))}
	}
	for _, tt := range []struct {
		name  string
		other planning.PodClass
		nodes []planning.Node
		want  int
	}{
		{"both fit on a new node", planningtest.NewPods("other", 1, "500m", "64Mi", requireLabels("app", "db")), nil, 0},
		{"the other one prefers another node", planningtest.NewPods("other", 1, "500m", "64Mi", requireLabels("app", "db"), apart), []planning.Node{node("a", inZone("b"), web), node("b", web)}, 1},
		{"the other one does not fit", planningtest.NewPods("other", 1, "5000", "64Mi", requireLabels("app", "db")), nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(follower, tt.other)
			if batch.Snapshot.Nodes = tt.nodes; tt.nodes != nil {
				batch.Snapshot.NodePools = nil
			}
			if result := solve(t, batch); count(result.Unplaced) != tt.want {
				t.Errorf("%d pods are not placed, want %d: %+v", count(result.Unplaced), tt.want, result.Unplaced)
			}
		})
	}
}

// TestFollowersDoNotFit plans a small database with affinity over racks, and others without affinity that do not fit in the rack that
// the small one would choose.
func TestFollowersDoNotFit(t *testing.T) {
	db := requireLabels("app", "db")
	small := planningtest.NewPods("small", 1, "50m", "64Mi", db, affine(corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: selector("app", "db")}))
	others := planningtest.NewPods("others", 4, "3", "64Mi", db)
	batch := planningtest.NewBatch(small, others)
	batch.Snapshot.NodePools = nil
	for i, cpu := range []string{"2", "16"} {
		batch.Snapshot.Nodes = append(batch.Snapshot.Nodes, node(fmt.Sprint("n", i), func(n *planning.Node) {
			n.Labels["rack"], n.Allocatable[corev1.ResourceCPU] = fmt.Sprint("r", i), resource.MustParse(cpu)
		}))
	}
	if result := solve(t, batch); count(result.Unplaced) > 0 {
		t.Errorf("unplaced: %+v", result.Unplaced)
	}
	if result := solver.FirstEffort(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())); count(result.Unplaced) > 0 {
		t.Errorf("the first effort left %+v", result.Unplaced)
	}
}

// TestFollowersWithPreferences plans a database with affinity over zones, and another without affinity that is placed only after it drops a
// preference, and whose zone differs from the one that the first would choose. No second effort is needed.
func TestFollowersWithPreferences(t *testing.T) {
	db := requireLabels("app", "db")
	first := planningtest.NewPods("first", 2, "50m", "64Mi", db, affine(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "db")}))
	other := planningtest.NewPods("other", 1, "3", "64Mi", db, func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "absent")}},
		}}}
	})
	batch := inZones(first, other)
	batch.Snapshot.NodePools = nil
	batch.Snapshot.Nodes = []planning.Node{node("a"), node("b", inZone("b"), func(n *planning.Node) { n.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") })}
	if result := solve(t, batch); count(result.Unplaced) > 0 {
		t.Errorf("unplaced: %+v", result.Unplaced)
	}
	if result := solver.FirstEffort(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())); count(result.Unplaced) > 0 {
		t.Errorf("the first effort left %+v", result.Unplaced)
	}
}

// TestFollowersOfUnplacedPods plans a database whose affinity selects databases, while one runs in another zone, and a pending one may only
// go to its zone but does not fit on any node. It must not follow that one.
func TestFollowersOfUnplacedPods(t *testing.T) {
	inZone := func(s *planning.PodSpec) { s.NodeSelector = map[string]string{zoneKey: "ap-northeast-2c"} }
	for _, tt := range []struct {
		name   string
		host   string
		placed int
	}{
		{"the other one is placed", "web", 3},
		{"the other one is not placed", "missing", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(
				planningtest.NewPods("other", 1, "1", "64Mi", requireLabels("app", "db"), inZone, affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", tt.host)})),
				planningtest.NewPods("web", 1, "100m", "64Mi", requireLabels("app", "web"), inZone),
				planningtest.NewPods("follower", 2, "500m", "64Mi", requireLabels("app", "db"), inZone, affine(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "db")})),
			)
			batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) {
				n.Labels[zoneKey] = "ap-northeast-2b"
				n.Pods = []planning.PodClass{planningtest.NewPods("running", 1, "100m", "64Mi", requireLabels("app", "db"))}
				n.Used = n.Allocatable
			})}
			result := solve(t, batch)
			placed := 3
			for _, u := range result.Unplaced {
				placed -= len(u.Pods)
			}
			if placed != tt.placed {
				t.Errorf("%d databases placed, want %d", placed, tt.placed)
			}
		})
	}
}

// TestClaimPodsOfAffinityOpenNoNodeBeforeOthers plans pods with claims for all devices of a node and with an affinity over host names to
// themselves and to another pod. kube-scheduler may bind the other pod first, and then allows them only on its node.
func TestClaimPodsOfAffinityOpenNoNodeBeforeOthers(t *testing.T) {
	const whole = "on t4g.2xlarge with gpu-0 gpu-1 gpu-2 gpu-3"
	for name, tt := range map[string]struct {
		edit func(other *planning.PodSpec)
		want string
	}{
		"the other pod is placed":                {func(*planning.PodSpec) {}, "z-0 " + whole + "; 2 unplaced: topology: no node with a pod that its affinity over hostnames selects has free capacity"},
		"the other pod has no claim":             {func(s *planning.PodSpec) { s.Claims, s.ResourceClaims = nil, 0 }, "a-0 z-0 " + whole + "; 1 unplaced"},
		"the other pod cannot be placed":         {selecting(corev1.LabelTopologyZone, "mars"), "a-0 " + whole},
		"the affinity does not select the other": {requireLabels("role", "y"), "a-0 " + whole},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClaimCluster()
			own := c.addPods("a", 2, exactly(4, "gpu"))
			requireLabels("role", "x")(&own.Spec)
			affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("role", "x")})(&own.Spec)
			other := c.addPods("z", 1, exactly(4, "gpu"))
			requireLabels("role", "x")(&other.Spec)
			tt.edit(&other.Spec)
			if got := c.solve(t); !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
