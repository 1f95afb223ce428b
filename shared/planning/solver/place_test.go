package solver_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// apart gives pods of one app anti-affinity to each other over host names.
func apart(app string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Labels = map[string]string{"app": app}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
}

// spread spreads pods of one app over host names with the given skew.
func spread(app string, skew int32) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Labels = map[string]string{"app": app}
		s.Spread = []corev1.TopologySpreadConstraint{{
			TopologyKey: corev1.LabelHostname, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	}
}

func selecting(key, value string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) { s.NodeSelector = map[string]string{key: value} }
}

// requireExpression requires a label with one expression.
func requireExpression(key string, operator corev1.NodeSelectorOperator, values ...string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}},
		}}}
	}
}

// node returns an initialized node of the default pool.
func node(name string, edits ...func(*planning.Node)) planning.Node {
	n := planning.Node{
		Name: name, Claim: name, NodePool: "default", Launched: true, Registered: true, Initialized: true, Ready: true,
		Labels: map[string]string{
			corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: "ap-northeast-2a",
			corev1.LabelHostname: name, karpenter.NodePoolLabelKey: "default",
		},
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("10"),
		},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")},
	}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

// placed returns how many pods each existing node got, and the number of new nodes.
func placed(result planning.Result) (onto map[string]int, fresh int) {
	onto = map[string]int{}
	for _, n := range result.Nominations {
		onto[n.Claim+n.Node]++
	}
	return onto, len(result.Nodes)
}

func TestExistingNodesFirst(t *testing.T) {
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	starting := func(n *planning.Node) {
		n.Initialized, n.Taints = false, []corev1.Taint{notReady, karpenter.UnregisteredTaint()}
	}
	agent := corev1.Taint{Key: "node.cilium.io/agent-not-ready", Value: "true", Effect: corev1.TaintEffectNoExecute}
	withStartupTaint := func(n *planning.Node) {
		n.StartupTaints, n.Taints = []corev1.Taint{agent}, append(slices.Clone(n.Taints), agent)
	}
	for _, tt := range []struct {
		name  string
		nodes []planning.Node
		pods  int
		want  map[string]int
		fresh int
	}{
		{"free capacity on a node", []planning.Node{node("a")}, 2, map[string]int{"aa": 2}, 0},
		{"the remaining pod needs a new node", []planning.Node{node("a")}, 3, map[string]int{"aa": 2}, 1},
		{"initialized before starting", []planning.Node{node("a", starting), node("b")}, 1, map[string]int{"bb": 1}, 0},
		{"startup taints of its NodeClaim, which its NodePool no longer has", []planning.Node{node("a", starting, withStartupTaint)}, 1, map[string]int{"aa": 1}, 0},
		{"startup taints of a NodeClaim without a NodePool", []planning.Node{node("a", starting, withStartupTaint, func(n *planning.Node) { n.NodePool = "" })}, 1, map[string]int{"aa": 1}, 0},
		{"that taint on an initialized node", []planning.Node{node("a", withStartupTaint)}, 1, map[string]int{}, 1},
		{"startup taints of a starting node", []planning.Node{node("a", starting)}, 1, map[string]int{"aa": 1}, 0},
		{"the same taints on an initialized node", []planning.Node{node("a", func(n *planning.Node) { n.Taints = []corev1.Taint{notReady} })}, 1, map[string]int{}, 1},
		{"the capacity of a rebooting node returns", []planning.Node{node("a", func(n *planning.Node) { n.Taints, n.Rebooting = []corev1.Taint{karpenter.RebootingTaint()}, true })}, 1, map[string]int{"aa": 1}, 0},
		{"the taint of a reboot that has ended", []planning.Node{node("a", func(n *planning.Node) { n.Taints = []corev1.Taint{karpenter.RebootingTaint()} })}, 1, map[string]int{}, 1},
		{"going", []planning.Node{node("a", func(n *planning.Node) { n.MarkedForDeletion = true })}, 1, map[string]int{}, 1},
		{"no free capacity", []planning.Node{node("a", func(n *planning.Node) {
			n.Used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
		})}, 1, map[string]int{}, 1},
		{"overcommitted in another resource", []planning.Node{node("a", func(n *planning.Node) {
			n.Used = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("5Gi")}
		})}, 1, map[string]int{}, 1},
		{"not managed", []planning.Node{node("a", func(n *planning.Node) { n.Claim, n.NodePool = "", "" })}, 1, map[string]int{"a": 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(planningtest.NewPods("web", tt.pods, "1", "0"))
			batch.Snapshot.Nodes = tt.nodes
			result := solver.Solve(batch, planningtest.NewCatalogue())
			onto, fresh := placed(result)
			if diff := cmp.Diff(tt.want, onto); diff != "" || fresh != tt.fresh {
				t.Errorf("%d new nodes, want %d; nominations (-want +got):\n%s", fresh, tt.fresh, diff)
			}
		})
	}
}

