package cloud

import (
	"context"
	"time"
)

// Placements reads capacity reservations and placement groups. An account has few, so all are read, and callers
// select.
type Placements interface {
	// DescribeReservations returns the active capacity reservations, including the reservations that other accounts share with
	// this one.
	DescribeReservations(ctx context.Context) ([]Reservation, error)
	// DescribePlacementGroups returns the available placement groups.
	DescribePlacementGroups(ctx context.Context) ([]PlacementGroup, error)
}

// Kinds of a capacity reservation, and which launches it accepts.
const (
	DefaultReservation = "default"
	CapacityBlock      = "capacity-block"
	MatchOpen          = "open"
	MatchTargeted      = "targeted"
)

// Reservation is one capacity reservation (On-Demand Capacity Reservation or Capacity Block).
type Reservation struct {
	ID, InstanceType, Zone string
	// Owner is the number of the owning account.
	Owner string
	// Match is MatchOpen or MatchTargeted.
	Match string
	// Kind is DefaultReservation or CapacityBlock.
	Kind string
	// Interruptible means that the owner may reclaim the capacity.
	Interruptible bool
	// Available is how many more instances fit.
	Available int
	// Ends is zero for a reservation without an end.
	Ends time.Time
	Tags map[string]string
}

// PlacementGroup is one placement group. Strategy is "cluster", "partition" or "spread".
type PlacementGroup struct {
	ID, Name, Strategy string
	// Partitions is the number of partitions with the strategy "partition".
	Partitions int
	Tags       map[string]string
}
