package instancetypes

import (
	"maps"
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
	// reservedDiscount divides the on-demand price: a reservation is paid for even if it is not used,
	// so it must always be the cheapest offering. The price is above zero so that of two reserved
	// types the smaller one is cheaper.
	reservedDiscount = 10_000_000
	// capacityBlockLead is the time before the end of a capacity block in which no node is launched
	// into it and its nodes are removed.
	capacityBlockLead = 40 * time.Minute
)

// listReservedOfferings returns the offerings of the type in the class's capacity reservations. A
// reservation without a known count has no capacity left, because EC2 might reject its launches.
func listReservedOfferings(t catalog.InstanceType, class *karpenter.EC2NodeClass, s planning.Snapshot, left map[string]int) []InstanceOffering {
	if !s.Settings.Gates.ReservedCapacity {
		return nil
	}
	var out []InstanceOffering
	for _, r := range class.Status.CapacityReservations {
		i := slices.IndexFunc(class.Status.Subnets, func(n karpenter.Subnet) bool { return n.Zone == r.AvailabilityZone })
		if r.InstanceType != t.Name || i < 0 {
			continue
		}
		offer := InstanceOffering{
			PricedOffering: planning.PricedOffering{
				Offering:     event.Offering{InstanceType: t.Name, Zone: r.AvailabilityZone, CapacityType: catalog.Reserved},
				ZoneID:       findZoneID(t, class.Status.Subnets[i]),
				PricePerHour: findOnDemandPrice(t, r.AvailabilityZone) / reservedDiscount,
			},
			Reservation: r.ID, ReservationCapacity: left[r.ID], Labels: newReservationLabels(r),
		}
		offer.Available = acceptsLaunches(r, s.TakenAt) && !planning.IsReservationUnavailable(r.ID, s) && !planning.IsOfferingUnavailable(offer.PricedOffering, class, s)
		out = append(out, offer)
	}
	return out
}

// acceptsLaunches reports whether a reservation allows launches at that time.
func acceptsLaunches(r karpenter.CapacityReservation, at time.Time) bool {
	if r.State == karpenter.CapacityReservationStateExpiring {
		return false
	}
	if r.EndTime.IsZero() {
		return true
	}
	end := r.EndTime.Time
	if r.ReservationType == karpenter.CapacityReservationTypeCapacityBlock {
		end = end.Add(-capacityBlockLead)
	}
	return at.Before(end)
}

// newReservationLabels returns the labels that the reservation adds to a node.
func newReservationLabels(r karpenter.CapacityReservation) map[string]string {
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

// countReservationCapacity returns how many more instances each reservation can launch: the
// catalogue's count, minus the nodes that it may not include yet, or none if EC2 found the reservation
// full after the count.
func countReservationCapacity(s planning.Snapshot, cat catalog.Catalogue) map[string]int {
	out := map[string]int{}
	for _, r := range cat.Reservations {
		if !planning.IsReservationFull(r.ID, cat.CountedAt(), s) {
			out[r.ID] = int(r.Count)
		}
	}
	for i := range s.Nodes {
		for _, id := range listUncountedReservations(&s.Nodes[i], s.ResolveCountTime(cat.CountedAt())) {
			out[id] = max(0, out[id]-1)
		}
	}
	return out
}

// CreditReservation returns the instance types with more free capacity in a reservation that they
// offer: the capacity that instances free when they are terminated.
func (s InstanceTypes) CreditReservation(id string, instances int) InstanceTypes {
	credit := func(types map[string][]Type) map[string][]Type {
		out := maps.Clone(types)
		for name, list := range types {
			out[name] = creditTypes(list, id, instances)
		}
		return out
	}
	s.ByNodeClass, s.ByNodePool = credit(s.ByNodeClass), credit(s.ByNodePool)
	return s
}

// creditTypes returns the types with the credited reservation. It does not change the list.
func creditTypes(types []Type, id string, instances int) []Type {
	out := types
	for i := range types {
		at := slices.IndexFunc(types[i].Offerings, func(o InstanceOffering) bool { return o.Reservation == id })
		if at < 0 {
			continue
		}
		if &out[0] == &types[0] {
			out = slices.Clone(types)
		}
		out[i].Offerings = slices.Clone(types[i].Offerings)
		out[i].Offerings[at].ReservationCapacity += instances
	}
	return out
}

// listUncountedReservations returns the reservations that the node uses but a count at that time may
// not include. A NodeClaim that is not launched may use any of its planned reservations, so it counts
// in each.
func listUncountedReservations(node *planning.Node, counted time.Time) []string {
	if node.IsIncludedIn(counted) {
		return nil
	}
	if id := node.Labels[karpenter.LabelCapacityReservationID]; id != "" {
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

// findOnDemandPrice returns the on-demand price in the zone, else the lowest of any zone, else $1 for
// a type without a published price.
func findOnDemandPrice(t catalog.InstanceType, zone string) float64 {
	lowest := 0.0
	for _, o := range t.Offerings {
		if o.CapacityType != catalog.OnDemand || !o.HasPrice() {
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

// findZoneID returns the zone id of the class's subnet, or else of the catalogue.
func findZoneID(t catalog.InstanceType, subnet karpenter.Subnet) string {
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
