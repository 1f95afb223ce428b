package market

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Name names a part.
type Name string

// The parts.
const (
	Types     Name = "types"
	Offerings Name = "offerings"
	Zones     Name = "zones"
	Spot      Name = "spot"
	Shifts    Name = "shifts"
	OnDemand  Name = "onDemand"
)

// Policy is what the installation and its region allow to be read.
type Policy struct {
	// Isolated says that what has no VPC endpoint cannot be reached.
	Isolated bool
	// Listed says that the price list has the region.
	Listed bool
	// Shifts says that zonal shifts are heeded.
	Shifts bool
}

// entry is how often a part is read, by which action, and what it carries.
type entry struct {
	Name
	every           time.Duration
	action, carries string
}

// schedule is in the order of reading. The price list is last, because it alone
// may be out of reach, and then takes its whole time to say so. Types and prices
// are read every 12 h and offerings every 5 min, as by Karpenter; zonal shifts each minute,
// where Karpenter takes 30 s, because the scheduler has no finer rate.
var schedule = []entry{
	{Types, 12 * time.Hour, "ec2:DescribeInstanceTypes", "hardware"},
	{Offerings, 5 * time.Minute, "ec2:DescribeInstanceTypeOfferings", "zones of sale"},
	{Zones, 5 * time.Minute, "ec2:DescribeAvailabilityZones", "zone ids"},
	{Spot, 12 * time.Hour, "ec2:DescribeSpotPriceHistory", "spot prices"},
	{Shifts, time.Minute, "arc-zonal-shift:GetManagedResource", "zonal shifts"},
	{OnDemand, 12 * time.Hour, "pricing:GetProducts", "on-demand prices"},
}

const (
	// again is how soon a part that failed is read again. A right that was granted
	// is noticed as soon.
	again = 5 * time.Minute
	// soon is the same for one that failed for its rate alone.
	soon = time.Minute
	// slack lets what is due within half a tick be read now, or a tick that is a
	// second early would put it off by a minute.
	slack = 30 * time.Second
)

// reads reports whether the policy lets the part be read.
func (p Policy) reads(name Name) bool {
	switch name {
	case OnDemand:
		return p.Listed && !p.Isolated
	case Shifts:
		return p.Shifts
	default:
		return true
	}
}

// Due lists what is to be read now, in the order of reading.
func Due(s State, p Policy, now time.Time) []Name {
	var out []Name
	for _, e := range schedule {
		if p.reads(e.Name) && s.Readings[e.Name].due(e.every, now) {
			out = append(out, e.Name)
		}
	}
	return out
}

// due holds a clock that ran backwards for one that ran on: reading too often
// does no harm.
func (r Reading) due(every time.Duration, now time.Time) bool {
	last, wait := r.At, every
	switch r.Kind {
	case "":
	case fault.Throttled:
		last, wait = r.Tried, soon
	default:
		last, wait = r.Tried, min(every, again)
	}
	since := now.Sub(last)
	return last.IsZero() || since < 0 || since >= wait-slack
}