// TestPlannedPodsFitTheirClaims plans, adds the NodeClaims to the next snapshot as they are before
// their launch, and plans again: no new node may be planned.
func TestPlannedPodsFitTheirClaims(t *testing.T) {
	batch := planningtest.NewBatch(
		planningtest.NewPods("inflate", 5, "1", "256Mi"),
		planningtest.NewPods("spot", 2, "500m", "1Gi", selecting(karpenter.CapacityTypeLabelKey, "spot")),
		planningtest.NewPods("apart", 3, "100m", "0", apart("x")),
		planningtest.NewPods("named", 1, "100m", "0", requireExpression(corev1.LabelHostname, corev1.NodeSelectorOpExists)),
		planningtest.NewPods("above", 1, "100m", "0", requireExpression("example.com/tier", corev1.NodeSelectorOpGt, "5")),
		planningtest.NewPods("below", 1, "100m", "0", requireExpression("example.com/tier", corev1.NodeSelectorOpLt, "3")),
	)
	requirePoolLabel(&batch.Snapshot.NodePools[0], "example.com/tier", corev1.NodeSelectorOpExists)
	batch.Snapshot.DaemonSets = []planning.PodSpec{
		{Namespace: "kube-system", Requests: planningtest.NewRequests("100m", "64Mi")},
		{Namespace: "kube-system", Requests: planningtest.NewRequests("200m", "64Mi"), NodeSelector: map[string]string{corev1.LabelArchStable: "amd64"}},
		{Namespace: "kube-system", Requests: planningtest.NewRequests("50m", "64Mi"), NodeSelector: map[string]string{corev1.LabelTopologyZone: "ap-northeast-2a"}},
	}
	first := solve(t, batch)
	if len(first.Unplaced) > 0 {
		t.Fatalf("unplaced: %+v", first.Unplaced)
	}
	for _, n := range first.Nodes {
		name := string(rune('a' + len(batch.Snapshot.Nodes)))
		claim := planning.Node{
			Name: name, Claim: name, NodePool: n.NodePool, Labels: n.Requirements.Labels(),
			Requirements: n.Requirements.NodeSelectorRequirements(), Allocatable: n.Requests,
		}
		for _, pod := range n.Pods {
			claim.ExpectedPods = append(claim.ExpectedPods, pod.Pod.UID)
		}
		batch.Snapshot.Nodes = append(batch.Snapshot.Nodes, claim)
	}
	again := solver.Solve(batch, planningtest.NewCatalogue())
	if len(again.Nodes) > 0 || len(again.Unplaced) > 0 {
		t.Errorf("second plan: %d new nodes, unplaced %+v", len(again.Nodes), again.Unplaced)
	}
	launched := batch
	launched.Snapshot.Nodes = slices.Clone(batch.Snapshot.Nodes)
	for i := range launched.Snapshot.Nodes {
		n := &launched.Snapshot.Nodes[i]
		n.Launched, n.Requirements, n.Labels = true, nil, maps.Clone(n.Labels)
		maps.Copy(n.Labels, map[string]string{corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: "ap-northeast-2a", karpenter.CapacityTypeLabelKey: "spot"})
	}
	if third := solver.Solve(launched, planningtest.NewCatalogue()); len(third.Nodes) > 0 || len(third.Unplaced) > 0 {
		t.Errorf("plan while the instances boot: %d new nodes, unplaced %+v", len(third.Nodes), third.Unplaced)
	}
	batch.Pending = append(batch.Pending, planningtest.NewPods("one-more", 1, "100m", "0"))
	if more := solver.Solve(batch, planningtest.NewCatalogue()); len(more.Nodes) != 1 {
		t.Errorf("%d new nodes for one more pod, want 1 because the claims are full", len(more.Nodes))
	}
}

