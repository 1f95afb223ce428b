// Package placement chooses, out of the capacity reservations and placement groups
// of an account, those that an EC2NodeClass selects, and counts what is left in
// the account for everyone.
//
// Everything is a function of what EC2 said and of the time: the same account
// gives the same lists in the same order.
package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// blockLead is how long before its end a capacity block is said to expire: EC2
// ends its instances half an hour before, and draining takes a while.
const blockLead = 40 * time.Minute

// Reservations are those that any term selects, by id.
func Reservations(found []cloud.Reservation, terms []karpenter.CapacityReservationSelectorTerm, now time.Time) []event.Reservation {
	var out []event.Reservation
	for _, r := range found {
		if !known(r) || !slices.ContainsFunc(terms, func(t karpenter.CapacityReservationSelectorTerm) bool { return selects(t, r) }) {
			continue
		}
		block := r.Kind == cloud.CapacityBlock
		out = append(out, event.Reservation{
			ID: r.ID, InstanceType: r.InstanceType, Zone: r.Zone, OwnerID: r.Owner, MatchCriteria: r.Match, Kind: r.Kind,
			Interruptible: r.Interruptible, Ends: r.Ends.UTC(),
			Expiring: block && !r.Ends.IsZero() && !now.Before(r.Ends.Add(-blockLead)),
		})
	}
	slices.SortFunc(out, func(a, b event.Reservation) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// known reports whether the status has words for the reservation: the schema would
// refuse a whole status for one sort that EC2 has thought of since.
func known(r cloud.Reservation) bool {
	return r.Zone != "" && (r.Match == cloud.MatchOpen || r.Match == cloud.MatchTargeted) &&
		(r.Kind == cloud.DefaultReservation || r.Kind == cloud.CapacityBlock)
}

// selects reports whether all that the term names is so. A term that names
// nothing selects nothing.
func selects(t karpenter.CapacityReservationSelectorTerm, r cloud.Reservation) bool {
	if t.ID == "" && t.OwnerID == "" && t.InstanceMatchCriteria == "" && len(t.Tags) == 0 {
		return false
	}
	return is(t.ID, r.ID) && is(t.OwnerID, r.Owner) && is(t.InstanceMatchCriteria, r.Match) && cloud.Tagged(t.Tags, r.Tags)
}

// is compares with what a term names; it need not name anything.
func is(wanted, value string) bool { return wanted == "" || wanted == value }

// Group is the placement group that the selector names.
func Group(found []cloud.PlacementGroup, selector karpenter.PlacementGroupSelector) (cloud.PlacementGroup, bool) {
	name, id := text(selector.Name), text(selector.ID)
	i := slices.IndexFunc(found, func(g cloud.PlacementGroup) bool {
		return (name != "" || id != "") && is(name, g.Name) && is(id, g.ID)
	})
	if i < 0 {
		return cloud.PlacementGroup{}, false
	}
	return found[i], true
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Account is what an account had left at a moment, as EC2 said it.
type Account struct {
	Counted      time.Time
	Subnets      []cloud.Subnet
	Reservations []cloud.Reservation
	Groups       []cloud.PlacementGroup
}

// Into writes the counts into a catalogue, sorted. Where they are the same as
// before, so is the time that goes with them: what does not change must not make
// a new document. That the older time is kept errs to the safe side, for of nodes
// that are younger than a count it is assumed that they are not in it.
func (a Account) Into(doc, before catalog.Catalogue) catalog.Catalogue {
	doc.Counted, doc.Subnets, doc.Reservations, doc.PlacementGroups = a.Counted.UTC(), nil, nil, nil
	for _, n := range a.Subnets {
		doc.Subnets = append(doc.Subnets, catalog.SubnetCount{ID: n.ID, FreeIPs: int64(n.FreeIPs)})
	}
	for _, r := range a.Reservations {
		doc.Reservations = append(doc.Reservations, catalog.ReservationCount{ID: r.ID, Count: int64(r.Available)})
	}
	for _, g := range a.Groups {
		doc.PlacementGroups = append(doc.PlacementGroups, catalog.PlacementGroup{
			ID: g.ID, Name: g.Name, Strategy: g.Strategy, Partitions: int64(g.Partitions),
		})
	}
	slices.SortFunc(doc.Subnets, func(a, b catalog.SubnetCount) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(doc.Reservations, func(a, b catalog.ReservationCount) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(doc.PlacementGroups, func(a, b catalog.PlacementGroup) int { return cmp.Compare(a.ID, b.ID) })
	if same(doc, before) {
		doc.Counted = before.Counted
	}
	return doc
}

func same(a, b catalog.Catalogue) bool {
	return !b.Counted.IsZero() && slices.Equal(a.Subnets, b.Subnets) && slices.Equal(a.Reservations, b.Reservations) &&
		slices.Equal(a.PlacementGroups, b.PlacementGroups)
}
