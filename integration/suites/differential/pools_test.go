package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

const (
	labelCapacityType = "karpenter.sh/capacity-type"
	labelTeam         = "team"
	labelTier         = "tier"
)

// wishes are the requirements of pools; each permits some types.
var wishes = []planvalidator.Requirement{
	{Key: labelCapacityType, Operator: "In", Values: []string{"spot", "on-demand"}},
	{Key: labelCapacityType, Operator: "In", Values: []string{"on-demand"}},
	{Key: labelCapacityType, Operator: "NotIn", Values: []string{"on-demand"}},
	{Key: corev1.LabelArchStable, Operator: "In", Values: []string{"amd64"}},
	{Key: corev1.LabelArchStable, Operator: "In", Values: []string{"amd64", "arm64"}},
	{Key: corev1.LabelTopologyZone, Operator: "In", Values: zones[:2]},
	{Key: corev1.LabelTopologyZone, Operator: "NotIn", Values: zones[1:2]},
	{Key: labelPrefix + "category", Operator: "In", Values: []string{"c", "m", "r"}},
	{Key: labelPrefix + "generation", Operator: "Gt", Values: []string{"4"}},
	{Key: labelPrefix + "cpu", Operator: "Lt", Values: []string{"9"}},
	{Key: labelPrefix + "cpu", Operator: "Gte", Values: []string{"2"}},
	{Key: labelPrefix + "cpu", Operator: "Lte", Values: []string{"16"}},
	{Key: labelPrefix + "gpu-count", Operator: "DoesNotExist"},
	{Key: labelPrefix + "memory", Operator: "Exists"},
	{Key: labelTier, Operator: "In", Values: []string{"front", "back"}},
}

var poolTaints = []corev1.Taint{
	{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule},
	{Key: "dedicated", Value: "b", Effect: corev1.TaintEffectNoExecute},
	{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
}

// pools draws one to three pools.
func pools(t *rapid.T, on features) []planvalidator.NodePool {
	var all []planvalidator.NodePool
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		all = append(all, onePool(t, on, fmt.Sprintf("pool-%d", i)))
	}
	return all
}

func onePool(t *rapid.T, on features, name string) planvalidator.NodePool {
	pool := planvalidator.NodePool{}
	pool.Metadata.Name = name
	template := &pool.Spec.Template
	template.Spec.NodeClassRef = planvalidator.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	template.Spec.Requirements = []planvalidator.Requirement{}
	if sometimes(t, on.selectors, "requirements") {
		template.Spec.Requirements = rapid.SliceOfNDistinct(rapid.SampledFrom(wishes), 1, 3, func(r planvalidator.Requirement) string { return r.Key }).Draw(t, "wishes")
		template.Metadata.Labels = rapid.SampledFrom([]map[string]string{nil, {labelTeam: "shop"}, {labelTeam: "web"}}).Draw(t, "labels")
	}
	if sometimes(t, on.taints, "tainted") {
		template.Spec.Taints = rapid.SliceOfNDistinct(rapid.SampledFrom(poolTaints), 1, 2, func(x corev1.Taint) string { return x.Key }).Draw(t, "taints")
	}
	if sometimes(t, on.weights, "weighted") {
		pool.Spec.Weight = new(rapid.Int32Range(1, 3).Draw(t, "weight"))
	}
	if sometimes(t, on.minValues, "min values") {
		template.Spec.Requirements = append(template.Spec.Requirements, planvalidator.Requirement{
			Key: rapid.SampledFrom([]string{labelPrefix + "family", corev1.LabelInstanceTypeStable}).Draw(t, "varied"), Operator: "Exists",
			MinValues: new(rapid.IntRange(1, 4).Draw(t, "at least")),
		})
	}
	if sometimes(t, on.limits, "limited") {
		pool.Spec.Limits = rapid.SampledFrom([]corev1.ResourceList{
			{"cpu": resource.MustParse("8")}, {"cpu": resource.MustParse("40")}, {"memory": resource.MustParse("64Gi")},
			{"nodes": resource.MustParse("2")}, {"nvidia.com/gpu": resource.MustParse("1")}, {"cpu": resource.MustParse("0")},
		}).Draw(t, "limits")
	}
	return pool
}