func TestRulesOnOneNode(t *testing.T) {
	port := func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{Port: 80}} }
	for _, tt := range []struct {
		name  string
		class planning.PodClass
		fresh int
	}{
		{"limit of zero", planningtest.NewPods("a", 3, "100m", "0"), 1},
		{"anti-affinity over hosts", planningtest.NewPods("a", 3, "100m", "0", apart("a")), 3},
		{"spread over hosts", planningtest.NewPods("a", 3, "100m", "0", spread("a", 2)), 2},
		{"host ports", planningtest.NewPods("a", 3, "100m", "0", port), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if result := solve(t, planningtest.NewBatch(tt.class)); len(result.Nodes) != tt.fresh {
				t.Errorf("%d nodes, want %d", len(result.Nodes), tt.fresh)
			}
		})
	}
}

func TestRunningPodsAreRespected(t *testing.T) {
	guard := planningtest.NewPods("guard", 1, "100m", "0", apart("web"))
	guard.Spec.Labels = map[string]string{"app": "guard"}
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0", func(s *planning.PodSpec) { s.Labels = map[string]string{"app": "web"} }))
	batch.Snapshot.Nodes = []planning.Node{node("a", func(n *planning.Node) { n.Pods = []planning.PodClass{guard} })}
	if onto, fresh := placed(solve(t, batch)); len(onto) != 0 || fresh != 1 {
		t.Errorf("nominations %v and %d new nodes, want 1 new node because of the running pod's anti-affinity", onto, fresh)
	}

	batch.Snapshot.Nodes[0].Pods = []planning.PodClass{planningtest.NewPods("other", 1, "100m", "0", apart("web"))}
	if onto, fresh := placed(solve(t, batch)); len(onto) != 0 || fresh != 1 {
		t.Errorf("nominations %v and %d new nodes, want 1 new node because of the anti-affinity of a running pod of the same app", onto, fresh)
	}

	guard.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = corev1.LabelTopologyZone
	batch.Snapshot.Nodes[0].Pods = []planning.PodClass{guard}
	if rules, detail := labelRule(t, batch); rules[0] != planning.RuleTopology {
		t.Errorf("rejected by %v: %s; want the running pod's anti-affinity over the zone", rules, detail)
	}
}

func topologyTerm(key, value string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
}

