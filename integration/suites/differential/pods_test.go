package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

const podsMax = 40

// workloads draws groups of equal pods, like deployments.
func workloads(t *rapid.T, on features) []planvalidator.PodGroup {
	var all []planvalidator.PodGroup
	left := podsMax
	for i := range rapid.IntRange(1, 6).Draw(t, "workloads") {
		count := rapid.IntRange(1, min(10, left)).Draw(t, "count")
		all = append(all, planvalidator.PodGroup{Count: count, Template: onePod(t, on, fmt.Sprintf("w%d", i))})
		if left -= count; left == 0 {
			break
		}
	}
	return all
}

var apps = []string{"w0", "w1", "w2", "w3"}

func onePod(t *rapid.T, on features, name string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}}}
	if sometimes(t, on.namespaces, "elsewhere") {
		p.Namespace = "other"
	}
	if sometimes(t, on.labelKeys, "revisioned") {
		p.Labels["revision"] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "revision")
	}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu":    resource.MustParse(rapid.SampledFrom([]string{"50m", "250m", "900m", "2", "3500m", "7"}).Draw(t, "cpu")),
		"memory": resource.MustParse(rapid.SampledFrom([]string{"64Mi", "500Mi", "2Gi", "6Gi", "20Gi"}).Draw(t, "memory")),
	}}}}
	if sometimes(t, on.devices, "device") {
		p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
	}
	if sometimes(t, on.sidecars, "init containers") {
		sidecar(t, &p)
	}
	if sometimes(t, on.ports, "port") {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{
			HostPort: rapid.Int32Range(80, 81).Draw(t, "port number"), ContainerPort: 80,
			Protocol: rapid.SampledFrom([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}).Draw(t, "protocol"),
			HostIP:   rapid.SampledFrom([]string{"", "10.0.0.1", "10.0.0.2", "0.0.0.0"}).Draw(t, "address"),
		}}
	}
	tolerate(t, on, &p)
	pick(t, on, &p)
	spread(t, on, &p)
	company(t, on, &p)
	return p
}

func sidecar(t *rapid.T, p *corev1.Pod) {
	init := corev1.Container{Name: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse(rapid.SampledFrom([]string{"100m", "1", "3"}).Draw(t, "init cpu")),
	}}}
	if rapid.Bool().Draw(t, "stays") {
		init.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	p.Spec.InitContainers = []corev1.Container{init}
	if rapid.Bool().Draw(t, "overhead") {
		p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("100m")}
	}
}

func tolerate(t *rapid.T, on features, p *corev1.Pod) {
	if !sometimes(t, on.taints, "tolerates") {
		return
	}
	p.Spec.Tolerations = rapid.SampledFrom([][]corev1.Toleration{
		{{Operator: corev1.TolerationOpExists}},
		{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "a"}},
		{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
		{{Key: "soft", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}},
	}).Draw(t, "tolerations")
}

// expressions are node requirements of pods; no node satisfies the last two.
var expressions = []corev1.NodeSelectorRequirement{
	{Key: corev1.LabelTopologyZone, Operator: "In", Values: zones[:1]},
	{Key: corev1.LabelTopologyZone, Operator: "In", Values: zones[1:]},
	{Key: corev1.LabelTopologyZone, Operator: "NotIn", Values: zones[:1]},
	{Key: "topology.k8s.aws/zone-id", Operator: "In", Values: []string{"use1-az2"}},
	{Key: corev1.LabelArchStable, Operator: "In", Values: []string{"arm64"}},
	{Key: "beta.kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}},
	{Key: labelCapacityType, Operator: "In", Values: []string{"on-demand"}},
	{Key: labelCapacityType, Operator: "NotIn", Values: []string{"on-demand"}},
	{Key: labelPrefix + "cpu", Operator: "Gt", Values: []string{"3"}},
	{Key: labelPrefix + "cpu", Operator: "Lt", Values: []string{"8"}},
	{Key: labelPrefix + "gpu-count", Operator: "DoesNotExist"},
	{Key: labelPrefix + "family", Operator: "In", Values: []string{"m5", "m6g"}},
	{Key: labelTeam, Operator: "In", Values: []string{"shop"}},
	{Key: labelTeam, Operator: "NotIn", Values: []string{"shop"}},
	{Key: labelTeam, Operator: "Exists"},
	{Key: labelTeam, Operator: "DoesNotExist"},
	{Key: labelTier, Operator: "In", Values: []string{"front"}},
	{Key: "absent", Operator: "In", Values: []string{"has"}},
	{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{"elsewhere"}},
}

func terms(t *rapid.T, n int) []corev1.NodeSelectorTerm {
	var all []corev1.NodeSelectorTerm
	for range rapid.IntRange(1, n).Draw(t, "terms") {
		all = append(all, corev1.NodeSelectorTerm{MatchExpressions: rapid.SliceOfN(rapid.SampledFrom(expressions), 1, 2).Draw(t, "term")})
	}
	return all
}

// pick draws the pod's node requirements.
func pick(t *rapid.T, on features, p *corev1.Pod) {
	if sometimes(t, on.selectors, "selects") {
		p.Spec.NodeSelector = rapid.SampledFrom([]map[string]string{
			{corev1.LabelTopologyZone: zones[2]}, {corev1.LabelArchStable: "amd64"}, {labelTeam: "web"}, {labelCapacityType: "spot"}, {labelTier: "back"},
		}).Draw(t, "selector")
	}
	affinity := &corev1.NodeAffinity{}
	if sometimes(t, on.selectors, "requires") {
		most := 1
		if on.alternatives {
			most = 3
		}
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms(t, most)}
	}
	if sometimes(t, on.preferences, "prefers") {
		for _, term := range terms(t, 2) {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: rapid.Int32Range(1, 100).Draw(t, "weight"), Preference: term})
		}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil || affinity.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}
