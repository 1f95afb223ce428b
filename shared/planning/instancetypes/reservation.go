package instancetypes

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// reservedDiscount divides the on-demand price: a reservation is paid for whether it
	// is used or not, so using it must always be cheapest. The price is above zero, so that
	// of two reserved types the smaller one is cheaper.
	reservedDiscount = 10_000_000
	// blockLead is the time before the end of a capacity block in which no node is
	// launched into it and its nodes are removed.
	blockLead = 40 * time.Minute
)

// reservedOffers are the ways to buy the type out of the class's capacity
// reservations. One whose count is not known has none left: a plan
// must not promise what EC2 then refuses.
func reservedOffers(t catalog.InstanceType, class *karpenter.EC2NodeClass, s planning.Snapshot, left map[string]int) []Offer {
	if !s.Settings.Gates.ReservedCapacity {
		return nil
	}
	var out []Offer
	for _, r := range class.Status.CapacityReservations {
		i := slices.IndexFunc(class.Status.Subnets, func(n karpenter.Subnet) bool { return n.Zone == r.AvailabilityZone })
		if r.InstanceType != t.Name || i < 0 {
			continue
		}
		offer := Offer{
			Option: planning.Option{
				Offering:     event.Offering{InstanceType: t.Name, Zone: r.AvailabilityZone, CapacityType: catalog.Reserved},
				ZoneID:       zoneID(t, class.Status.Subnets[i]),
				PricePerHour: onDemandPrice(t, r.AvailabilityZone) / reservedDiscount,
			},
			Reservation: r.ID, Count: left[r.ID], Labels: reservationLabels(r),
		}
		offer.Available = offer.Count > 0 && usable(r, s.Taken) && !planning.ReservationUnavailable(r.ID, s) && !planning.OfferingUnavailable(offer.Option, class, s)
		out = append(out, offer)
	}
	return out
}

// usable reports whether a reservation takes launches at that time.
func usable(r karpenter.CapacityReservation, at time.Time) bool {
	if r.State == karpenter.CapacityReservationStateExpiring {
		return false
	}
	if r.EndTime.IsZero() {
		return true
	}
	end := r.EndTime.Time
	if r.ReservationType == karpenter.CapacityReservationTypeCapacityBlock {
		end = end.Add(-blockLead)
	}
	return at.Before(end)
}

// reservationLabels are what a node of the reservation carries.
func reservationLabels(r karpenter.CapacityReservation) map[string]string {
	kind := r.ReservationType
	if kind == "" {
		kind = karpenter.CapacityReservationTypeDefault
	}
	return map[string]string{
		karpenter.LabelCapacityReservationID:            r.ID,
		karpenter.LabelCapacityReservationType:          string(kind),
		karpenter.LabelCapacityReservationInterruptible: strconv.FormatBool(r.Interruptible),
	}
}

// reservationsLeft is how many launches each reservation still takes: what was
// counted, less the nodes that the count may not know of.
func reservationsLeft(s planning.Snapshot, cat catalog.Catalogue) map[string]int {
	out := map[string]int{}
	for _, r := range cat.Reservations {
		out[r.ID] = int(r.Count)
	}
	for i := range s.Nodes {
		for _, id := range taking(&s.Nodes[i], cat.CountedAt()) {
			out[id] = max(0, out[id]-1)
		}
	}
	return out
}

// taking names the reservations that the node takes from, unbeknown to a count
// of that time. A claim that is not launched may take from any of those that it
// was planned for, so it counts in each.
func taking(node *planning.Node, counted time.Time) []string {
	if id := node.Labels[karpenter.LabelCapacityReservationID]; id != "" {
		if node.Created.Before(counted.Add(-planning.LaunchLag)) {
			return nil
		}
		return []string{id}
	}
	if node.Launched {
		return nil
	}
	for _, r := range node.Requirements {
		if r.Key == karpenter.LabelCapacityReservationID && r.Operator == corev1.NodeSelectorOpIn {
			return r.Values
		}
	}
	return nil
}

// onDemandPrice is that of the zone, or the lowest anywhere, or a dollar for a
// type without a public price.
func onDemandPrice(t catalog.InstanceType, zone string) float64 {
	lowest := 0.0
	for _, o := range t.Offerings {
		if o.CapacityType != catalog.OnDemand || !o.Priced() {
			continue
		}
		if o.Zone == zone {
			return o.PricePerHour
		}
		if lowest == 0 || o.PricePerHour < lowest {
			lowest = o.PricePerHour
		}
	}
	if lowest == 0 {
		return 1
	}
	return lowest
}

// zoneID is what the class's subnet says, or else the catalogue.
func zoneID(t catalog.InstanceType, subnet karpenter.Subnet) string {
	if subnet.ZoneID != "" {
		return subnet.ZoneID
	}
	for _, o := range t.Offerings {
		if o.Zone == subnet.Zone {
			return o.ZoneID
		}
	}
	return ""
}
