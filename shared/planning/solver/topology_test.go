package solver_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// inZones returns the default batch with its pool open to three zones.
func inZones(pending ...planning.PodClass) planning.Batch {
	batch := planningtest.WithoutSpot(planningtest.NewBatch(pending...))
	batch.Snapshot.NodePools[0].Spec.Limits = nil
	status := &batch.Snapshot.NodeClasses[0].Status
	status.Subnets = append(status.Subnets, karpenter.Subnet{ID: "subnet-0b", Zone: "ap-northeast-2b", ZoneID: "apne2-az2"})
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = slices.DeleteFunc(*requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool { return r.Key == corev1.LabelTopologyZone })
	*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{"ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c"},
	})
	return batch
}

// perZone counts the pods on new nodes by the last character of their zone, or "?" if the zone is open.
func perZone(result planning.Result) map[string]int {
	out := map[string]int{}
	for _, n := range result.Nodes {
		zone, ok := n.Requirements[corev1.LabelTopologyZone].SingleValue()
		if !ok {
			zone = "?"
		}
		out[zone[len(zone)-1:]] += len(n.Pods)
	}
	return out
}

func requireLabels(pairs ...string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			s.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func selector(pairs ...string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		out.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return out
}

func spreads(key string, skew int32, edits ...func(*corev1.TopologySpreadConstraint)) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		one := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: s.Labels}}
		for _, edit := range edits {
			edit(&one)
		}
		s.Spread = append(s.Spread, one)
	}
}