func TestNodeAffinity(t *testing.T) {
	required := func(terms ...corev1.NodeSelectorTerm) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	preferred := func(terms ...corev1.PreferredSchedulingTerm) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
		}
	}
	size := func(name string) corev1.NodeSelectorTerm { return topologyTerm(karpenter.LabelInstanceSize, name) }
	for _, tt := range []struct {
		name   string
		edit   func(*planning.PodSpec)
		policy string
		want   string
	}{
		{"none", func(*planning.PodSpec) {}, "", "t4g.medium"},
		{"second term matches", required(size("8xlarge"), size("large")), "", "t4g.large"},
		{"satisfied preference", preferred(corev1.PreferredSchedulingTerm{Weight: 1, Preference: size("xlarge")}), "", "t4g.xlarge"},
		{"heaviest preference", preferred(
			corev1.PreferredSchedulingTerm{Weight: 1, Preference: size("xlarge")}, corev1.PreferredSchedulingTerm{Weight: 9, Preference: size("large")}), "", "t4g.large"},
		{"unsatisfiable preference is dropped", preferred(
			corev1.PreferredSchedulingTerm{Weight: 9, Preference: size("8xlarge")}, corev1.PreferredSchedulingTerm{Weight: 1, Preference: size("large")}), "", "t4g.large"},
		{"ignored", preferred(corev1.PreferredSchedulingTerm{Weight: 1, Preference: size("xlarge")}), "Ignore", "t4g.medium"},
		{"zone of a volume", func(s *planning.PodSpec) {
			s.Volumes = []planning.Volume{{Claim: "d", Alternatives: []corev1.NodeSelectorTerm{
				topologyTerm("topology.ebs.csi.aws.com/zone", "ap-northeast-2c"), topologyTerm("topology.ebs.csi.aws.com/zone", "ap-northeast-2a")}}}
		}, "", "t4g.medium"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.WithoutSpot(planningtest.NewBatch(planningtest.NewPods("a", 1, "100m", "0", tt.edit)))
			batch.Snapshot.Settings.PreferencePolicy = tt.policy
			if got := solve(t, batch).Nodes[0].Offerings[0].InstanceType; got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Each volume of a pod may be in one of three zones. All must be in the same one, and a selector requires the last.
func TestZonesOfManyVolumes(t *testing.T) {
	for count := 1; count <= 6; count++ {
		result := solve(t, planningtest.NewBatch(planningtest.NewPods("db", 1, "100m", "0", selecting(corev1.LabelTopologyZone, "ap-northeast-2a"), func(s *planning.PodSpec) {
			for range count {
				s.Volumes = append(s.Volumes, planning.Volume{Driver: "ebs.csi.aws.com", Alternatives: []corev1.NodeSelectorTerm{
					topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2b"), topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2c"), topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2a"),
				}})
			}
		})))
		if len(result.Nodes) != 1 || result.Nodes[0].Offerings[0].Zone != "ap-northeast-2a" {
			t.Errorf("%d volumes: %d nodes, unplaced %+v", count, len(result.Nodes), result.Unplaced)
		}
	}
}

func TestPreferNoScheduleIsRelaxedLast(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("a", 1, "100m", "0"))
	soft := []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	tainted, plain := planningtest.NewNodePool(), planningtest.NewNodePool()
	tainted.Name, tainted.Spec.Template.Spec.Taints, plain.Name = "z-tainted", soft, "a-plain"
	batch.Snapshot.NodePools = []karpenter.NodePool{tainted, plain}
	if got := solve(t, batch).Nodes[0].NodePool; got != "a-plain" {
		t.Errorf("pool %s, want the pool without the taint", got)
	}
	batch.Snapshot.NodePools = []karpenter.NodePool{tainted}
	if got := solve(t, batch); len(got.Nodes) != 1 {
		t.Errorf("unplaced %+v, want the pod on the tainted pool", got.Unplaced)
	}
}

func TestDaemonsUseCapacity(t *testing.T) {
	batch := planningtest.WithoutSpot(planningtest.NewBatch(planningtest.NewPods("a", 1, "1900m", "0")))
	if got := solve(t, batch).Nodes[0].Offerings[0].InstanceType; got != "t4g.medium" {
		t.Fatalf("without daemons: %s", got)
	}
	batch.Snapshot.DaemonSets = []planning.PodSpec{{Namespace: "kube-system", Requests: planningtest.NewRequests("100m", "0")}}
	n := solve(t, batch).Nodes[0]
	if got := n.Offerings[0].InstanceType; got != "t4g.xlarge" {
		t.Errorf("with a daemon: %s, want the larger type", got)
	}
	if cpu := n.Requests[corev1.ResourceCPU]; cpu.MilliValue() != 2000 {
		t.Errorf("cpu requests of the claim = %s, want the sum of pod and daemon", cpu.String())
	}
}

func TestCustomLabelsGetAValue(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("a", 1, "100m", "0", func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "team", Operator: corev1.NodeSelectorOpExists}}}}}}}
	}))
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "team", Operator: karpenter.NodeSelectorOpIn, Values: []string{"web", "shop"}})
	if got := solve(t, batch).Nodes[0].Requirements.Labels()["team"]; got != "shop" {
		t.Errorf("label team = %q, want a value that the planner chose", got)
	}
}

// TestEachRunningRuleIsRespected keeps a pod off a node whose running pod excludes it with its second rule.
func TestEachRunningRuleIsRespected(t *testing.T) {
	for name, first := range map[string]corev1.PodAffinityTerm{
		"a rule that selects no pending pod":      {TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "missing")},
		"a rule that selects another pod by zone": {TopologyKey: corev1.LabelTopologyZone, LabelSelector: selector("app", "other")},
	} {
		guard := planningtest.NewPods("guard", 1, "100m", "0", requireLabels("app", "guard"), averse(first, corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "web"),
		}))
		batch := inZones(planningtest.NewPods("web", 1, "100m", "0", requireLabels("app", "web")), planningtest.NewPods("other", 1, "100m", "0", requireLabels("app", "other")))
		if name == "a rule that selects no pending pod" {
			batch.Pending = batch.Pending[:1]
		}
		batch.Snapshot.Nodes = []planning.Node{node("a", func(n *planning.Node) { n.Pods = []planning.PodClass{guard} })}
		if r := solve(t, batch); len(r.Nominations) != 0 || len(r.Unplaced) != 0 {
			t.Errorf("%s: nominations %v, unplaced %v", name, r.Nominations, r.Unplaced)
		}
	}
}

