package nodeclass

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// DryRunInput returns the input of dry runs: the parts of the class that affect launches, without
// data that changes although the class does not, so that the same class has the same input. It also
// returns the instance type of the dry runs, which the NodePools allow; the input then has only the
// image and the subnets with which EC2 launches it. The type is empty if there are no types.
func DryRunInput(class *karpenter.EC2NodeClass, pools []*karpenter.NodePool, types []instancetypes.Type) (input json.RawMessage, instanceType string, err error) {
	out := karpenter.EC2NodeClass{Spec: class.Spec, Status: class.Status}
	out.Name = class.Name
	out.Status.Conditions = nil
	out.Status.Subnets = sortedSubnets(class.Status.Subnets)
	if chosen, found := chooseDryRunType(pools, types); found {
		instanceType = chosen.Name
		out.Status.Subnets = slices.DeleteFunc(out.Status.Subnets, func(n karpenter.Subnet) bool {
			return !slices.ContainsFunc(chosen.Offerings, func(o instancetypes.InstanceOffering) bool { return o.Zone == n.Zone })
		})
		if image, bootable := instancetypes.FindImage(chosen.Labels, class.Status.AMIs); bootable {
			out.Status.AMIs = []karpenter.AMI{image}
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, "", fault.E("encoding EC2NodeClass "+class.Name, fault.Bug, err)
	}
	return text, instanceType, nil
}

// chooseDryRunType returns a type that a NodePool allows in a zone that offers it. If no NodePool does, it
// returns any type that a zone offers. Offerings without capacity count, so that the choice does not
// change with every shortage.
func chooseDryRunType(pools []*karpenter.NodePool, types []instancetypes.Type) (chosen instancetypes.Type, found bool) {
	offered := keepTypes(types, nil)
	var allowed []instancetypes.Type
	for _, pool := range pools {
		template := pool.Spec.Template
		allowed = append(allowed, keepTypes(offered, planning.NewNodeClaimRequirements(template.Spec.Requirements).
			Intersect(planning.NewLabelRequirements(template.Labels)))...)
	}
	if len(allowed) == 0 {
		allowed = offered
	}
	if len(allowed) == 0 {
		return chosen, false
	}
	return slices.MinFunc(allowed, compareDryRunTypes), true
}

// keepTypes returns the types with an offering that the requirements allow.
func keepTypes(types []instancetypes.Type, reqs planning.Requirements) []instancetypes.Type {
	var out []instancetypes.Type
	for _, t := range types {
		if reqs.AllowsType(t.Labels) && slices.ContainsFunc(t.Offerings, func(o instancetypes.InstanceOffering) bool { return reqs.AllowsOffering(o.PricedOffering) }) {
			out = append(out, t)
		}
	}
	return out
}

// compareDryRunTypes puts the types in the order of rankDryRunType, and then the cheapest ones first.
func compareDryRunTypes(a, b instancetypes.Type) int {
	return cmp.Or(cmp.Compare(rankDryRunType(a), rankDryRunType(b)), cmp.Compare(findOnDemandPrice(a), findOnDemandPrice(b)), cmp.Compare(a.Name, b.Name))
}

// rankDryRunType puts Karpenter's types for dry runs first, and exotic ones last, because an image for
// GPUs may need larger volumes than the class has.
func rankDryRunType(t instancetypes.Type) int {
	switch {
	case t.Exotic:
		return 2
	case t.Name == event.DryRunType(t.Labels[corev1.LabelArchStable]):
		return 0
	default:
		return 1
	}
}

// findOnDemandPrice returns the lowest on-demand price in US dollars per hour, or infinity without on-demand offerings.
func findOnDemandPrice(t instancetypes.Type) float64 {
	out := math.Inf(1)
	for _, o := range t.Offerings {
		if o.CapacityType == catalog.OnDemand && !o.Unpriced {
			out = min(out, o.PricePerHour)
		}
	}
	return out
}
