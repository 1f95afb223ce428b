package launchspec

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// offer is a way to buy a node, with what the filters ask of it.
type offer struct {
	planning.PricedOffering
	// exotic types are dear for what ordinary pods use of them.
	exotic bool
	// labels are those of the type; nil where nobody asks.
	labels map[string]string
	// reservation is what a launch takes from, and left how many more launches it
	// takes. It is nil for offers that are not reserved.
	reservation *karpenter.CapacityReservation
	left        int
}

// kind is the market of a reserved offer: one fleet call has one.
func (o offer) kind() reservationKind {
	return reservationKind{o.reservation.ReservationType == karpenter.CapacityReservationTypeCapacityBlock, o.reservation.Interruptible}
}

// reservationKind tells apart what a fleet call cannot mix.
type reservationKind struct{ block, interruptible bool }

// target is EC2's word for a fleet of the kind.
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

// market is EC2's word for an instance of the kind.
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

// rank decides between kinds of one price: what is paid for and stays goes first.
func (k reservationKind) rank() int {
	return slices.Index([]reservationKind{{}, {block: true}, {interruptible: true}}, k)
}

// reserved turns an option into one offer for each of the class's reservations that
// it may mean. An option that is not reserved stays one.
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

// label is what the offer decides of a node's labels.
func (o offer) label(key string) string {
	switch {
	case key == corev1.LabelInstanceTypeStable:
		return o.InstanceType
	case key == karpenter.LabelCapacityReservationID && o.reservation != nil:
		return o.reservation.ID
	}
	return cmp.Or(o.Label(key), o.labels[key])
}
