// Package placement selects the capacity reservations and the placement group of an
// EC2NodeClass, and writes the account's remaining capacity into the catalogue.
//
// All functions are pure; the time is an argument.
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

// blockLead is how long before its end a capacity block counts as expiring. EC2 terminates
// its instances 30 minutes before the end, and the nodes must be drained first.
const blockLead = 40 * time.Minute

// SelectReservations returns the reservations that any term selects, sorted by id.
func SelectReservations(found []cloud.Reservation, terms []karpenter.CapacityReservationSelectorTerm, now time.Time) []event.Reservation {
	var out []event.Reservation
	for _, r := range found {
		if !isSupported(r) || !slices.ContainsFunc(terms, func(t karpenter.CapacityReservationSelectorTerm) bool { return termSelects(t, r) }) {
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

// isSupported reports whether the schema of the status allows the reservation. The API
// server would reject the whole status because of one reservation of an unknown kind.
func isSupported(r cloud.Reservation) bool {
	return r.Zone != "" && (r.Match == cloud.MatchOpen || r.Match == cloud.MatchTargeted) &&
		(r.Kind == cloud.DefaultReservation || r.Kind == cloud.CapacityBlock)
}

// termSelects reports whether the reservation matches all fields of the term. An empty
// term selects nothing.
func termSelects(t karpenter.CapacityReservationSelectorTerm, r cloud.Reservation) bool {
	if t.ID == "" && t.OwnerID == "" && t.InstanceMatchCriteria == "" && len(t.Tags) == 0 {
		return false
	}
	return matchesField(t.ID, r.ID) && matchesField(t.OwnerID, r.Owner) && matchesField(t.InstanceMatchCriteria, r.Match) && cloud.Tagged(t.Tags, r.Tags)
}

// matchesField reports whether the value matches a term's field; an empty field matches all.
func matchesField(wanted, value string) bool { return wanted == "" || wanted == value }

// FindGroup returns the placement group that the selector names; false if it does not exist.
func FindGroup(found []cloud.PlacementGroup, selector karpenter.PlacementGroupSelector) (cloud.PlacementGroup, bool) {
	name, id := stringValue(selector.Name), stringValue(selector.ID)
	i := slices.IndexFunc(found, func(g cloud.PlacementGroup) bool {
		return (name != "" || id != "") && matchesField(name, g.Name) && matchesField(id, g.ID)
	})
	if i < 0 {
		return cloud.PlacementGroup{}, false
	}
	return found[i], true
}

func stringValue(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Account is an account's remaining capacity at the time Counted.
type Account struct {
	Counted      time.Time
	Subnets      []cloud.Subnet
	Reservations []cloud.Reservation
	Groups       []cloud.PlacementGroup
}

// AddTo returns the catalogue with the account's counts, sorted. If the counts equal the previous
// ones, it keeps their time, so that unchanged counts make no new document. The older time is safe:
// readers assume for some minutes that the counts do not include newer nodes.
func (a Account) AddTo(doc, before catalog.Catalogue) catalog.Catalogue {
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
	if equalCounts(doc, before) {
		doc.Counted = before.Counted
	}
	return doc
}

func equalCounts(a, b catalog.Catalogue) bool {
	return !b.Counted.IsZero() && slices.Equal(a.Subnets, b.Subnets) && slices.Equal(a.Reservations, b.Reservations) &&
		slices.Equal(a.PlacementGroups, b.PlacementGroups)
}
