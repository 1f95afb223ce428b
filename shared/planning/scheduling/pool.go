package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// pool is a NodePool with its class.
type pool struct {
	object      *karpenter.NodePool
	name, class string
	weight      int32
	index       int
	// refusal is why the pool launches nothing at all; its rule is empty when it
	// may.
	refusal Rejection
	// priced is whether what its nodes cost is limited.
	priced bool
	taints []corev1.Taint
	// base is what every node of the pool is like; variants are base with each
	// label that the pool leaves open and a pod may ask for set to one value.
	base     Requirements
	variants []Requirements
	// plainTenancy is whether neither the pool nor a pod asks for a tenancy.
	plainTenancy bool
	// types are those of the stock, suitable or not.
	types *typeIndex
	// allowed are the places of those that suit.
	allowed []int
	// from and to are where its columns begin and end: they are neighbours.
	from, to int
	// soldOut counts types that suit the pool and cannot be bought at the moment.
	soldOut int
	// bought remembers which planes the pool allows: 1 for yes, -1 for no.
	bought [maxPlanes]int8
	// shelf is all prices; it is made when it is first asked for.
	shelf []shelved
}

func (w *world) newPool(np *karpenter.NodePool, stock Stock, named namedLabels) *pool {
	p := &pool{object: np, name: np.Name, weight: np.Weight(), taints: np.Spec.Template.Spec.Taints, priced: w.money.limits(np)}
	class, refusal := classOf(np, w.snapshot)
	if refusal != "" {
		p.refusal = Rejection{NodePool: np.Name, Rule: RuleNotReady, Detail: refusal}
		return p
	}
	p.class = class.Name
	config, err := NodeConfig(class, w.snapshot.Settings)
	if err != nil {
		p.refusal = Rejection{NodePool: np.Name, Rule: RuleNotReady, Detail: err.Error()}
		return p
	}
	if refusal := w.money.refusal(np); refusal != "" {
		p.refusal = Rejection{NodePool: np.Name, Rule: RuleLimits, Detail: refusal}
		return p
	}
	p.base = base(np, class, config.AMIFamily, stock.Region)
	p.chooseTenancy(named)
	p.variants = w.variants(p.base, named)
	return p
}

// buys reports whether the pool allows offers on a plane.
func (p *pool) buys(plane int, o Option) bool {
	if p.bought[plane] == 0 {
		p.bought[plane] = -1
		if p.base.buys(o) {
			p.bought[plane] = 1
		}
	}
	return p.bought[plane] > 0
}

// classOf finds the pool's node class and says why the pool launches nothing.
func classOf(np *karpenter.NodePool, s *Snapshot) (class *karpenter.EC2NodeClass, refusal string) {
	ref := np.Spec.Template.Spec.NodeClassRef
	switch why := unready(np); {
	case why != "":
		return nil, why
	case ref == nil:
		return nil, "the NodePool names no node class (spec.template.spec.nodeClassRef)"
	}
	i := slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == ref.Name })
	if i < 0 {
		return nil, fmt.Sprintf("there is no EC2NodeClass %q", ref.Name)
	}
	class = &s.NodeClasses[i]
	condition, known := class.Status.Conditions.Get(karpenter.ConditionTypeReady)
	switch {
	case class.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("EC2NodeClass %q is being deleted", ref.Name)
	case !known:
		return nil, fmt.Sprintf("EC2NodeClass %q has not been looked at yet", ref.Name)
	case !class.Status.Conditions.True(karpenter.ConditionTypeReady):
		return nil, fmt.Sprintf("EC2NodeClass %q is not ready: %s", ref.Name, condition.Message)
	case len(class.Status.Subnets) == 0:
		return nil, fmt.Sprintf("EC2NodeClass %q has found no subnets: check its subnetSelectorTerms", ref.Name)
	case len(class.Status.AMIs) == 0:
		return nil, fmt.Sprintf("EC2NodeClass %q has found no images: check its amiSelectorTerms", ref.Name)
	}
	return class, ""
}

// unready says why the NodePool may not be used, apart from its node class; "" if it may. As
// in Karpenter, the condition Ready must be True: a NodePool without the condition has not
// been reconciled yet.
func unready(np *karpenter.NodePool) string {
	ready, known := np.Status.Conditions.Get(karpenter.ConditionTypeReady)
	switch {
	case np.DeletionTimestamp != nil:
		return "the NodePool is being deleted"
	case !known:
		return "the NodePool has not been looked at yet"
	case ready.Status != metav1.ConditionTrue:
		return "the NodePool is not ready: " + ready.Message
	}
	return ""
}

// NodeConfig is how the nodes of a class are set up in this installation.
func NodeConfig(class *karpenter.EC2NodeClass, settings Settings) (catalog.NodeConfig, error) {
	config, err := catalog.ConfigOf(class)
	if err != nil {
		return config, err
	}
	config.ReservedENIs = int64(settings.ReservedENIs)
	if settings.VMMemoryOverheadPercent > 0 {
		config.VMMemoryOverheadPercent = &settings.VMMemoryOverheadPercent
	}
	return config, nil
}

// readyLabels are the labels that lifecycle sets on the Node of each NodeClaim before
// pods run there. Pods and daemons may select them; no NodeClaim states them, because
// they say how far a node has come. Karpenter:
// pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go.
var readyLabels = Requirements{karpenter.NodeRegisteredLabelKey: In("true"), karpenter.NodeInitializedLabelKey: In("true")}

// base is what every node of the pool is like, whichever type it gets.
func base(np *karpenter.NodePool, class *karpenter.EC2NodeClass, family, region string) Requirements {
	out := FromClaim(np.Spec.Template.Spec.Requirements).
		Intersect(FromLabels(np.Spec.Template.Labels)).
		Intersect(FromLabels(catalog.FamilyLabels(family))).
		Intersect(readyLabels)
	out.and(karpenter.NodePoolLabelKey, In(np.Name))
	out.and(karpenter.LabelEC2NodeClass, In(class.Name))
	out.and(corev1.LabelTopologyRegion, In(region))
	var zones []string
	for _, subnet := range class.Status.Subnets {
		zones = append(zones, subnet.Zone)
	}
	out.and(corev1.LabelTopologyZone, In(zones...))
	out.and(karpenter.LabelInstanceTenancy, In(karpenter.TenancyDefault, karpenter.TenancyDedicated))
	return out
}

// ImageFor finds the first image, in the order of the class's status, that a type
// with these labels boots.
func ImageFor(typeLabels map[string]string, images []karpenter.AMI) (karpenter.AMI, bool) {
	i := slices.IndexFunc(images, func(image karpenter.AMI) bool {
		return FromSelectors(image.Requirements).allows(typeLabels)
	})
	if i < 0 {
		return karpenter.AMI{}, false
	}
	return images[i], true
}