func affine(terms ...corev1.PodAffinityTerm) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func averse(terms ...corev1.PodAffinityTerm) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func anyway(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

const zoneKey = corev1.LabelTopologyZone

func TestZones(t *testing.T) {
	web := requireLabels("app", "web")
	toWeb := corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web")}
	for _, tt := range []struct {
		name    string
		classes []planning.PodClass
		want    map[string]int
		left    int
	}{
		{"spread", []planning.PodClass{planningtest.NewPods("w", 7, "500m", "64Mi", web, spreads(zoneKey, 1))}, map[string]int{"a": 3, "b": 2, "c": 2}, 0},
		{"spread with a zone selector", []planning.PodClass{planningtest.NewPods("w", 4, "500m", "64Mi", web, spreads(zoneKey, 1), func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: zoneKey, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"ap-northeast-2c"}}}}}}}}
		})}, map[string]int{"a": 2, "b": 2}, 0},
		{"minDomains above the number of zones", []planning.PodClass{planningtest.NewPods("w", 7, "500m", "64Mi", web,
			spreads(zoneKey, 1, func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(4)) }))}, map[string]int{"a": 1, "b": 1, "c": 1}, 4},
		{"pods of other rules are counted", []planning.PodClass{
			planningtest.NewPods("plain", 3, "900m", "64Mi", web), planningtest.NewPods("w", 3, "500m", "64Mi", web, spreads(zoneKey, 1))},
			map[string]int{"a": 2, "b": 2, "c": 2}, 0},
		{"self-affinity uses one zone", []planning.PodClass{
			planningtest.NewPods("w", 5, "500m", "64Mi", web, affine(toWeb))}, map[string]int{"a": 5}, 0},
		{"self-affinity and anti-affinity to others", []planning.PodClass{
			planningtest.NewPods("other", 1, "900m", "64Mi", requireLabels("app", "db")),
			planningtest.NewPods("w", 2, "500m", "64Mi", web, affine(toWeb), func(s *planning.PodSpec) {
				s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: zoneKey, LabelSelector: selector("app", "db")}}}
			})}, map[string]int{"a": 1, "b": 2}, 0},
		{"affinity to others", []planning.PodClass{
			planningtest.NewPods("w", 2, "500m", "64Mi", web, selecting(zoneKey, "ap-northeast-2b")),
			planningtest.NewPods("big", 3, "900m", "64Mi", affine(toWeb))}, map[string]int{"b": 5}, 0},
		{"affinity that selects no pod", []planning.PodClass{planningtest.NewPods("w", 2, "500m", "64Mi", affine(toWeb))}, map[string]int{}, 2},
		{"anti-affinity", []planning.PodClass{planningtest.NewPods("w", 4, "500m", "64Mi", web, averse(toWeb))}, map[string]int{"a": 1, "b": 1, "c": 1}, 1},
		{"anti-affinity of others", []planning.PodClass{
			planningtest.NewPods("w", 1, "500m", "64Mi", web), planningtest.NewPods("big", 2, "900m", "64Mi", averse(toWeb))},
			map[string]int{"a": 1, "b": 1, "c": 1}, 0},
		{"pods that others exclude share zones", []planning.PodClass{
			planningtest.NewPods("w", 3, "900m", "64Mi", apart("web"), spreads(karpenter.CapacityTypeLabelKey, 5)), planningtest.NewPods("small", 1, "500m", "64Mi", averse(toWeb))},
			map[string]int{"a": 3, "b": 1}, 0},
		{"contradictory affinity and anti-affinity", []planning.PodClass{planningtest.NewPods("w", 2, "500m", "64Mi", web, func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{
				PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{toWeb}},
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{toWeb}}}
		})}, map[string]int{"a": 1}, 1},
		{"ScheduleAnyway is satisfied if possible", []planning.PodClass{planningtest.NewPods("w", 3, "500m", "64Mi", web, spreads(zoneKey, 1, anyway))},
			map[string]int{"a": 1, "b": 1, "c": 1}, 0},
		{"ScheduleAnyway is dropped if necessary", []planning.PodClass{planningtest.NewPods("w", 3, "500m", "64Mi", web, spreads(zoneKey, 1, anyway,
			func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(4)) }), selecting(zoneKey, "ap-northeast-2b"))}, map[string]int{"b": 3}, 0},
		{"in pairs: matchLabelKeys", []planning.PodClass{
			planningtest.NewPods("v1", 2, "500m", "64Mi", requireLabels("app", "web", "rev", "1"), averse(withKeys(toWeb, []string{"rev"}, nil))),
			planningtest.NewPods("v2", 2, "500m", "64Mi", requireLabels("app", "web", "rev", "2"), averse(withKeys(toWeb, []string{"rev"}, nil)))},
			map[string]int{"a": 2, "b": 1, "c": 1}, 0},
		{"other revisions only: mismatchLabelKeys", []planning.PodClass{
			planningtest.NewPods("v1", 4, "500m", "64Mi", requireLabels("app", "web", "rev", "1"), averse(withKeys(toWeb, nil, []string{"rev"}))),
			planningtest.NewPods("v2", 1, "400m", "64Mi", requireLabels("app", "web", "rev", "2"), averse(withKeys(toWeb, nil, []string{"rev", "absent"})))},
			map[string]int{"a": 4, "b": 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := solve(t, inZones(tt.classes...))
			got := perZone(result)
			if diff := cmp.Diff(sizes(tt.want), sizes(got)); diff != "" && !maps.Equal(got, tt.want) {
				t.Errorf("pods by zone (-want +got):\n%s", diff)
			}
			if left := count(result.Unplaced); left != tt.left {
				t.Errorf("%d unplaced pods, want %d: %+v", left, tt.left, result.Unplaced)
			}
		})
	}
}

// TestPodsAvoidFullSpreads plans a pod for zone a or b. It has no rule, but the spread of other pods counts it, which allows
// no more pods in zone b, where these are.
func TestPodsAvoidFullSpreads(t *testing.T) {
	web, everyZone := requireLabels("app", "web"), corev1.NodeInclusionPolicyIgnore
	batch := inZones(
		planningtest.NewPods("spread", 2, "500m", "64Mi", web, selecting(zoneKey, "ap-northeast-2b"), spreads(zoneKey, 2, func(c *corev1.TopologySpreadConstraint) {
			c.NodeAffinityPolicy = &everyZone
		})),
		planningtest.NewPods("free", 1, "400m", "64Mi", web, inOneOf(zoneKey, "ap-northeast-2a", "ap-northeast-2b")),
	)
	batch.Snapshot.Nodes = []planning.Node{node("full", func(n *planning.Node) {
		n.Pods, n.Used = []planning.PodClass{planningtest.NewPods("running", 3, "100m", "64Mi", web)}, n.Allocatable
	})}
	if got := perZone(solve(t, batch)); got["a"] != 1 || got["b"] != 2 {
		t.Errorf("pods by zone %v, want the pod in zone a", got)
	}
}

