package memcloud

import (
	"cmp"
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// candidate is one override of one config, with its index in the request.
type candidate struct {
	cloud.Override
	template string
	offering event.Offering
	index    int
	price    float64
	depth    float64
}

// strategies order the candidates: the first is tried first. AWS's algorithms are not public; these keep what AWS
// documents about each. Ties keep the order of the request.
var strategies = map[string]func(a, b candidate) int{
	"":                   byPrice,
	"lowest-price":       byPrice,
	"prioritized":        byPriority,
	"capacity-optimized": byDepth,
	"price-capacity-optimized": func(a, b candidate) int {
		return cmp.Compare(a.price*(1.5-a.depth), b.price*(1.5-b.depth))
	},
	"capacity-optimized-prioritized": func(a, b candidate) int {
		return cmp.Or(cmp.Compare(math.Floor(b.depth*4), math.Floor(a.depth*4)), byPriority(a, b))
	},
}

func byPrice(a, b candidate) int { return cmp.Compare(a.price, b.price) }
func byDepth(a, b candidate) int { return cmp.Compare(b.depth, a.depth) }

// byPriority puts the lowest number first; an override without one is last.
func byPriority(a, b candidate) int { return cmp.Compare(rank(a), rank(b)) }

func rank(c candidate) float64 {
	if c.Priority == nil {
		return math.Inf(1)
	}
	return *c.Priority
}

// onDemandStrategies are the strategies that EC2 accepts for capacity that is not spot.
var onDemandStrategies = []string{"", "lowest-price", "prioritized"}

// knows reports whether EC2 accepts the strategy for the capacity type.
func knows(capacityType, strategy string) bool {
	if capacityType != cloud.Spot {
		return slices.Contains(onDemandStrategies, strategy)
	}
	return strategies[strategy] != nil && strategy != "prioritized"
}

// candidates returns the overrides of a request in the strategy's order.
func (c *Cloud) candidates(request cloud.FleetRequest) []candidate {
	var out []candidate
	for _, config := range request.Configs {
		for _, override := range config.Overrides {
			out = append(out, c.candidate(request, config.Template, override, len(out)))
		}
	}
	slices.SortStableFunc(out, strategies[request.Strategy])
	return out
}

func (c *Cloud) candidate(request cloud.FleetRequest, template string, override cloud.Override, index int) candidate {
	o := event.Offering{InstanceType: override.InstanceType, Zone: c.zoneOf(override), CapacityType: request.CapacityType}
	out := candidate{Override: override, template: template, offering: o, index: index, depth: c.depth(o)}
	out.price = math.Inf(1)
	if offer := c.offers[o]; offer != nil {
		out.price = offer.price
	}
	return out
}

// zoneOf returns the zone of an override's subnet, or else the zone that the override names.
func (c *Cloud) zoneOf(override cloud.Override) string {
	if s := c.subnets[override.SubnetID]; s != nil {
		return s.Zone
	}
	return override.Zone
}
