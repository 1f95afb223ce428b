package launchspec

import (
	"cmp"
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// addresses is the number of free IPv4 addresses by subnet id: the counted ones, minus the addresses
// that nodes took since. A subnet that is missing was not counted.
type addresses map[string]int64

// exhausted marks a subnet that EC2 rejected for lack of addresses. It is tried last, after subnets
// that were not counted.
const exhausted = math.MinInt32

// newAddresses subtracts the addresses that the count does not include. The subnets of new nodes are
// not recorded, but were chosen by the same rule: in each zone, the subnet with the most free
// addresses. A NodeClaim that may launch in several zones counts in each, which at worst spreads
// launches more.
func newAddresses(s planning.Snapshot, cat catalog.Catalogue) addresses {
	left := addresses{}
	for _, n := range cat.Subnets {
		left[n.ID] = n.FreeIPs
	}
	classes := map[string]*karpenter.EC2NodeClass{}
	for i := range s.NodeClasses {
		class := &s.NodeClasses[i]
		classes[class.Name] = class
		for _, subnet := range class.Status.Subnets {
			if planning.IsSubnetUnavailable(subnet.ID, s) {
				left[subnet.ID] = exhausted
			}
		}
	}
	var young []*planning.Node
	for i := range s.Nodes {
		if s.CountNewAddresses(&s.Nodes[i], s.ResolveCountTime(cat.CountedAt())) > 0 {
			young = append(young, &s.Nodes[i])
		}
	}
	slices.SortFunc(young, func(a, b *planning.Node) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range young {
		class := classes[node.Labels[karpenter.LabelEC2NodeClass]]
		if class == nil {
			continue
		}
		for zone, subnet := range left.byZone(class) {
			if node.CanBeInZone(zone) {
				left.take(subnet, s.CountNewAddresses(node, s.ResolveCountTime(cat.CountedAt())))
			}
		}
	}
	return left
}

// byZone returns the subnet of each zone for launches of the class: the one with the most free
// addresses. If none was counted, or for equal counts, the class's order decides.
func (a addresses) byZone(class *karpenter.EC2NodeClass) map[string]string {
	out := map[string]string{}
	for _, subnet := range class.Status.Subnets {
		if best, known := out[subnet.Zone]; !known || a[subnet.ID] > a[best] {
			out[subnet.Zone] = subnet.ID
		}
	}
	return out
}

func (a addresses) take(subnet string, count int64) {
	if left, counted := a[subnet]; counted {
		a[subnet] = left - count
	}
}

// overrides returns one override for each offer, with the subnet of its zone, and its priority if EC2
// needs one.
func (g *recipe) overrides(offers []offer) ([]cloud.Override, error) {
	var out []cloud.Override
	for _, o := range offers {
		subnet := g.subnets[o.Zone]
		if subnet == "" {
			return nil, fault.F("choosing a subnet", fault.Bug, "EC2NodeClass %s has no subnet in zone %s", g.class.Name, o.Zone)
		}
		override := cloud.Override{InstanceType: o.InstanceType, SubnetID: subnet, Zone: o.Zone}
		if priority, told := g.priorities[o.PricePerHour]; told {
			override.Priority = &priority
		}
		out = append(out, override)
	}
	return out, nil
}