// TestUnlaunchedNodeMustSuit places no pod on a NodeClaim that may still get a value that the pod excludes.
func TestUnlaunchedNodeMustSuit(t *testing.T) {
	notARM := func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"r1"}}},
		}}}}}
	}
	for _, tt := range []struct {
		values []string
		want   int
	}{{[]string{"r1", "r2"}, 0}, {[]string{"r2", "r3"}, 1}} {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0", notARM))
		batch.Snapshot.Nodes = []planning.Node{node("a", func(n *planning.Node) {
			n.Launched, n.Registered, n.Initialized, n.Ready = false, false, false, false
			n.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: "rack", Operator: karpenter.NodeSelectorOpIn, Values: tt.values},
				{Key: corev1.LabelArchStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"arm64"}},
			}
		})}
		if onto, _ := placed(solve(t, batch)); onto["a"] != tt.want {
			t.Errorf("rack in %v: %d pods on the NodeClaim, want %d", tt.values, onto["a"], tt.want)
		}
	}
}

// TestExpectedPodsMustSuit does not place a pod on the NodeClaim that was planned for it if it now excludes the pod.
func TestExpectedPodsMustSuit(t *testing.T) {
	for value, want := range map[string]int{"arm64": 1, "amd64": 0} {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0", selecting(corev1.LabelArchStable, value)))
		batch.Snapshot.Nodes = []planning.Node{node("a", func(n *planning.Node) { n.ExpectedPods = []string{batch.Pending[0].Pods[0].UID} })}
		if onto, _ := placed(solver.Solve(batch, planningtest.NewCatalogue())); onto["aa"] != want {
			t.Errorf("a pod for %s: %d pods on the node, want %d", value, onto["aa"], want)
		}
	}
}

// TestExpectedPodsAreExcluded does not place a pod on the NodeClaim that was planned for it if pods that run since then exclude it from
// the zone, or from one of the zones in which the NodeClaim may be launched.
func TestExpectedPodsAreExcluded(t *testing.T) {
	const a, b, c = "ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c"
	for _, tt := range []struct {
		app   string
		zones []string // where the NodeClaim may be launched; nil for one that is launched in zone a
		want  int
	}{{"db", nil, 1}, {"web", nil, 0}, {"db", []string{a, b}, 1}, {"web", []string{a, b}, 0}, {"web", []string{b, c}, 1}} {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0", requireLabels("app", "web")))
		away := averse(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", tt.app)})
		batch.Snapshot.Nodes = []planning.Node{
			node("a", func(n *planning.Node) {
				n.ExpectedPods = []string{batch.Pending[0].Pods[0].UID}
				if tt.zones == nil {
					return
				}
				n.Launched, n.Registered, n.Initialized, n.Ready = false, false, false, false
				delete(n.Labels, zoneKey)
				n.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: zoneKey, Operator: karpenter.NodeSelectorOpIn, Values: tt.zones}}
			}),
			node("b", func(n *planning.Node) { n.Pods = []planning.PodClass{planningtest.NewPods("r", 1, "0", "0", away)} }),
		}
		if onto, _ := placed(solver.Solve(batch, planningtest.NewCatalogue())); onto["aa"]+onto["a"] != tt.want {
			t.Errorf("with anti-affinity to %s, NodeClaim in %v: %d pods on it, want %d", tt.app, tt.zones, onto["aa"]+onto["a"], tt.want)
		}
	}
}

