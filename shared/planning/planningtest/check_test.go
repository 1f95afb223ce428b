package planningtest_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// solvedBatch returns a batch and its result: pod "small" is on the existing node, and two pods "web" are on new nodes.
func solvedBatch() (planning.Batch, planning.Result) {
	labelled := func(app string) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) { s.Labels = map[string]string{"app": app} }
	}
	batch := planningtest.NewBatch(planningtest.NewPods("web", 2, "700m", "64Mi", labelled("web")), planningtest.NewPods("small", 1, "100m", "64Mi", labelled("small")))
	batch.Snapshot.Nodes = []planning.Node{{
		Name: "old", Claim: "claim", NodePool: batch.Snapshot.NodePools[0].Name, Launched: true, Registered: true, Initialized: true, Ready: true,
		Labels: map[string]string{
			corev1.LabelHostname: "old", corev1.LabelTopologyZone: "ap-northeast-2a", corev1.LabelInstanceTypeStable: "t4g.small",
			karpenter.CapacityTypeLabelKey: "spot", karpenter.NodePoolLabelKey: batch.Snapshot.NodePools[0].Name,
		},
		Allocatable: planningtest.NewRequests("1", "1Gi"), Capacity: planningtest.NewRequests("2", "2Gi"), Used: planningtest.NewRequests("400m", "64Mi"), PricePerHour: 0.01,
		Pods: []planning.PodClass{planningtest.NewPods("running", 1, "400m", "64Mi", labelled("running"))},
	}}
	batch.Snapshot.Nodes[0].Allocatable[corev1.ResourcePods] = resource.MustParse("2")
	return batch, solver.Solve(batch, planningtest.NewCatalogue())
}

