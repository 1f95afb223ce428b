package launchspec

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// offer is an offering with the values that the filters use.
type offer struct {
	planning.PricedOffering
	// exotic types are expensive for ordinary pods.
	exotic bool
	// labels are those of the type; nil if not needed.
	labels map[string]string
	// reservation is the capacity reservation that a launch uses, and left its remaining capacity; nil
	// for other offers.
	reservation *karpenter.CapacityReservation
	left        int
}

// kind is the market of a reserved offer. A fleet call uses one market.
func (o offer) kind() reservationKind {
	return reservationKind{o.reservation.ReservationType == karpenter.CapacityReservationTypeCapacityBlock, o.reservation.Interruptible}
}

// reservationKind distinguishes reservations that a fleet call cannot mix.
type reservationKind struct{ block, interruptible bool }

// target returns EC2's value for a fleet of the kind.
func (k reservationKind) target() string {
	switch {
	case k.block:
		return cloud.TargetCapacityBlock
	case k.interruptible:
		return cloud.TargetReservedCapacity
	default:
		return ""
	}
}

// market returns EC2's value for an instance of the kind.
func (k reservationKind) market() string {
	switch {
	case k.block:
		return cloud.MarketCapacityBlock
	case k.interruptible:
		return cloud.MarketInterruptible
	default:
		return ""
	}
}

// rank orders kinds of equal price: first ordinary reservations, then capacity blocks, then
// interruptible ones.
func (k reservationKind) rank() int {
	return slices.Index([]reservationKind{{}, {block: true}, {interruptible: true}}, k)
}

// reserved returns one offer for each of the class's reservations that match a reserved offer. Other
// offers are returned unchanged.
func reserved(o offer, class *karpenter.EC2NodeClass, left map[string]int) []offer {
	if o.CapacityType != cloud.Reserved {
		return []offer{o}
	}
	var out []offer
	for i := range class.Status.CapacityReservations {
		r := &class.Status.CapacityReservations[i]
		if r.InstanceType == o.InstanceType && r.AvailabilityZone == o.Zone {
			o.reservation, o.left = r, left[r.ID]
			out = append(out, o)
		}
	}
	return out
}

// label returns the offer's value of a node label.
func (o offer) label(key string) string {
	switch {
	case key == corev1.LabelInstanceTypeStable:
		return o.InstanceType
	case key == karpenter.LabelCapacityReservationID && o.reservation != nil:
		return o.reservation.ID
	}
	return cmp.Or(o.Label(key), o.labels[key])
}
