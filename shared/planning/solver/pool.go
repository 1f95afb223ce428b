package solver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// pool is a dynamic NodePool with its node class.
type pool struct {
	object      *karpenter.NodePool
	name, class string
	weight      int32
	index       int
	// refusal is why the pool launches nothing; its Rule is empty if it may launch.
	refusal planning.Rejection
	// priced is true if a price limit applies to the pool's nodes.
	priced bool
	taints []corev1.Taint
	// requirements are those of every node of the pool. variants are these requirements with each open
	// label that a pod asks for set to one value.
	requirements planning.Requirements
	variants     []planning.Requirements
	// plainTenancy is true if neither the pool nor any pod asks for a tenancy.
	plainTenancy bool
	// openPartition is true if EC2 may choose the partition of the placement group for nodes whose pods need no certain one.
	openPartition bool
	// types indexes all instance types of the node class.
	types *typeIndex
	// allowedTypes are the indexes of the types that the pool allows.
	allowedTypes []int
	// firstCandidate and endCandidate are the range of the pool's candidates.
	firstCandidate, endCandidate int
	// unavailableTypes counts allowed types that cannot be bought at the moment.
	unavailableTypes int
	// fullReservations are the allowed reservations without free capacity.
	fullReservations []fullReservation
	// allowedOfferings caches which zoneCapacityTypes the pool allows: 1 for yes, -1 for no.
	allowedOfferings [maxZoneCapacityTypes]int8
	// prices caches the result of priceTiers.
	prices []priceTier
}

// fullReservation is a reservation without free capacity, and its instance type.
type fullReservation struct {
	instanceType *instancetypes.Type
	offering     *instancetypes.InstanceOffering
}

func (w *state) newPool(np *karpenter.NodePool, stock instancetypes.InstanceTypes, named namedLabels) *pool {
	p := &pool{object: np, name: np.Name, weight: np.Weight(), taints: np.Spec.Template.Spec.Taints, priced: w.priceLimits.limitsPool(np)}
	class, refusal := findReadyClass(np, w.snapshot)
	if refusal != "" {
		p.refusal = planning.Rejection{NodePool: np.Name, Rule: planning.RuleNotReady, Detail: refusal}
		return p
	}
	p.class = class.Name
	config, err := instancetypes.NewNodeConfig(class, w.snapshot.Settings)
	priceRefusal := w.priceLimits.refusePool(np)
	switch {
	case err != nil:
		p.refusal = planning.Rejection{NodePool: np.Name, Rule: planning.RuleNotReady, Detail: err.Error()}
	case stock.Refusals[class.Name] != "":
		p.refusal = planning.Rejection{NodePool: np.Name, Rule: planning.RuleNotReady, Detail: fmt.Sprintf("EC2NodeClass %s: %s", class.Name, stock.Refusals[class.Name])}
	case priceRefusal != "":
		p.refusal = planning.Rejection{NodePool: np.Name, Rule: planning.RuleLimits, Detail: priceRefusal}
	default:
		p.requirements = poolRequirements(np, class, config.AMIFamily, stock.Region)
		p.openPartition = addPartitions(p.requirements, stock.Partitions[class.Name])
		p.chooseTenancy(named)
		p.variants = w.listVariants(p.requirements, named)
	}
	return p
}

// allowsOffering reports whether the pool allows an offering's zone and capacity type, cached by its
// index.
func (p *pool) allowsOffering(zoneCapacityType int, o planning.PricedOffering) bool {
	if p.allowedOfferings[zoneCapacityType] == 0 {
		p.allowedOfferings[zoneCapacityType] = -1
		if p.requirements.AllowsOffering(o) {
			p.allowedOfferings[zoneCapacityType] = 1
		}
	}
	return p.allowedOfferings[zoneCapacityType] > 0
}

// findReadyClass returns the pool's node class, or why the pool launches nothing.
func findReadyClass(np *karpenter.NodePool, s *planning.Snapshot) (class *karpenter.EC2NodeClass, refusal string) {
	ref := np.Spec.Template.Spec.NodeClassRef
	switch why := planning.NotReadyReason(np); {
	case why != "":
		return nil, why
	case ref == nil:
		return nil, "the NodePool has no node class (set spec.template.spec.nodeClassRef)"
	}
	i := slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == ref.Name })
	if i < 0 {
		return nil, fmt.Sprintf("EC2NodeClass %q does not exist", ref.Name)
	}
	class = &s.NodeClasses[i]
	condition, known := class.Status.Conditions.Get(karpenter.ConditionTypeReady)
	switch {
	case class.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("EC2NodeClass %q is being deleted", ref.Name)
	case !known:
		return nil, fmt.Sprintf("EC2NodeClass %q has not been reconciled yet", ref.Name)
	case !class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady):
		return nil, fmt.Sprintf("EC2NodeClass %q is not ready: %s", ref.Name, condition.Message)
	case len(class.Status.Subnets) == 0:
		return nil, fmt.Sprintf("EC2NodeClass %q selects no subnets: check its subnetSelectorTerms", ref.Name)
	case len(class.Status.AMIs) == 0:
		return nil, fmt.Sprintf("EC2NodeClass %q selects no images: check its amiSelectorTerms", ref.Name)
	}
	return class, planning.ExplainLaunchPause(np, s)
}

// poolRequirements returns the requirements of every node of the pool, for any instance type.
func poolRequirements(np *karpenter.NodePool, class *karpenter.EC2NodeClass, family, region string) planning.Requirements {
	out := planning.NewNodeClaimRequirements(np.Spec.Template.Spec.Requirements).
		Intersect(planning.NewLabelRequirements(np.Spec.Template.Labels)).
		Intersect(planning.NewLabelRequirements(catalog.FamilyLabels(family))).
		Intersect(planning.RegistrationLabels)
	out.Add(karpenter.NodePoolLabelKey, planning.In(np.Name))
	out.Add(karpenter.LabelEC2NodeClass, planning.In(class.Name))
	out.Add(corev1.LabelTopologyRegion, planning.In(region))
	var zones []string
	for _, subnet := range class.Status.Subnets {
		zones = append(zones, subnet.Zone)
	}
	out.Add(corev1.LabelTopologyZone, planning.In(zones...))
	out.Add(karpenter.LabelInstanceTenancy, planning.In(karpenter.TenancyDefault, karpenter.TenancyDedicated))
	return out
}
