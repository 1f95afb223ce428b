package market

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// PartName is the name of a part.
type PartName string

// The parts.
const (
	Types     PartName = "types"
	Offerings PartName = "offerings"
	Zones     PartName = "zones"
	Spot      PartName = "spot"
	Shifts    PartName = "shifts"
	OnDemand  PartName = "onDemand"
)

// Policy defines which parts the installation and its region can read.
type Policy struct {
	// Isolated is set if services without a VPC endpoint are out of reach.
	Isolated bool
	// HasPriceList is set if the AWS Price List has the region.
	HasPriceList bool
	// Shifts is set if zonal shifts are respected.
	Shifts bool
}

// partSchedule is a part's interval, its AWS action and a description of its content.
type partSchedule struct {
	PartName
	every           time.Duration
	action, content string
}

// schedule is in the order of reading. The price list is last, because it may be unreachable, and
// the call then blocks until its timeout. The intervals are Karpenter's, except for zonal shifts:
// Karpenter reads them every 30 s, but the scheduler's shortest rate is a minute.
var schedule = []partSchedule{
	{Types, 12 * time.Hour, "ec2:DescribeInstanceTypes", "hardware"},
	{Offerings, 5 * time.Minute, "ec2:DescribeInstanceTypeOfferings", "offered zones"},
	{Zones, 5 * time.Minute, "ec2:DescribeAvailabilityZones", "zone ids"},
	{Spot, 12 * time.Hour, "ec2:DescribeSpotPriceHistory", "spot prices"},
	{Shifts, time.Minute, "arc-zonal-shift:GetManagedResource", "zonal shifts"},
	{OnDemand, 12 * time.Hour, "pricing:GetProducts", "on-demand prices"},
}

const (
	// retryInterval is the interval after a failure, including a missing permission.
	retryInterval = 5 * time.Minute
	// throttledInterval is the interval after throttling.
	throttledInterval = time.Minute
	// tickTolerance makes a part due half a tick early. Otherwise a tick that comes a second early
	// would delay the part by a minute.
	tickTolerance = 30 * time.Second
)

// canRead reports whether the policy allows reading the part.
func (p Policy) canRead(name PartName) bool {
	switch name {
	case OnDemand:
		return p.HasPriceList && !p.Isolated
	case Shifts:
		return p.Shifts
	default:
		return true
	}
}

// ListDue returns the parts that are due at now, in the order of reading.
func ListDue(s State, p Policy, now time.Time) []PartName {
	var out []PartName
	for _, e := range schedule {
		if p.canRead(e.PartName) && s.Readings[e.PartName].isDue(e.every, now) {
			out = append(out, e.PartName)
		}
	}
	return out
}

// isDue reports whether the part is due at now. It is due if the clock went backwards.
func (r Reading) isDue(every time.Duration, now time.Time) bool {
	last, interval := r.At, every
	switch r.Kind {
	case "":
	case fault.Throttled:
		last, interval = r.Tried, throttledInterval
	default:
		last, interval = r.Tried, min(every, retryInterval)
	}
	since := now.Sub(last)
	return last.IsZero() || since < 0 || since >= interval-tickTolerance
}
