package launchspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// recipe is everything that the request for a kind of node is made from.
type recipe struct {
	cluster   catalog.ClusterFacts
	catalogue catalog.Catalogue
	pool      *karpenter.NodePool
	class     *karpenter.EC2NodeClass
	config    catalog.NodeConfig
	choice    choice
	// labels are those that the claim has before its instance is known. The type
	// is not among them even where there is no choice: its presence is how
	// lifecycle sees that the labels of the true instance have been written.
	labels map[string]string
}

// newRecipe looks everything up for a planned node.
func newRecipe(node scheduling.PlannedNode, s scheduling.Snapshot, cat catalog.Catalogue) (*recipe, error) {
	g := &recipe{cluster: cat.Cluster, catalogue: cat, choice: choose(&node), labels: node.Requirements.Labels()}
	delete(g.labels, corev1.LabelInstanceTypeStable)
	if g.cluster.Name == "" {
		g.cluster.Name = s.Cluster
	}
	for i := range s.NodePools {
		if s.NodePools[i].Name == node.NodePool {
			g.pool = &s.NodePools[i]
		}
	}
	for i := range s.NodeClasses {
		if s.NodeClasses[i].Name == node.NodeClass {
			g.class = &s.NodeClasses[i]
		}
	}
	if g.pool == nil || g.class == nil {
		return nil, fault.F("looking up NodePool "+node.NodePool, fault.Bug, "the snapshot lacks it or its EC2NodeClass %q", node.NodeClass)
	}
	var err error
	g.config, err = scheduling.NodeConfig(g.class, s.Settings)
	return g, err
}

// intent writes the request for count nodes, but for who asks.
func (g *recipe) intent(count int) (Intent, error) {
	order, options, err := g.variants()
	if err != nil {
		return Intent{}, err
	}
	out := Intent{
		Cluster: g.cluster.Name, NodePool: g.pool.Name, NodeClass: g.class.Name,
		Fleet: cloud.FleetRequest{Count: count, CapacityType: g.choice.capacityType, Strategy: strategy(g.choice.capacityType)},
		Types: map[string]TypeFacts{}, Prices: map[string]float64{},
	}
	for _, v := range order {
		template, err := g.template(v)
		if err != nil {
			return Intent{}, err
		}
		out.Templates = append(out.Templates, template)
		overrides, err := g.overrides(options[v])
		if err != nil {
			return Intent{}, err
		}
		out.Fleet.Configs = append(out.Fleet.Configs, cloud.FleetConfig{Template: template.Name, Overrides: overrides})
	}
	return out, g.facts(&out)
}

// overrides are type by zone, with one subnet for each zone (B187). The class
// lists its subnets with the most free addresses first (B193).
func (g *recipe) overrides(options []scheduling.Option) ([]cloud.Override, error) {
	var out []cloud.Override
	for _, o := range options {
		subnet := ""
		for _, candidate := range g.class.Status.Subnets {
			if candidate.Zone == o.Zone && subnet == "" {
				subnet = candidate.ID
			}
		}
		if subnet == "" {
			return nil, fault.F("choosing a subnet", fault.Bug, "EC2NodeClass %s has none in %s", g.class.Name, o.Zone)
		}
		out = append(out, cloud.Override{InstanceType: o.InstanceType, SubnetID: subnet, Zone: o.Zone})
	}
	return out, nil
}

// facts tells lifecycle what a claim becomes, whichever type EC2 gives.
func (g *recipe) facts(intent *Intent) error {
	for _, o := range g.choice.options {
		intent.Prices[o.InstanceType+"/"+o.Zone] = o.PricePerHour
		facts, known := intent.Types[o.InstanceType]
		if !known {
			t, labels, err := g.hardware(o.InstanceType)
			if err != nil {
				return err
			}
			capacity, _, allocatable := catalog.Resources(t, g.config)
			facts = TypeFacts{Capacity: capacity, Allocatable: allocatable, Labels: labels, ZoneIDs: map[string]string{}}
		}
		if o.ZoneID != "" {
			facts.ZoneIDs[o.Zone] = o.ZoneID
		}
		intent.Types[o.InstanceType] = facts
	}
	return nil
}
