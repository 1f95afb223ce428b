package solver_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// genWideClass returns a class like genRunning's, some with further rules.
func genWideClass(t *rapid.T, name string) planning.PodClass {
	class := genRunning(t, name)
	for range rapid.IntRange(0, 2).Draw(t, "edits") {
		wideEdits[rapid.IntRange(0, len(wideEdits)-1).Draw(t, "edit")](t, &class.Spec)
	}
	return class
}

var wideLabels = []string{corev1.LabelTopologyZone, corev1.LabelHostname, karpenter.CapacityTypeLabelKey, "rack", corev1.LabelArchStable}

// genTerm returns a term over pods of an app, some in other namespaces.
func genTerm(t *rapid.T) corev1.PodAffinityTerm {
	app := rapid.SampledFrom([]string{"web", "db", "cache"}).Draw(t, "term app")
	out := corev1.PodAffinityTerm{TopologyKey: rapid.SampledFrom(wideLabels).Draw(t, "term key"), LabelSelector: selector("app", app)}
	switch rapid.IntRange(0, 7).Draw(t, "namespaces") {
	case 0:
		out.Namespaces = []string{"shop", "default"}
	case 1:
		out.NamespaceSelector = selector("team", "shop")
	case 2:
		out.NamespaceSelector = &metav1.LabelSelector{}
	case 3:
		out.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{app}}}}
	case 4:
		out.LabelSelector, out.MatchLabelKeys = nil, nil
	}
	return out
}

func genSpread(t *rapid.T) corev1.TopologySpreadConstraint {
	out := corev1.TopologySpreadConstraint{
		MaxSkew: rapid.Int32Range(1, 3).Draw(t, "skew"), TopologyKey: rapid.SampledFrom(wideLabels).Draw(t, "spread key"),
		WhenUnsatisfiable: rapid.SampledFrom([]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway}).Draw(t, "when unsatisfiable"),
		LabelSelector:     selector("app", rapid.SampledFrom([]string{"web", "db", "cache"}).Draw(t, "spread app")),
	}
	if n := rapid.Int32Range(0, 5).Draw(t, "min domains"); n > 1 && out.WhenUnsatisfiable == corev1.DoNotSchedule {
		out.MinDomains = &n
	}
	policies := []*corev1.NodeInclusionPolicy{nil, new(corev1.NodeInclusionPolicyHonor), new(corev1.NodeInclusionPolicyIgnore)}
	out.NodeAffinityPolicy = rapid.SampledFrom(policies).Draw(t, "node affinity policy")
	out.NodeTaintsPolicy = rapid.SampledFrom(policies).Draw(t, "node taints policy")
	if rapid.IntRange(0, 3).Draw(t, "match label keys") == 0 {
		out.MatchLabelKeys = []string{"version"}
	}
	return out
}

func affinityOf(s *planning.PodSpec) *corev1.Affinity {
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	return s.Affinity
}