func inOneOf(key string, values ...string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}},
		}}}
	}
}

func withKeys(t corev1.PodAffinityTerm, match, mismatch []string) corev1.PodAffinityTerm {
	t.MatchLabelKeys, t.MismatchLabelKeys = match, mismatch
	return t
}

// sizes returns the sorted counts without the zones, which all cost the same.
func sizes(zones map[string]int) []int {
	if _, open := zones["?"]; open {
		return []int{-1}
	}
	return slices.Sorted(maps.Values(zones))
}

func count(unplaced []planning.UnplacedPods) int {
	n := 0
	for _, u := range unplaced {
		n += len(u.Pods)
	}
	return n
}

// TestOtherNamespaces checks rules against running pods in a namespace with labels.
func TestOtherNamespaces(t *testing.T) {
	in := func(namespace string) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) { s.Namespace = namespace }
	}
	for _, tt := range []struct {
		name string
		term corev1.PodAffinityTerm
		want bool
	}{
		{"own namespace only", corev1.PodAffinityTerm{}, false},
		{"named", corev1.PodAffinityTerm{Namespaces: []string{"shop"}}, true},
		{"selected", corev1.PodAffinityTerm{NamespaceSelector: selector("team", "shop")}, true},
		{"not selected", corev1.PodAffinityTerm{NamespaceSelector: selector("team", "bank")}, false},
		{"all", corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.term.TopologyKey, tt.term.LabelSelector = zoneKey, selector("app", "db")
			batch := inZones(planningtest.NewPods("w", 1, "1900m", "64Mi", affine(tt.term)))
			batch.Snapshot.Namespaces = map[string]map[string]string{"shop": {"team": "shop"}}
			batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) {
				n.Labels[zoneKey] = "ap-northeast-2c"
				n.Pods = []planning.PodClass{planningtest.NewPods("db", 1, "1", "64Mi", requireLabels("app", "db"), in("shop"))}
				n.Used = planningtest.NewRequests("1", "64Mi")
			})}
			result := solve(t, batch)
			if got := perZone(result); (got["c"] == 1) != tt.want || (count(result.Unplaced) == 0) != tt.want {
				t.Errorf("pods by zone %v, %d unplaced; want it with the database: %t", got, count(result.Unplaced), tt.want)
			}
		})
	}
}

// TestAffinityOfSeveralTerms plans a pod whose affinity has two terms. kube-scheduler counts only pods that both select, and lets a pod
// be the first only if both select it.
func TestAffinityOfSeveralTerms(t *testing.T) {
	terms := []corev1.PodAffinityTerm{{TopologyKey: zoneKey, LabelSelector: selector("app", "web")}, {TopologyKey: corev1.LabelHostname, LabelSelector: selector("tier", "db")}}
	for _, tt := range []struct {
		name    string
		own     []string
		running [][]string
		placed  bool
	}{
		{"no pods", nil, nil, false},
		{"a pod that both select", nil, [][]string{{"app", "web", "tier", "db"}}, true},
		{"one pod for each term", nil, [][]string{{"app", "web"}, {"tier", "db"}}, false},
		{"the pod itself", []string{"app", "web", "tier", "db"}, nil, true},
		{"the pod itself for one term", []string{"app", "web"}, nil, false},
		{"the pod itself for one term, and a pod for the other", []string{"app", "web"}, [][]string{{"tier", "db"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(planningtest.NewPods("w", 1, "100m", "64Mi", requireLabels(tt.own...), affine(terms...)))
			n := node("n")
			for i, labels := range tt.running {
				n.Pods = append(n.Pods, planningtest.NewPods(fmt.Sprint("r", i), 1, "100m", "64Mi", requireLabels(labels...)))
			}
			batch.Snapshot.Nodes = []planning.Node{n}
			if result := solve(t, batch); (count(result.Unplaced) == 0) != tt.placed {
				t.Errorf("%d unplaced, want the pod placed: %t", count(result.Unplaced), tt.placed)
			}
		})
	}
}

// TestUnreadableNamespaceSelector plans a pod with an affinity that the API server would reject. It stays unplaced.
func TestUnreadableNamespaceSelector(t *testing.T) {
	unreadable := corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web"), NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near"}},
	}}
	result := solve(t, inZones(planningtest.NewPods("w", 1, "100m", "64Mi", requireLabels("app", "web"), affine(unreadable))))
	if count(result.Unplaced) != 1 || !strings.Contains(result.Unplaced[0].Rejections[0].Detail, "invalid namespaceSelector") {
		t.Errorf("%d nodes, unplaced %+v", len(result.Nodes), result.Unplaced)
	}
}

