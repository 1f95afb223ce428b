package launchspec

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// filter narrows the offers of one launch. It gets all offers, because the result for one may depend
// on the others. Offers are sorted by price, and the order is kept. The result uses the memory of the
// offers, which must not be used afterwards.
type filter struct {
	name string
	keep func(planning.Requirements, []offer) []offer
}

// filters are applied in this order. Unavailable offerings were already excluded when the node was
// planned.
var filters = []filter{
	{"CompatibleLaunchable", launchable},
	{"CapacityReservationType", oneReservationType},
	{"CapacityBlock", oneCapacityBlock},
	{"ReservedOffering", oneReservationEach},
	{"ExoticInstanceType", noExotic},
	{"SpotOffering", noDearSpot},
}

// launchable keeps offers that the node's requirements allow, without full reservations. So later
// filters prefer no reservation that cannot launch to one that can, or to on-demand and spot.
func launchable(reqs planning.Requirements, offers []offer) []offer {
	return kept(offers, func(o offer) bool {
		if (o.CapacityType == cloud.Reserved) != (o.reservation != nil) {
			return false // The class no longer lists the reservation.
		}
		if o.reservation != nil && o.left <= 0 {
			return false
		}
		for _, key := range offerKeys {
			if values, asked := reqs[key]; asked && o.label(key) != "" && !values.Has(o.label(key)) {
				return false
			}
		}
		return true
	})
}

// offerKeys are the labels that an offer sets, in addition to those of its type.
var offerKeys = []string{
	corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, karpenter.LabelTopologyZoneID,
	karpenter.CapacityTypeLabelKey, karpenter.LabelCapacityReservationID,
}

// oneReservationType keeps the reservations in the market of the cheapest one, because a fleet call
// uses one market. If there is any reservation, other offers are dropped.
func oneReservationType(_ planning.Requirements, offers []offer) []offer {
	best := -1
	for i, o := range offers {
		if o.reservation != nil && (best < 0 || cheaper(o, offers[best])) {
			best = i
		}
	}
	if best < 0 {
		return offers
	}
	kind := offers[best].kind()
	return kept(offers, func(o offer) bool { return o.reservation != nil && o.kind() == kind })
}

func cheaper(a, b offer) bool {
	return cmp.Or(cmp.Compare(a.PricePerHour, b.PricePerHour), cmp.Compare(a.kind().rank(), b.kind().rank())) < 0
}

// oneCapacityBlock keeps the cheapest capacity block, because a fleet call takes only one.
func oneCapacityBlock(_ planning.Requirements, offers []offer) []offer {
	best := -1
	for i, o := range offers {
		if o.reservation != nil && o.kind().block && (best < 0 || o.PricePerHour < offers[best].PricePerHour) {
			best = i
		}
	}
	if best < 0 {
		return offers
	}
	return offers[best : best+1]
}

// oneReservationEach keeps, for each type and zone, the reservation with the most remaining capacity:
// a fleet treats two of them as the same capacity pool.
func oneReservationEach(_ planning.Requirements, offers []offer) []offer {
	best := map[[2]string]int{}
	for i, o := range offers {
		if o.reservation == nil {
			continue
		}
		at := [2]string{o.InstanceType, o.Zone}
		if was, known := best[at]; !known || o.left > offers[was].left {
			best[at] = i
		}
	}
	if len(best) == 0 {
		return offers
	}
	var out []offer
	for i, o := range offers {
		if was, known := best[[2]string{o.InstanceType, o.Zone}]; known && was == i {
			out = append(out, o)
		}
	}
	return out
}

// noExotic drops exotic types if others remain, unless there are minValues.
func noExotic(reqs planning.Requirements, offers []offer) []offer {
	plain := func(o offer) bool { return !o.exotic }
	if reqs.HasMinValues() || !slices.ContainsFunc(offers, plain) {
		return offers
	}
	return kept(offers, plain)
}

// noDearSpot drops spot offers that cost more than the cheapest on-demand offer, unless there are
// minValues.
func noDearSpot(reqs planning.Requirements, offers []offer) []offer {
	at := slices.IndexFunc(offers, func(o offer) bool { return o.CapacityType == cloud.OnDemand })
	if at < 0 || reqs.HasMinValues() {
		return offers
	}
	cheapest := offers[at].PricePerHour
	return kept(offers, func(o offer) bool { return o.CapacityType != cloud.Spot || o.PricePerHour <= cheapest })
}

func kept(offers []offer, keep func(offer) bool) []offer {
	return slices.DeleteFunc(offers, func(o offer) bool { return !keep(o) })
}