// TestPodsSelectNodeClasses plans pods that select the EC2NodeClass of their node.
func TestPodsSelectNodeClasses(t *testing.T) {
	for class, want := range map[string]int{"default": 1, "other": 0} {
		r := solve(t, planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0", selecting(karpenter.LabelEC2NodeClass, class))))
		if len(r.Nodes) != want || want+count(r.Unplaced) != 1 {
			t.Errorf("%s: %d new nodes, want %d", class, len(r.Nodes), want)
		}
	}
}

// TestExpectedPodsKeepTheirNodeClaim has a NodeClaim with room for one pod. The older of two equal pods does not get it if it was
// planned for the other.
func TestExpectedPodsKeepTheirNodeClaim(t *testing.T) {
	for _, expected := range []int{0, 1} {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 2, "1500m", "0"))
		pods := batch.Pending[0].Pods
		batch.Snapshot.Nodes = []planning.Node{node("a", func(n *planning.Node) { n.Initialized, n.ExpectedPods = false, []string{pods[expected].UID} })}
		result := solve(t, batch)
		if len(result.Nominations) != 1 || result.Nominations[0].Pod.UID != pods[expected].UID || len(result.Nodes) != 1 {
			t.Errorf("planned for pod %d: %+v and %d new nodes", expected, result.Nominations, len(result.Nodes))
		}
	}
}

// TestLabelsOfNoType rejects pods that require a well-known label which neither the pool nor its types have.
func TestLabelsOfNoType(t *testing.T) {
	for key, value := range map[string]string{karpenter.LabelInstanceGPUName: "t4", "topology.k8s.aws/network-node-layer-1": "nn-1", "team": "shop"} {
		r := solve(t, planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0", selecting(key, value))))
		if len(r.Nodes) != 0 || count(r.Unplaced) != 1 {
			t.Errorf("%s=%s: %d new nodes", key, value, len(r.Nodes))
		}
	}
}

// TestPortsOfDaemons places a pod with another host port than a daemon's, and rejects the one with the same.
func TestPortsOfDaemons(t *testing.T) {
	with := func(port int32) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{Port: port}} }
	}
	for _, order := range [][]int32{{80, 81}, {81, 80}} {
		batch := planningtest.NewBatch()
		for i, port := range order {
			batch.Pending = append(batch.Pending, planningtest.NewPods(fmt.Sprint("port-", port), 1, []string{"200m", "100m"}[i], "0", with(port)))
		}
		batch.Snapshot.DaemonSets = []planning.PodSpec{{Namespace: "kube-system", Requests: planningtest.NewRequests("10m", "0"), HostPorts: []planning.HostPort{{Port: 80}}}}
		r := solve(t, batch)
		if len(r.Nodes) != 1 || r.Nodes[0].Pods[0].Pod.Name != "port-81-0" || count(r.Unplaced) != 1 {
			t.Errorf("%v: planned %+v, unplaced %+v", order, r.Nodes, r.Unplaced)
		}
	}
}

// TestDaemonsWithAlternatives reserves capacity for a daemon that runs on nodes of either architecture.
func TestDaemonsWithAlternatives(t *testing.T) {
	arches := [][]string{{"arm64", "amd64"}, {"amd64", "arm64"}}
	for _, order := range arches {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "1500m", "0"))
		daemon := planning.PodSpec{Namespace: "kube-system", Requests: planningtest.NewRequests("1", "0"), Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				topologyTerm(corev1.LabelArchStable, order[0]), topologyTerm(corev1.LabelArchStable, order[1]),
			}},
		}}}
		batch.Snapshot.DaemonSets = []planning.PodSpec{daemon}
		r := solve(t, batch)
		if len(r.Nodes) != 1 || r.Nodes[0].Offerings[0].InstanceType != "t4g.xlarge" {
			t.Errorf("%v: got %+v, want a type with room for the daemon", order, r.Nodes)
		}
	}
}

// TestHardTaintAfterSoftOne keeps a pod off a pool whose first taint is only a preference.
func TestHardTaintAfterSoftOne(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "0"))
	batch.Snapshot.NodePools[0].Spec.Template.Spec.Taints = []corev1.Taint{
		{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "dedicated", Effect: corev1.TaintEffectNoSchedule},
	}
	if r := solve(t, batch); len(r.Nodes) != 0 || count(r.Unplaced) != 1 || r.Unplaced[0].Rejections[0].Rule != planning.RuleTaints {
		t.Errorf("got %+v", r)
	}
}