// TestUnreadableTermsOfRunningPods plans a pod for the zone of a running pod with two anti-affinities. Kubernetes ignores the first,
// which it cannot read, and the second excludes the pod.
func TestUnreadableTermsOfRunningPods(t *testing.T) {
	unreadable := corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web"), NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near"}},
	}}
	guard := planningtest.NewPods("guard", 1, "100m", "64Mi", averse(unreadable, corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web")}))
	web := planningtest.NewPods("web", 1, "100m", "64Mi", requireLabels("app", "web"), zoneOf("a"))
	batch := inZones(web)
	batch.Snapshot.Nodes = []planning.Node{node("n", running(guard))}
	if result := solve(t, batch); count(result.Unplaced) != 1 {
		t.Errorf("nominations %+v and %d nodes, want the pod unplaced", result.Nominations, len(result.Nodes))
	}
	snapshot := batch.Snapshot
	snapshot.Nodes = append(snapshot.Nodes, node("old", running(web)))
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	if result := simulation.SimulateRemoval(1); count(result.Unplaced) != 1 {
		t.Errorf("after the removal of its node: nominations %+v and %d nodes, want the pod unplaced", result.Nominations, len(result.Nodes))
	}
}

// TestNoNamespaceIsNotAllNamespaces plans pods with anti-affinity to databases, which run in every zone: to those of all
// namespaces, and to those of namespaces that do not exist.
func TestNoNamespaceIsNotAllNamespaces(t *testing.T) {
	away := func(namespaces *metav1.LabelSelector) func(*planning.PodSpec) {
		return averse(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "db"), NamespaceSelector: namespaces})
	}
	batch := inZones(
		planningtest.NewPods("all", 1, "500m", "64Mi", away(&metav1.LabelSelector{})),
		planningtest.NewPods("none", 1, "400m", "64Mi", away(selector("team", "absent"))),
	)
	for _, letter := range []string{"a", "b", "c"} {
		batch.Snapshot.Nodes = append(batch.Snapshot.Nodes, node(letter, inZone(letter), func(n *planning.Node) {
			n.Pods, n.Used = []planning.PodClass{planningtest.NewPods("db-"+letter, 1, "1", "64Mi", requireLabels("app", "db"))}, n.Allocatable
		}))
	}
	result := solve(t, batch)
	if count(result.Unplaced) != 1 || result.Unplaced[0].Pods[0].Name != "all-0" {
		t.Errorf("unplaced %+v, want the pod that all databases exclude", result.Unplaced)
	}
}