// wideEdits give a pod something that genRunning leaves out.
var wideEdits = []func(*rapid.T, *planning.PodSpec){
	func(t *rapid.T, s *planning.PodSpec) {
		s.Priority = rapid.SampledFrom([]int32{-5, 7, 1000}).Draw(t, "priority")
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.Namespace = rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace")
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.Labels = map[string]string{"app": rapid.SampledFrom([]string{"web", "db", "cache"}).Draw(t, "labelled app"), "version": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version")}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.Spread = nil
		for range rapid.IntRange(1, 3).Draw(t, "spreads") {
			s.Spread = append(s.Spread, genSpread(t))
		}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.DefaultSpread, s.Spread = true, []corev1.TopologySpreadConstraint{
			{MaxSkew: 3, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector("app", "web")},
			{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector("app", "web")},
		}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		a := &corev1.PodAffinity{}
		for range rapid.IntRange(1, 2).Draw(t, "affinities") {
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, genTerm(t))
		}
		s.Affinity = &corev1.Affinity{PodAffinity: a}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		a := &corev1.PodAntiAffinity{}
		for range rapid.IntRange(1, 2).Draw(t, "anti-affinities") {
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, genTerm(t))
		}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: a}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		var preferred []corev1.WeightedPodAffinityTerm
		for range rapid.IntRange(1, 3).Draw(t, "preferences") {
			preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: rapid.Int32Range(1, 100).Draw(t, "weight"), PodAffinityTerm: genTerm(t)})
		}
		s.Affinity = &corev1.Affinity{}
		if rapid.Bool().Draw(t, "prefers others") {
			s.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
		} else {
			s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
		}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		a := &corev1.NodeAffinity{}
		for range rapid.IntRange(1, 3).Draw(t, "node preferences") {
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
				Weight: rapid.Int32Range(1, 100).Draw(t, "weight"), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{genNodeRequirement(t)}},
			})
		}
		for range rapid.IntRange(0, 2).Draw(t, "node terms") {
			if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
				a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
			}
			terms := &a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*terms = append(*terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{genNodeRequirement(t), genNodeRequirement(t)}})
		}
		affinityOf(s).NodeAffinity = a
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.NodeSelector = map[string]string{rapid.SampledFrom([]string{"rack", "slice"}).Draw(t, "selected"): rapid.SampledFrom([]string{"r1", "2", "9"}).Draw(t, "value")}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.HostPorts = nil
		for range rapid.IntRange(1, 2).Draw(t, "ports") {
			s.HostPorts = append(s.HostPorts, planning.HostPort{
				IP: rapid.SampledFrom([]string{"", "127.0.0.1", "10.0.0.1"}).Draw(t, "IP"), Port: rapid.SampledFrom([]int32{80, 443}).Draw(t, "port"),
				Protocol: rapid.SampledFrom([]corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP}).Draw(t, "protocol"),
			})
		}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.Volumes = nil
		for i := range rapid.IntRange(1, 3).Draw(t, "volumes") {
			v := planning.Volume{Driver: catalog.EBSDriver}
			v.Claim = rapid.SampledFrom([]string{"", "", "data", fmt.Sprint("data-", i)}).Draw(t, "claim")
			for _, zone := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID).Draw(t, "zones") {
				v.Alternatives = append(v.Alternatives, topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2"+zone))
			}
			if rapid.IntRange(0, 9).Draw(t, "problem") == 0 {
				v.Problem = "the StorageClass does not exist"
			}
			s.Volumes = append(s.Volumes, v)
		}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.NodeSelector = map[string]string{karpenter.LabelInstanceTenancy: rapid.SampledFrom([]string{"default", "dedicated"}).Draw(t, "tenancy")}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.Requests[corev1.ResourceName(rapid.SampledFrom([]string{"ephemeral-storage", "example.com/thing", "hugepages-2Mi"}).Draw(t, "resource"))] = resource.MustParse("1Gi")
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.ResourceClaims, s.Claims = 1, []planning.PodClaim{{Requests: []resourcev1.DeviceRequest{rapid.SampledFrom([]resourcev1.DeviceRequest{
			exactly(1, "gpu"), exactly(2, "gpu"), exactly(1, "gpu", `device.attributes["gpu.example.com"].numa == 0`), sharing("30Gi"), exactly(1, "remote"),
		}).Draw(t, "request")}}}
	},
	func(t *rapid.T, s *planning.PodSpec) {
		s.Requests[corev1.ResourceCPU] = resource.MustParse(rapid.SampledFrom([]string{"0", "1", "250m", "1700m", "3500m", "15", "200"}).Draw(t, "cores"))
		s.Requests[corev1.ResourceMemory] = resource.MustParse(rapid.SampledFrom([]string{"1", "100Mi", "3Gi", "14Gi", "60Gi"}).Draw(t, "bytes"))
	},
}

func genNodeRequirement(t *rapid.T) corev1.NodeSelectorRequirement {
	return rapid.SampledFrom([]corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"ap-northeast-2a", "ap-northeast-2b"}},
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"ap-northeast-2a"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand", "reserved"}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
		{Key: karpenter.LabelInstanceGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}},
		{Key: karpenter.LabelInstanceMemory, Operator: corev1.NodeSelectorOpLt, Values: []string{"20000"}},
		{Key: karpenter.LabelInstanceFamily, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"t4g", "c6g"}},
		{Key: "rack", Operator: corev1.NodeSelectorOpExists},
		{Key: "rack", Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: "slice", Operator: corev1.NodeSelectorOpIn, Values: []string{"1", "2"}},
		{Key: "slice", Operator: corev1.NodeSelectorOpGt, Values: []string{"1"}},
		{Key: karpenter.LabelInstanceTenancy, Operator: corev1.NodeSelectorOpIn, Values: []string{"dedicated"}},
		{Key: karpenter.NodePoolLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"p0", "p1"}},
	}).Draw(t, "node requirement")
}
