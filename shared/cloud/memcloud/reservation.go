package memcloud

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

var _ cloud.Placements = (*Cloud)(nil)

// reservation is capacity for size instances.
type reservation struct {
	cloud.Reservation
	size int
	// reclaimed is true while the owner takes the capacity back.
	reclaimed bool
}

// AddReservation adds a capacity reservation with room for Available instances. An empty ID is generated; the
// defaults are the account as owner, targeted, and DefaultReservation.
func (c *Cloud) AddReservation(r cloud.Reservation) cloud.Reservation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ID == "" {
		r.ID = c.identify("cr")
	}
	r.Owner = cmp.Or(r.Owner, c.options.Account)
	r.Match = cmp.Or(r.Match, cloud.MatchTargeted)
	r.Kind = cmp.Or(r.Kind, cloud.DefaultReservation)
	r.Tags = maps.Clone(r.Tags)
	c.reserved = append(c.reserved, &reservation{Reservation: r, size: r.Available})
	at := event.Offering{InstanceType: r.InstanceType, Zone: r.Zone, CapacityType: cloud.Reserved}
	if c.offers[at] == nil {
		c.offers[at] = &offer{counted: true}
	}
	c.offers[at].free += r.Available
	return r
}

// RemoveReservation cancels a capacity reservation: its instances keep running.
func (c *Cloud) RemoveReservation(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved = slices.DeleteFunc(c.reserved, func(r *reservation) bool {
		if r.ID == id {
			at := event.Offering{InstanceType: r.InstanceType, Zone: r.Zone, CapacityType: cloud.Reserved}
			c.offers[at].free = max(0, c.offers[at].free-c.left(r))
		}
		return r.ID == id
	})
}

// UseReservation uses capacity of a reservation for instances of another account. Joist does not see these, only their
// count.
func (c *Cloud) UseReservation(id string, instances int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reserved {
		if r.ID == id {
			r.size -= instances
		}
	}
}

// FillReservation is UseReservation for all free capacity. It returns the number of instances.
func (c *Cloud) FillReservation(id string) (instances int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reserved {
		if r.ID == id {
			instances = c.left(r)
			r.size -= instances
		}
	}
	return instances
}

// ReclaimReservation rejects all launches into an interruptible reservation whose owner takes the capacity back. Its
// free capacity is still shown.
func (c *Cloud) ReclaimReservation(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reserved {
		r.reclaimed = r.reclaimed || r.ID == id
	}
}

// left returns how many more instances fit into a reservation. Instances whose template names it count until they are
// terminated.
func (c *Cloud) left(r *reservation) int {
	left := r.size
	for _, i := range c.existing {
		target := i.template.Reservation
		if i.CapacityType == cloud.Reserved && i.State != cloud.Terminated && target != nil && target.ID == r.ID {
			left--
		}
	}
	return max(0, left)
}

// overbooked rejects a launch into a full or reclaimed reservation.
func (c *Cloud) overbooked(from candidate) *Refusal {
	target := c.templates[from.template].Reservation
	if from.offering.CapacityType != cloud.Reserved || target == nil {
		return nil
	}
	for _, r := range c.reserved {
		if r.ID == target.ID && r.reclaimed {
			return &Refusal{"InvalidCapacityReservationState.Unavailable", fmt.Sprintf("The capacity reservation %s is not available.", r.ID)}
		}
		if r.ID == target.ID && c.left(r) == 0 {
			return &Refusal{"ReservationCapacityExceeded", fmt.Sprintf(
				"The requested reservation %s does not have sufficient capacity.", r.ID)}
		}
	}
	return nil
}

// DescribeReservations returns the capacity reservations that have not ended, in the order in which they were added.
func (c *Cloud) DescribeReservations(ctx context.Context) ([]cloud.Reservation, error) {
	var out []cloud.Reservation
	err := c.call(ctx, DescribeReservations, func(now time.Time) error {
		for _, r := range c.reserved {
			if !r.Ends.IsZero() && !now.Before(r.Ends) {
				continue
			}
			shown := r.Reservation
			shown.Available, shown.Tags = c.left(r), maps.Clone(r.Tags)
			out = append(out, shown)
		}
		return nil
	})
	return out, err
}

// AddPlacementGroup adds a placement group. An empty ID is generated.
func (c *Cloud) AddPlacementGroup(g cloud.PlacementGroup) cloud.PlacementGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.ID == "" {
		g.ID = c.identify("pg")
	}
	g.Tags = maps.Clone(g.Tags)
	c.placement = append(c.placement, g)
	return g
}

// partition returns the partition of a launch into the placement group: the template's, or the next one in turn, as
// EC2 spreads instances over partitions.
func (c *Cloud) partition(p *cloud.Placement) int32 {
	group, ok := c.group(p)
	if !ok || group.Partitions == 0 {
		return 0
	}
	if p.Partition != 0 {
		return p.Partition
	}
	return int32(len(c.all)%group.Partitions) + 1
}

// group returns the placement group that a launch names, if it exists.
func (c *Cloud) group(p *cloud.Placement) (cloud.PlacementGroup, bool) {
	if p == nil {
		return cloud.PlacementGroup{}, false
	}
	at := slices.IndexFunc(c.placement, func(g cloud.PlacementGroup) bool {
		return p.GroupID != "" && g.ID == p.GroupID || p.GroupID == "" && g.Name == p.Group
	})
	if at < 0 {
		return cloud.PlacementGroup{}, false
	}
	return c.placement[at], true
}

// DescribePlacementGroups returns the placement groups in the order in which they were added.
func (c *Cloud) DescribePlacementGroups(ctx context.Context) ([]cloud.PlacementGroup, error) {
	var out []cloud.PlacementGroup
	err := c.call(ctx, DescribeGroups, func(time.Time) error {
		for _, g := range c.placement {
			g.Tags = maps.Clone(g.Tags)
			out = append(out, g)
		}
		return nil
	})
	return out, err
}