// TestOtherLabels spreads over labels other than zone and host name.
func TestOtherLabels(t *testing.T) {
	web := requireLabels("app", "web")
	t.Run("capacity type", func(t *testing.T) {
		batch := inZones(planningtest.NewPods("w", 4, "500m", "64Mi", web, spreads(karpenter.CapacityTypeLabelKey, 1)))
		batch.Snapshot.Unavailable = nil
		got := map[string]int{}
		for _, n := range solve(t, batch).Nodes {
			kind, _ := n.Requirements[karpenter.CapacityTypeLabelKey].SingleValue()
			got[kind] += len(n.Pods)
		}
		if diff := cmp.Diff(map[string]int{"spot": 2, "on-demand": 2}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a label of the pool", func(t *testing.T) {
		batch := inZones(planningtest.NewPods("w", 6, "500m", "64Mi", web, spreads("slice", 1)))
		requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
		*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "slice", Operator: karpenter.NodeSelectorOpIn, Values: []string{"1", "2", "3"}})
		got := map[string]int{}
		for _, n := range solve(t, batch).Nodes {
			slice, _ := n.Requirements["slice"].SingleValue()
			got[slice] += len(n.Pods)
		}
		if diff := cmp.Diff(map[string]int{"1": 2, "2": 2, "3": 2}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a label that no node has", func(t *testing.T) {
		if result := solve(t, inZones(planningtest.NewPods("w", 2, "500m", "64Mi", web, spreads("rack", 1)))); count(result.Unplaced) != 2 {
			t.Errorf("%d unplaced pods, want both", count(result.Unplaced))
		}
	})
}

func TestHosts(t *testing.T) {
	web, host := requireLabels("app", "web"), corev1.LabelHostname
	toWeb := corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selector("app", "web")}
	preferApart := func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: toWeb}}}}
	}
	for _, tt := range []struct {
		name    string
		classes []planning.PodClass
		nodes   int
		limit   string
		left    int
	}{
		{"self-affinity", []planning.PodClass{planningtest.NewPods("w", 3, "900m", "64Mi", web, affine(toWeb))}, 1, "", 0},
		{"self-affinity of more pods than fit", []planning.PodClass{planningtest.NewPods("w", 9, "900m", "64Mi", web, affine(toWeb))}, 1, "", 5},
		{"affinity to a pod that may be bound first", []planning.PodClass{
			planningtest.NewPods("w", 1, "1100m", "64Mi", web), planningtest.NewPods("follower", 2, "900m", "64Mi", web, affine(toWeb))}, 1, "", 0},
		{"affinity to another pod", []planning.PodClass{planningtest.NewPods("w", 1, "900m", "64Mi", web), planningtest.NewPods("side", 1, "100m", "64Mi", affine(toWeb))}, 1, "", 0},
		{"affinity to own pods by hostname", []planning.PodClass{
			planningtest.NewPods("w", 2, "1500m", "64Mi", web, averse(toWeb)), planningtest.NewPods("side", 2, "300m", "64Mi", affine(toWeb))}, 2, "", 0},
		{"preferred anti-affinity", []planning.PodClass{planningtest.NewPods("w", 3, "100m", "64Mi", web, preferApart)}, 3, "", 0},
		{"preferred anti-affinity, limit of nodes", []planning.PodClass{planningtest.NewPods("w", 3, "100m", "64Mi", web, preferApart)}, 1, "2", 0},
		{"spread, two to a node", []planning.PodClass{planningtest.NewPods("w", 4, "100m", "64Mi", web, spreads(host, 2))}, 2, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(tt.classes...)
			if tt.limit != "" {
				batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse(tt.limit)}
			}
			result := solve(t, batch)
			if len(result.Nodes) != tt.nodes || count(result.Unplaced) != tt.left {
				t.Errorf("%d nodes and %d unplaced pods, want %d and %d: %+v", len(result.Nodes), count(result.Unplaced), tt.nodes, tt.left, result.Unplaced)
			}
		})
	}
}

