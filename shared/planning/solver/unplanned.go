package solver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// NewPoolFromClaim returns a NodePool whose template equals a NodeClaim that a user created. Its name
// is that of the NodeClaim's NodePool, "" if it names none. An instance type label becomes a
// requirement; lifecycle writes the label itself after the launch.
func NewPoolFromClaim(claim *karpenter.NodeClaim) karpenter.NodePool {
	spec := claim.Spec
	requirements, labels := slices.Clone(spec.Requirements), maps.Clone(claim.Labels)
	if instanceType := labels[corev1.LabelInstanceTypeStable]; instanceType != "" {
		delete(labels, corev1.LabelInstanceTypeStable)
		requirements = append(requirements, karpenter.NodeSelectorRequirementWithMinValues{
			Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{instanceType},
		})
	}
	out := karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: claim.Labels[karpenter.NodePoolLabelKey]}}
	out.Spec.Template.Labels = labels
	out.Spec.Template.Spec = karpenter.NodeClaimTemplateSpec{
		Taints: spec.Taints, StartupTaints: spec.StartupTaints, Requirements: requirements, NodeClassRef: spec.NodeClassRef,
		TerminationGracePeriod: spec.TerminationGracePeriod, ExpireAfter: spec.ExpireAfter,
	}
	out.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue}}
	return out
}

// PlanNode chooses the offerings for one node of a NodePool that is large enough for the
// requests. The NodePool need not be in the snapshot, and its limits are not checked. If
// nothing can be launched, the error is fault.Invalid with the reason.
func PlanNode(np *karpenter.NodePool, requests corev1.ResourceList, s planning.Snapshot, cat catalog.Catalogue) (planning.PlannedNode, error) {
	refuse := func(format string, args ...any) (planning.PlannedNode, error) {
		return planning.PlannedNode{}, fault.F("choosing an instance type", fault.Invalid, format, args...)
	}
	class, refusal := findReadyClass(np, &s)
	if refusal != "" {
		return refuse("%s", refusal)
	}
	config, err := instancetypes.NewNodeConfig(class, s.Settings)
	if err != nil {
		return refuse("%w", err)
	}
	s.NodePools = []karpenter.NodePool{*np}
	stock := instancetypes.New(s, cat)
	if refusal := stock.Refusals[class.Name]; refusal != "" {
		return refuse("EC2NodeClass %s: %s", class.Name, refusal)
	}
	reqs := poolRequirements(np, class, config.AMIFamily, stock.Region)
	openPartition := addPartitions(reqs, stock.Partitions[class.Name])
	if np.Name == "" {
		delete(reqs, karpenter.NodePoolLabelKey)
	}
	for _, key := range slices.Sorted(maps.Keys(reqs)) {
		if reqs[key].IsEmpty() && !reqs[key].AllowsAbsent() {
			return refuse("EC2NodeClass %s has no offering with the required %s in this region", class.Name, key)
		}
	}
	types := slices.DeleteFunc(slices.Clone(stock.TypesForPool(np.Name, class.Name)), func(t instancetypes.Type) bool { return !allowsType(reqs, t) })
	if len(types) == 0 {
		return refuse("no instance type has all of the required labels")
	}
	if types = slices.DeleteFunc(types, func(t instancetypes.Type) bool { return !holdsRequests(t.Allocatable, requests) }); len(types) == 0 {
		return refuse("no instance type with the required labels is large enough")
	}
	options := listBuyable(types, reqs, func(*instancetypes.Type, *instancetypes.InstanceOffering) bool { return true })
	if len(options) == 0 {
		return refuse("all %d matching instance types are currently unavailable", len(types))
	}
	reqs.FixCustomLabels()
	if openPartition {
		delete(reqs, karpenter.LabelPlacementGroupPartition)
	}
	return planning.PlannedNode{
		NodePool: np.Name, NodeClass: class.Name, Requirements: reqs, Offerings: options, Requests: requests, PricePerHour: options[0].PricePerHour,
	}, nil
}

// allowsType reports whether the requirements allow the labels of the type, or of one of its capacity
// reservations.
func allowsType(reqs planning.Requirements, t instancetypes.Type) bool {
	return reqs.AllowsType(t.Labels) || slices.ContainsFunc(t.Offerings, func(o instancetypes.InstanceOffering) bool {
		return reqs.AllowsType(mergeLabels(t.Labels, o.Labels))
	})
}

// holdsRequests reports whether a node with these allocatable resources is large enough for the
// requests.
func holdsRequests(allocatable, requests corev1.ResourceList) bool {
	for name, wanted := range requests {
		if have := allocatable[name]; wanted.Cmp(have) > 0 {
			return false
		}
	}
	return true
}
