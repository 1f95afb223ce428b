package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// pool is a NodePool with its class and everything that it could launch.
type pool struct {
	name, class string
	weight      int32
	// refusal is why the pool launches nothing at all; its rule is empty when it
	// may.
	refusal Rejection
	taints  []corev1.Taint
	// base is what every node of the pool is like.
	base       Requirements
	candidates []candidate
	daemons    []*demand
	quota      quota
	// soldOut counts types that suit the pool and cannot be bought at the moment.
	soldOut int
}

// newPools prepares all pools in the order in which they are tried: heavier
// first, and of equal weights the later name first (B014, B089).
func newPools(s Snapshot, stock Stock, a axis, daemons []*demand) []*pool {
	var out []*pool
	for i := range s.NodePools {
		np := &s.NodePools[i]
		if np.Static() {
			continue // Static pools count nodes, not pods (B128).
		}
		out = append(out, newPool(np, s, stock, a, daemons))
	}
	slices.SortFunc(out, func(x, y *pool) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(y.name, x.name))
	})
	return out
}

func newPool(np *karpenter.NodePool, s Snapshot, stock Stock, a axis, daemons []*demand) *pool {
	p := &pool{name: np.Name, weight: np.Weight(), taints: np.Spec.Template.Spec.Taints, quota: newQuota(np, s, a)}
	class, refusal := classOf(np, s)
	if refusal != "" {
		p.refusal = Rejection{NodePool: np.Name, Rule: RuleNotReady, Detail: refusal}
		return p
	}
	p.class = class.Name
	config, err := NodeConfig(class, s.Settings)
	if err != nil {
		p.refusal = Rejection{NodePool: np.Name, Rule: RuleNotReady, Detail: err.Error()}
		return p
	}
	p.base = base(np, class, config.AMIFamily, stock.Region)
	p.daemons = p.admitted(daemons)
	p.fill(stock.Types[class.Name], a)
	return p
}

// classOf finds the pool's node class and says why the pool launches nothing
// (B092).
func classOf(np *karpenter.NodePool, s Snapshot) (class *karpenter.EC2NodeClass, refusal string) {
	ref := np.Spec.Template.Spec.NodeClassRef
	switch {
	case np.DeletionTimestamp != nil:
		return nil, "the NodePool is being deleted"
	case np.Status.Conditions.False(karpenter.ConditionTypeReady):
		condition, _ := np.Status.Conditions.Get(karpenter.ConditionTypeReady)
		return nil, "the NodePool is not ready: " + condition.Message
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

// base is what every node of the pool is like, whichever type it gets.
func base(np *karpenter.NodePool, class *karpenter.EC2NodeClass, family, region string) Requirements {
	out := FromClaim(np.Spec.Template.Spec.Requirements).
		Intersect(FromLabels(np.Spec.Template.Labels)).
		Intersect(FromLabels(catalog.FamilyLabels(family)))
	out.and(karpenter.NodePoolLabelKey, In(np.Name))
	out.and(karpenter.LabelEC2NodeClass, In(class.Name))
	out.and(corev1.LabelTopologyRegion, In(region))
	var zones []string
	for _, subnet := range class.Status.Subnets {
		zones = append(zones, subnet.Zone)
	}
	out.and(corev1.LabelTopologyZone, In(zones...))
	return out
}

// admitted are the daemons that could run on some node of the pool (B103).
func (p *pool) admitted(daemons []*demand) []*demand {
	return slices.DeleteFunc(slices.Clone(daemons), func(d *demand) bool {
		_, kept := untolerated(p.taints, d.spec.Tolerations, true)
		return kept || !d.suits(p.base)
	})
}

// suits reports whether the pod could go to a node of these requirements.
func (d *demand) suits(r Requirements) bool {
	last := d.levels[len(d.levels)-1]
	return slices.ContainsFunc(last.anyOf, r.Compatible)
}

// overhead is what the daemons take from a node of these requirements.
func (p *pool) overhead(r Requirements, a axis) (amounts, []HostPort) {
	return daemonLoad(p.daemons, r, a)
}

func daemonLoad(daemons []*demand, r Requirements, a axis) (amounts, []HostPort) {
	total, ports := make(amounts, len(a.names)), []HostPort(nil)
	for _, d := range daemons {
		if d.suits(r) {
			total, ports = total.plus(d.requests), append(ports, d.ports...)
		}
	}
	return total, ports
}

// fill lists the instance types of the stock that suit the pool.
func (p *pool) fill(types []Type, a axis) {
	for _, t := range types {
		if !p.base.allows(t.Labels) {
			continue
		}
		c := candidate{name: t.Name, labels: t.Labels, exotic: t.Exotic}
		known := false
		for _, o := range t.Offers {
			known = known || p.base.buys(o.Option)
			if o.Available {
				c.offers = append(c.offers, o.Option)
			}
		}
		if !c.sold(p.base) {
			if known {
				p.soldOut++
			}
			continue
		}
		daemons, _ := p.overhead(p.base.Intersect(FromLabels(t.Labels)), a)
		c.capacity, c.room = a.of(t.Capacity), a.of(t.Allocatable).minus(daemons)
		p.candidates = append(p.candidates, c)
	}
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
