package cloud

import (
	"context"
	"time"
)

// Placements reads what instances can be placed in: capacity that is reserved, and
// placement groups. Both are few in an account, so they are read whole, and who
// wants some of them chooses by himself.
type Placements interface {
	// DescribeReservations reads the capacity reservations that are active, those
	// that other accounts share with this one included.
	DescribeReservations(ctx context.Context) ([]Reservation, error)
	// DescribePlacementGroups reads the placement groups that are available.
	DescribePlacementGroups(ctx context.Context) ([]PlacementGroup, error)
}

// Kinds of a capacity reservation, and which launches it takes.
const (
	DefaultReservation = "default"
	CapacityBlock      = "capacity-block"
	MatchOpen          = "open"
	MatchTargeted      = "targeted"
)

// Reservation is one capacity reservation (On-Demand Capacity Reservation or
// Capacity Block).
type Reservation struct {
	ID, InstanceType, Zone string
	// Owner is the number of the account that pays.
	Owner string
	// Match is MatchOpen or MatchTargeted.
	Match string
	// Kind is DefaultReservation or CapacityBlock.
	Kind string
	// Interruptible capacity is lent, and its owner may take it back.
	Interruptible bool
	// Available is how many more instances it takes.
	Available int
	// Ends is zero for one without an end.
	Ends time.Time
	Tags map[string]string
}

// PlacementGroup is one placement group. Strategy is "cluster", "partition" or
// "spread".
type PlacementGroup struct {
	ID, Name, Strategy string
	// Partitions is how many a group of that strategy has.
	Partitions int
	Tags       map[string]string
}
