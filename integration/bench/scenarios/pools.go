package scenarios

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// nodeClass is the name of the only node class. The scenario does not contain it, because
// its instance types have the same information.
const nodeClass = "default"

type requirement = karpenter.NodeSelectorRequirementWithMinValues

func in(key string, values ...string) requirement {
	return requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func newer(generation string) requirement {
	return requirement{Key: karpenter.LabelInstanceGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{generation}}
}

// Requirements of pools.
var (
	onDemandOnly = in(karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeOnDemand)
	spotOnly     = in(karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeSpot)
	spotToo      = in(karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand)
	amd64        = in(corev1.LabelArchStable, karpenter.ArchitectureAMD64)
	arm64        = in(corev1.LabelArchStable, karpenter.ArchitectureARM64)
	both         = in(corev1.LabelArchStable, karpenter.ArchitectureAMD64, karpenter.ArchitectureARM64)
	ordinary     = in(karpenter.LabelInstanceCategory, "c", "m", "r")
	linux        = in(corev1.LabelOSStable, string(corev1.Linux))
)

// pool returns a pool without a disruption budget, because the kinds to consolidate
// measure cost.
func pool(name string, requirements ...requirement) karpenter.NodePool {
	p := karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.Requirements = append(requirements, linux)
	p.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: nodeClass}
	p.Spec.Disruption = karpenter.Disruption{
		ConsolidateAfter:    karpenter.DurationOf(0),
		ConsolidationPolicy: karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized,
		Budgets:             []karpenter.Budget{{Nodes: "100%"}},
	}
	return p
}

// one returns a single pool of common types from the third generation on.
func one(capacity, arch requirement) func(int) []karpenter.NodePool {
	return func(int) []karpenter.NodePool {
		return []karpenter.NodePool{pool("default", capacity, arch, ordinary, newer("2"))}
	}
}

// Keys of the five pools' taints, labels and resources.
const (
	teamKey  = "team"
	teamData = "data"
)

// five returns the pools of a typical platform team: a tainted GPU pool, a cheap pool
// with a low limit, a pool of one team, a general pool, and a fallback. Limits grow with
// the number of pods.
func five(size int) []karpenter.NodePool {
	gpu := pool("gpu", spotToo, in(karpenter.LabelInstanceCategory, "g", "p"), in(karpenter.LabelInstanceGPUManufacturer, "nvidia"))
	gpu.Spec.Template.Spec.Taints = []corev1.Taint{{Key: string(karpenter.ResourceNVIDIAGPU), Effect: corev1.TaintEffectNoSchedule}}
	gpu.Spec.Limits = limit(karpenter.ResourceNVIDIAGPU, size/5)
	arm := pool("arm-spot", spotOnly, arm64, ordinary, newer("5"))
	arm.Spec.Limits = limit(corev1.ResourceCPU, size/4)
	data := pool(teamData, onDemandOnly, in(karpenter.LabelInstanceCategory, "r", "x"), newer("4"))
	data.Spec.Template.Labels = map[string]string{teamKey: teamData}
	data.Spec.Template.Spec.Taints = []corev1.Taint{{Key: teamKey, Value: teamData, Effect: corev1.TaintEffectNoSchedule}}
	general := pool("general", spotToo, amd64, ordinary, newer("4"))
	fallback := pool("fallback", onDemandOnly, both, ordinary)
	gpu.Spec.Weight, arm.Spec.Weight, data.Spec.Weight, general.Spec.Weight = new(int32(50)), new(int32(30)), new(int32(20)), new(int32(10))
	return []karpenter.NodePool{gpu, arm, data, general, fallback}
}

func limit(name corev1.ResourceName, amount int) karpenter.Limits {
	return karpenter.Limits{name: resource.MustParse(strconv.Itoa(amount))}
}