// TestAttachLimits checks attach limits of existing and new nodes.
func TestAttachLimits(t *testing.T) {
	var classes []planning.PodClass
	for i := range 4 {
		classes = append(classes, planningtest.NewPods(fmt.Sprint("db-", i), 1, "100m", "64Mi", func(s *planning.PodSpec) {
			for v := range 12 {
				s.Volumes = append(s.Volumes, planning.Volume{Claim: fmt.Sprint("data-", i, "-", v), Driver: catalog.EBSDriver})
			}
		}))
	}
	batch := inZones(classes...)
	limited := node("n", func(n *planning.Node) {
		n.Allocatable[planning.AttachLimitResource(catalog.EBSDriver)] = resource.MustParse("25")
		n.Used = corev1.ResourceList{planning.AttachLimitResource(catalog.EBSDriver): resource.MustParse("10")}
	})
	batch.Snapshot.Nodes = []planning.Node{limited}
	result := solve(t, batch)
	if len(result.Nominations) != 1 {
		t.Errorf("%d pods on a node with 15 free attachments, want 1 pod of 12 volumes", len(result.Nominations))
	}
	for _, n := range result.Nodes {
		if len(n.Pods) > 2 {
			t.Errorf("%d pods of 12 volumes on one new node", len(n.Pods))
		}
		if _, asked := n.Requests[planning.AttachLimitResource(catalog.EBSDriver)]; asked {
			t.Error("the claim requests volume attachments")
		}
	}
	if len(result.Unplaced) > 0 || len(result.Nodes) < 2 {
		t.Errorf("%d new nodes, unplaced %+v", len(result.Nodes), result.Unplaced)
	}
}

// TestSelfAffinityLetsOthersSpread plans a pod with affinity to its own label, and pods with that label and no rules. One of these
// must follow the first pod, which may be bound later; the others are spread over the zones.
func TestSelfAffinityLetsOthersSpread(t *testing.T) {
	web := requireLabels("app", "web")
	result := solve(t, inZones(
		planningtest.NewPods("leader", 1, "900m", "64Mi", web, affine(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web")})),
		planningtest.NewPods("web", 6, "500m", "64Mi", web)))
	if diff := cmp.Diff([]int{2, 2, 3}, sizes(perZone(result))); diff != "" {
		t.Errorf("pods by zone %v (-want +got):\n%s", perZone(result), diff)
	}
}

// TestSelfAffinityFollows plans pods with an affinity to their own label together with one pod that
// has the label but not the affinity. kube-scheduler may bind that pod first, so that all others must
// go where it is.
func TestSelfAffinityFollows(t *testing.T) {
	web := requireLabels("app", "web")
	toWeb := corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web")}
	follower := func(edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods("follower", 2, "300m", "64Mi", append(edits, web, affine(toWeb))...)
	}
	for _, tt := range []struct {
		name    string
		classes []planning.PodClass
		want    map[string]int
		left    int
	}{
		{"pinned and larger", []planning.PodClass{planningtest.NewPods("w", 1, "900m", "64Mi", web, selecting(zoneKey, "ap-northeast-2c")), follower()}, map[string]int{"c": 3}, 0},
		{"pinned and smaller", []planning.PodClass{planningtest.NewPods("w", 1, "100m", "64Mi", web, selecting(zoneKey, "ap-northeast-2c")), follower()}, map[string]int{"c": 3}, 0},
		{"free, with pinned followers", []planning.PodClass{
			planningtest.NewPods("w", 1, "900m", "64Mi", web), follower(selecting(zoneKey, "ap-northeast-2b"))}, map[string]int{"b": 3}, 0},
		{"free, with a free follower", []planning.PodClass{
			planningtest.NewPods("w", 1, "100m", "64Mi", web), planningtest.NewPods("follower", 1, "300m", "64Mi", web, affine(toWeb))}, map[string]int{"a": 2}, 0},
		{"pinned to a zone that the followers exclude", []planning.PodClass{
			planningtest.NewPods("w", 1, "900m", "64Mi", web, selecting(zoneKey, "ap-northeast-2c")), follower(selecting(zoneKey, "ap-northeast-2b"))}, map[string]int{"c": 1}, 2},
		{"too large for any node", []planning.PodClass{
			planningtest.NewPods("w", 1, "900", "64Mi", web, selecting(zoneKey, "ap-northeast-2c")), follower(selecting(zoneKey, "ap-northeast-2b"))}, map[string]int{"b": 2}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := solve(t, inZones(tt.classes...))
			if got := perZone(result); !maps.Equal(got, tt.want) || count(result.Unplaced) != tt.left {
				t.Errorf("pods by zone %v and %d unplaced, want %v and %d: %+v", got, count(result.Unplaced), tt.want, tt.left, result.Unplaced)
			}
		})
	}
}
