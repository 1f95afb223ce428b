package solver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

var randomTaints = []corev1.Taint{
	{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule},
	{Key: "dedicated", Value: "b", Effect: corev1.TaintEffectNoExecute},
	{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
}

// genPool varies the default pool: types, taints and limits.
func genPool(t *rapid.T, name string) karpenter.NodePool {
	pool := planningtest.NewNodePool()
	pool.Name = name
	if weight := rapid.Int32Range(0, 3).Draw(t, "weight"); weight > 0 {
		pool.Spec.Weight = &weight
	}
	pool.Spec.Template.Spec.Taints = rapid.SliceOfN(rapid.SampledFrom(randomTaints), 0, 1).Draw(t, "taints")
	families := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"t4g", "m7g", "c6g", "m5", "g4dn"}), 1, 4, rapid.ID).Draw(t, "families")
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceFamily, Operator: karpenter.NodeSelectorOpIn, Values: families},
		{Key: karpenter.LabelInstanceCPU, Operator: karpenter.NodeSelectorOpLt, Values: []string{rapid.SampledFrom([]string{"3", "9", "65"}).Draw(t, "cpu bound")}},
		{Key: "team", Operator: karpenter.NodeSelectorOpIn, Values: []string{"shop", "web"}},
	}
	pool.Spec.Limits = karpenter.Limits{corev1.ResourceCPU: *resource.NewQuantity(rapid.Int64Range(0, 200).Draw(t, "limit"), resource.DecimalSI)}
	if rapid.Bool().Draw(t, "limits nodes") {
		pool.Spec.Limits[karpenter.ResourceNodes] = *resource.NewQuantity(rapid.Int64Range(0, 5).Draw(t, "nodes"), resource.DecimalSI)
	}
	if text := rapid.SampledFrom([]string{"", "", "", "0", "0.04", "0.3", "1.5", "dear"}).Draw(t, "price limit"); text != "" {
		pool.Annotations = map[string]string{policy.PriceLimit: text}
	}
	if rapid.IntRange(0, 3).Draw(t, "strict limits") == 0 {
		annotations := map[string]string{policy.Limits: "strict"}
		maps.Copy(annotations, pool.Annotations)
		pool.Annotations = annotations
	}
	return pool
}

func genClass(t *rapid.T, name string) planning.PodClass {
	cpu := rapid.SampledFrom([]string{"50m", "900m", "2", "7"}).Draw(t, "cpu")
	memory := rapid.SampledFrom([]string{"0", "500Mi", "6Gi"}).Draw(t, "memory")
	rules := []func(*planning.PodSpec){
		func(*planning.PodSpec) {},
		selecting(corev1.LabelTopologyZone, "ap-northeast-2c"),
		selecting("beta.kubernetes.io/arch", "amd64"),
		selecting("team", "shop"),
		selecting(karpenter.CapacityTypeLabelKey, "on-demand"),
		apart(name), apart("shared"), spread(name, 2),
		func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{Port: 80}} },
		func(s *planning.PodSpec) { s.Requests["nvidia.com/gpu"] = resource.MustParse("1") },
		func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: karpenter.LabelInstanceCPU, Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}}}},
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "team", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"shop"}}}},
				}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 5, Preference: topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2a")}},
			}}
		},
	}
	edit := rules[rapid.IntRange(0, len(rules)-1).Draw(t, "rule")]
	tolerations := rapid.SampledFrom([][]corev1.Toleration{
		nil, {{Operator: corev1.TolerationOpExists}}, {{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "a"}},
	}).Draw(t, "tolerations")
	return planningtest.NewPods(name, rapid.IntRange(1, 12).Draw(t, "count"), cpu, memory, edit, func(s *planning.PodSpec) { s.Tolerations = tolerations })
}

func genBatch(t *rapid.T) planning.Batch {
	var classes []planning.PodClass
	for i := range rapid.IntRange(1, 6).Draw(t, "classes") {
		classes = append(classes, genClass(t, fmt.Sprint("c", i)))
	}
	batch := planningtest.NewBatch(classes...)
	batch.Snapshot.NodePools = nil
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, genPool(t, fmt.Sprint("p", i)))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		batch.Snapshot.Nodes = append(batch.Snapshot.Nodes, node(fmt.Sprint("n", i), func(n *planning.Node) {
			n.NodePool = "p0"
			n.Used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(rapid.SampledFrom([]string{"0", "1", "1900m"}).Draw(t, "used"))}
			n.Taints = rapid.SliceOfN(rapid.SampledFrom(randomTaints), 0, 1).Draw(t, "node taints")
			n.MarkedForDeletion = rapid.Bool().Draw(t, "going")
			if name := rapid.SampledFrom([]string{"", "t4g.medium", "m7g.large", "gone.large"}).Draw(t, "type"); name != "" {
				n.Labels[corev1.LabelInstanceTypeStable], n.Labels[karpenter.CapacityTypeLabelKey] = name, karpenter.CapacityTypeSpot
			}
			n.PricePerHour = rapid.SampledFrom([]float64{0, 0.02, 0.3}).Draw(t, "price")
		}))
	}
	if limit := rapid.SampledFrom([]float64{0, 0, 0.1, 0.5, 2}).Draw(t, "price limit of all"); limit > 0 {
		batch.Snapshot.Settings.PriceLimit = &limit
	}
	if rapid.Bool().Draw(t, "daemon") {
		batch.Snapshot.DaemonSets = []planning.PodSpec{
			{Namespace: "kube-system", Requests: planningtest.NewRequests("120m", "64Mi"), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			{Namespace: "kube-system", Requests: planningtest.NewRequests("500m", "64Mi"), NodeSelector: map[string]string{corev1.LabelArchStable: "amd64"}},
		}
	}
	if rapid.Bool().Draw(t, "shortage") {
		batch.Snapshot.Unavailable = []planning.Unavailable{
			{Offering: event.Offering{CapacityType: karpenter.CapacityTypeSpot, Zone: "ap-northeast-2a"}, Until: planningtest.Now.Add(1)},
			{Offering: event.Offering{InstanceType: "m7g.large"}, Until: planningtest.Now.Add(-1)},
		}
	}
	return batch
}

func TestRandomBatchesGiveValidPlans(t *testing.T) {
	cat := planningtest.NewCatalogue()
	placed, refused, rules := 0, 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		batch := genBatch(t)
		before, err := json.Marshal(batch)
		if err != nil {
			t.Fatal(err)
		}
		result := solver.Solve(batch, cat)
		if err := planningtest.CheckResult(batch, cat, result); err != nil {
			t.Fatalf("invalid plan:\n%v", err)
		}
		if after, _ := json.Marshal(batch); string(after) != string(before) {
			t.Fatal("the batch was changed")
		}
		for _, n := range result.Nodes {
			placed += len(n.Pods)
		}
		for _, u := range result.Unplaced {
			refused += len(u.Pods)
			for _, r := range u.Rejections {
				rules[r.Rule]++
			}
		}
	})
	t.Logf("%d pods placed on new nodes, %d rejected; rules: %v", placed, refused, rules)
	if placed == 0 || refused == 0 {
		t.Error("the generated batches cover too few cases")
	}
}