// TestCheckResultFindsMistakes spoils a correct result, or changes the batch so that the result is not correct.
func TestCheckResultFindsMistakes(t *testing.T) {
	batch, result := solvedBatch()
	if err := planningtest.CheckResult(batch, planningtest.NewCatalogue(), result); err != nil || len(result.Nodes) != 1 || len(result.Nominations) != 1 {
		t.Fatalf("error %v, %d nodes, %d nominations; want a correct result with one of each", err, len(result.Nodes), len(result.Nominations))
	}
	web := func(b *planning.Batch) *planning.PodSpec { return &b.Pending[0].Spec }
	small := func(b *planning.Batch) *planning.PodSpec { return &b.Pending[1].Spec }
	pool := func(b *planning.Batch) *karpenter.NodePool { return &b.Snapshot.NodePools[0] }
	old := func(b *planning.Batch) *planning.Node { return &b.Snapshot.Nodes[0] }
	apps := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	apart := func(key, app string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: apps(app)}}}}
	}
	port := []planning.HostPort{{Port: 80}}
	for _, tt := range []struct {
		name  string
		want  planvalidator.Rule
		spoil func(*planning.Batch, *planning.Result)
	}{
		{"a pod is lost", planvalidator.Once, func(_ *planning.Batch, r *planning.Result) { r.Nodes[0].Pods = r.Nodes[0].Pods[1:] }},
		{"a pod is placed twice", planvalidator.Once, func(_ *planning.Batch, r *planning.Result) { r.Nominations = slices.Repeat(r.Nominations, 2) }},
		{"an unplaced pod has no reason", planvalidator.Once, func(_ *planning.Batch, r *planning.Result) {
			r.Unplaced, r.Nominations = []planning.UnplacedPods{{Namespace: "default", Pods: []planning.PodRef{r.Nominations[0].Pod}}}, nil
		}},
		{"a node has no offerings", planvalidator.Offered, func(_ *planning.Batch, r *planning.Result) { r.Nodes[0].Offerings = nil }},
		{"an offering is unavailable", planvalidator.Offered, func(b *planning.Batch, _ *planning.Result) {
			b.Snapshot.Unavailable = []planning.Unavailable{{Offering: event.Offering{CapacityType: "on-demand"}, Until: planningtest.Now.Add(1)}}
		}},
		{"a zone has no subnet", planvalidator.Offered, func(b *planning.Batch, _ *planning.Result) { b.Snapshot.NodeClasses[0].Status.Subnets = nil }},
		{"the pool does not allow the offerings", planvalidator.Offered, func(b *planning.Batch, _ *planning.Result) {
			pool(b).Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: karpenter.LabelInstanceCPU, Operator: corev1.NodeSelectorOpGt, Values: []string{"500"}}}
		}},
		{"the last offering is cheaper than the node", planvalidator.Priced, func(_ *planning.Batch, r *planning.Result) {
			r.Nodes[0].Offerings[len(r.Nodes[0].Offerings)-1].PricePerHour = 0.0001
		}},
		{"the pods do not fit", planvalidator.Resources, func(b *planning.Batch, _ *planning.Result) { web(b).Requests = planningtest.NewRequests("500", "0") }},
		{"the daemons do not fit", planvalidator.Resources, func(b *planning.Batch, _ *planning.Result) {
			b.Snapshot.DaemonSets = []planning.PodSpec{{Requests: planningtest.NewRequests("500", "0"), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
		}},
		{"the existing node is full", planvalidator.Resources, func(b *planning.Batch, _ *planning.Result) { old(b).Used = planningtest.NewRequests("1", "0") }},
		{"the existing node runs its last pod", planvalidator.Resources, func(b *planning.Batch, _ *planning.Result) {
			old(b).Allocatable[corev1.ResourcePods] = resource.MustParse("1")
		}},
		{"a pod selects another zone", planvalidator.Selectors, func(b *planning.Batch, _ *planning.Result) {
			web(b).NodeSelector = map[string]string{corev1.LabelFailureDomainBetaZone: "ap-northeast-2b"}
		}},
		{"a pod selects another node", planvalidator.Selectors, func(b *planning.Batch, _ *planning.Result) {
			small(b).NodeSelector = map[string]string{corev1.LabelHostname: "another"}
		}},
		{"a pod selects the first zone of a NodeClaim", planvalidator.Selectors, func(b *planning.Batch, _ *planning.Result) {
			old(b).Launched = false
			delete(old(b).Labels, corev1.LabelTopologyZone)
			old(b).Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"ap-northeast-2a", "ap-northeast-2b"}}}
			small(b).NodeSelector = map[string]string{corev1.LabelTopologyZone: "ap-northeast-2a"}
		}},
		{"the pool has a taint", planvalidator.Taints, func(b *planning.Batch, _ *planning.Result) {
			pool(b).Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{"the existing node has a taint", planvalidator.Taints, func(b *planning.Batch, _ *planning.Result) {
			old(b).Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
		}},
		{"the existing node is being removed", planvalidator.Once, func(b *planning.Batch, _ *planning.Result) { old(b).MarkedForDeletion = true }},
		{"two pods bind a port", planvalidator.HostPorts, func(b *planning.Batch, _ *planning.Result) { web(b).HostPorts = port }},
		{"a running pod binds the port", planvalidator.HostPorts, func(b *planning.Batch, _ *planning.Result) { small(b).HostPorts, old(b).HostPorts = port, port }},
		{"two pods exclude each other", planvalidator.AntiAffinity, func(b *planning.Batch, _ *planning.Result) { web(b).Affinity = apart(corev1.LabelHostname, "web") }},
		{"a running pod excludes the zone", planvalidator.AntiAffinity, func(b *planning.Batch, _ *planning.Result) {
			old(b).Pods[0].Spec.Affinity = apart(corev1.LabelTopologyZone, "web")
		}},
		{"a pod needs another", planvalidator.Affinity, func(b *planning.Batch, _ *planning.Result) {
			web(b).Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: apps("running")}}}}
		}},
		{"two pods are not spread", planvalidator.Spread, func(b *planning.Batch, _ *planning.Result) {
			web(b).Spread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: apps("web")}}
		}},
		{"the NodeClaim has too few values", planvalidator.MinValues, func(_ *planning.Batch, r *planning.Result) {
			r.Nodes[0].Requirements["example.com/a"] = planning.In("b").WithMinValues(2)
		}},
		{"the pool's limit", planvalidator.Limits, func(b *planning.Batch, _ *planning.Result) {
			pool(b).Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("3")}
		}},
		{"the pool's price limit", planvalidator.PriceLimits, func(b *planning.Batch, _ *planning.Result) {
			pool(b).Annotations = map[string]string{"joist.sh/price-limit": "0.02"}
		}},
		{"the cluster's price limit", planvalidator.PriceLimits, func(b *planning.Batch, _ *planning.Result) { b.Snapshot.Settings.PriceLimit = new(0.02) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch, result := solvedBatch()
			result.Nodes[0].Offerings = slices.Clone(result.Nodes[0].Offerings)
			tt.spoil(&batch, &result)
			if err := planningtest.CheckResult(batch, planningtest.NewCatalogue(), result); err == nil || !strings.Contains(err.Error(), string(tt.want)+": ") {
				t.Errorf("error %v, want one about %s", err, tt.want)
			}
		})
	}
}
