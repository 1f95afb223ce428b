package launchspec

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// recipe is the input for the request of a group of nodes.
type recipe struct {
	cluster   catalog.ClusterFacts
	catalogue catalog.Catalogue
	machines  machines
	pool      *karpenter.NodePool
	class     *karpenter.EC2NodeClass
	config    catalog.NodeConfig
	gates     planning.Gates
	choice    choice
	// order has the launch templates of the chosen offers, and offers the offers of each. The first
	// template is that of the cheapest offer.
	order  []variant
	offers map[variant][]offer
	// requirements are the node's, and efa is true if its pods request an EFA.
	requirements planning.Requirements
	efa          bool
	// reporting are the nodes of the snapshot, for Verify.
	reporting []planning.Node
	// existing is the NodeClaim if a user created it.
	existing *karpenter.NodeClaim
	// relaxed is true if the offers do not cover every minValues.
	relaxed bool
	// subnets maps each zone to the subnet for launches.
	subnets map[string]string
	// priorities are by price; only set if EC2 needs explicit priorities.
	priorities map[float64]float64
	// labels are the labels of the NodeClaim before its instance is known. They never include the
	// instance type, even if there is only one: by its presence lifecycle sees that the labels of the
	// actual instance have been written.
	labels map[string]string
}

// recipe returns the recipe of a planned node, with its offers chosen.
func (b *builder) recipe(node planning.PlannedNode) (*recipe, error) {
	g, err := b.lookUp(node)
	if err != nil {
		return nil, err
	}
	g.subnets = b.addresses.byZone(g.class)
	return g, g.choose(&node, b.batch.Snapshot.Settings.MinValuesPolicy == "BestEffort")
}

// lookUp sets everything that does not depend on the chosen offers.
func (b *builder) lookUp(node planning.PlannedNode) (*recipe, error) {
	s, cat := b.batch.Snapshot, b.catalogue
	g := &recipe{
		cluster: cat.Cluster, catalogue: cat, machines: b.machines, gates: s.Settings.Gates, labels: node.Requirements.Labels(),
		requirements: node.Requirements, efa: asksEFA(node), relaxed: node.MinValuesRelaxed,
	}
	g.existing = b.existing
	delete(g.labels, corev1.LabelInstanceTypeStable)
	if g.cluster.Name == "" {
		g.cluster.Name = s.Cluster
	}
	if at := slices.IndexFunc(s.NodePools, func(p karpenter.NodePool) bool { return p.Name == node.NodePool }); at >= 0 {
		g.pool = &s.NodePools[at]
	}
	if at := slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == node.NodeClass }); at >= 0 {
		g.class = &s.NodeClasses[at]
	}
	if g.pool == nil || g.class == nil {
		return nil, fault.F("looking up NodePool "+node.NodePool, fault.Bug, "the snapshot does not contain it or its EC2NodeClass %q", node.NodeClass)
	}
	var err error
	g.config, err = instancetypes.NewNodeConfig(g.class, s.Settings)
	return g, err
}

// choose builds the offers of the node and applies the filters.
func (g *recipe) choose(node *planning.PlannedNode, bestEffort bool) error {
	left := map[string]int{}
	offers := make([]offer, 0, len(node.Offerings))
	for _, option := range node.Offerings {
		m, err := g.machine(option.InstanceType)
		if err != nil {
			return err
		}
		m.left(left)
		o := offer{PricedOffering: option, exotic: m.typ.Exotic, labels: m.typ.Labels}
		offers = append(offers, reserved(o, g.class, left)...)
	}
	g.choice = narrow(node.Requirements, offers)
	if err := g.assignTemplates(); err != nil {
		return err
	}
	if err := g.choice.check(node, len(offers), bestEffort); err != nil {
		return err
	}
	g.priorities = g.choice.priorities()
	g.labelReservation()
	return nil
}

// labelReservation sets the labels of the reservation if there is only one.
func (g *recipe) labelReservation() {
	first := g.choice.offers[0].reservation
	if first == nil || slices.ContainsFunc(g.choice.offers, func(o offer) bool { return o.reservation != first }) {
		return
	}
	kind := first.ReservationType
	if kind == "" {
		kind = karpenter.CapacityReservationTypeDefault
	}
	g.labels[karpenter.LabelCapacityReservationID] = first.ID
	g.labels[karpenter.LabelCapacityReservationType] = string(kind)
	g.labels[karpenter.LabelCapacityReservationInterruptible] = strconv.FormatBool(first.Interruptible)
}

// intent returns the request for count nodes, without ids and tags.
func (g *recipe) intent(count int) (Intent, error) {
	out := Intent{
		Cluster: g.cluster.Name, NodePool: g.pool.Name, NodeClass: g.class.Name,
		Fleet: cloud.FleetRequest{
			Count: count, CapacityType: g.choice.capacityType, Strategy: g.choice.strategy(), Target: g.choice.target(),
		},
		Types: map[string]TypeFacts{}, Prices: map[string]float64{},
	}
	if !g.relaxed {
		out.Fleet.Context = value(g.class.Spec.Context)
	}
	for _, v := range g.order {
		template, err := g.template(v)
		if err != nil {
			return Intent{}, err
		}
		out.Templates = append(out.Templates, template)
		overrides, err := g.overrides(g.offers[v])
		if err != nil {
			return Intent{}, err
		}
		out.Fleet.Configs = append(out.Fleet.Configs, cloud.FleetConfig{Template: template.Name, Overrides: overrides})
	}
	return out, g.facts(&out)
}

// facts sets the facts of all types that EC2 may choose.
func (g *recipe) facts(intent *Intent) error {
	for _, o := range g.choice.offers {
		intent.Prices[o.InstanceType+"/"+o.Zone] = o.PricePerHour
		facts, known := intent.Types[o.InstanceType]
		if !known {
			m, err := g.machine(o.InstanceType)
			if err != nil {
				return err
			}
			facts = g.factsOf(m)
		}
		if o.ZoneID != "" {
			facts.ZoneIDs[o.Zone] = o.ZoneID
		}
		intent.Types[o.InstanceType] = facts
	}
	return nil
}
