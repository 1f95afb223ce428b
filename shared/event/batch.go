package event

import (
	"errors"
	"strconv"
	"time"
)

// PodsUnschedulable hands a batch to the planner. The watcher sends it after
// the outbox says so, and sends it again unchanged while the batch is in flight.
type PodsUnschedulable struct {
	// Outbox is the UID of the outbox ConfigMap; with Seq it names the batch.
	Outbox string `json:"outbox"`
	Seq    uint64 `json:"seq"`
	Batch  Ref    `json:"batch"`
}

func (PodsUnschedulable) EventType() Type { return PodsUnschedulableType }

// Key is the outbox, the sequence and the digest of the batch.
func (b PodsUnschedulable) Key() []string {
	return []string{b.Outbox, strconv.FormatUint(b.Seq, 10), string(b.Batch.Digest)}
}
func (b PodsUnschedulable) Subject() string { return "batch/" + strconv.FormatUint(b.Seq, 10) }
func (b PodsUnschedulable) Reference() Ref  { return b.Batch }

// Validate demands a sequence that was persisted and a batch to read.
func (b PodsUnschedulable) Validate() error {
	if b.Outbox == "" || b.Seq == 0 {
		return errors.New("outbox and seq are needed: they fence the plan")
	}
	return b.Batch.ValidateKind(BatchKind)
}

// PlanMade publishes the plan of a batch. Lifecycle accepts one plan a batch:
// the first whose digest it swaps into the outbox.
type PlanMade struct {
	Outbox string `json:"outbox"`
	Seq    uint64 `json:"seq"`
	Batch  Ref    `json:"batch"`
	Plan   Ref    `json:"plan"`
	// The counts are for people who read the log: the plan itself says it all.
	Claims     int `json:"claims"`
	Nominated  int `json:"nominated"`
	Unplaced   int `json:"unplaced"`
	PricePerHr Usd `json:"pricePerHour"`
}

// Usd is an amount of money in US dollars.
type Usd float64

func (PlanMade) EventType() Type { return PlanMadeType }

// Key is the outbox, the sequence and the digest of the plan.
func (b PlanMade) Key() []string {
	return []string{b.Outbox, strconv.FormatUint(b.Seq, 10), string(b.Plan.Digest)}
}
func (b PlanMade) Subject() string { return "batch/" + strconv.FormatUint(b.Seq, 10) }
func (b PlanMade) Reference() Ref  { return b.Plan }

// Validate demands the fence's fields and both documents.
func (b PlanMade) Validate() error {
	if b.Outbox == "" || b.Seq == 0 {
		return errors.New("outbox and seq are needed: they fence the plan")
	}
	return errors.Join(b.Batch.ValidateKind(BatchKind), b.Plan.ValidateKind(PlanKind))
}

// ClusterSnapshot hands the state of the cluster to disruption. While nothing
// changes the document is the same one again, and Taken says as of when it holds.
type ClusterSnapshot struct {
	Taken    time.Time `json:"taken"`
	Snapshot Ref       `json:"snapshot"`
	// Again says that the document was sent before, when it was taken.
	Again bool `json:"again,omitempty"`
}

func (ClusterSnapshot) EventType() Type { return ClusterSnapshotType }

// Key is the digest of the snapshot, which includes when it was taken; one that is
// sent again is told apart by when it still holds.
func (b ClusterSnapshot) Key() []string {
	if !b.Again {
		return []string{string(b.Snapshot.Digest)}
	}
	return []string{string(b.Snapshot.Digest), b.Taken.UTC().Format(time.RFC3339Nano)}
}
func (b ClusterSnapshot) Subject() string { return "snapshot/" + b.Snapshot.Digest.ShortText() }
func (b ClusterSnapshot) Reference() Ref  { return b.Snapshot }

// Validate demands the document.
func (b ClusterSnapshot) Validate() error {
	if b.Taken.IsZero() {
		return errors.New("taken is missing")
	}
	return b.Snapshot.ValidateKind(SnapshotKind)
}

// CatalogRefreshed says that a new catalogue is current.
type CatalogRefreshed struct {
	Region    string    `json:"region"`
	AsOf      time.Time `json:"asOf"`
	Types     int       `json:"types"`
	Catalogue Ref       `json:"catalogue"`
	// Warnings say which parts of it are not as fresh as they should be, and why.
	Warnings []string `json:"warnings,omitempty"`
}

func (CatalogRefreshed) EventType() Type { return CatalogRefreshedType }

// Key is the digest of the catalogue.
func (b CatalogRefreshed) Key() []string   { return []string{string(b.Catalogue.Digest)} }
func (b CatalogRefreshed) Subject() string { return "catalogue/" + b.Region }
func (b CatalogRefreshed) Reference() Ref  { return b.Catalogue }

// Validate demands the document.
func (b CatalogRefreshed) Validate() error { return b.Catalogue.ValidateKind(CatalogueKind) }

// Tick is what the scheduler sends each minute. Its template fills in id and
// time; the expiry follows from the type.
type Tick struct {
	// Want is "catalogue", "inventory", "status" or "templates".
	Want string `json:"want"`
	// Due is the scheduled time, so that two minutes are two ticks.
	Due time.Time `json:"due"`
}

func (Tick) EventType() Type { return TickType }

// Key is what is wanted and when it was due.
func (b Tick) Key() []string   { return []string{b.Want, b.Due.UTC().Format(time.RFC3339Nano)} }
func (b Tick) Subject() string { return "tick/" + b.Want }

// Validate demands a known wish.
func (b Tick) Validate() error {
	switch b.Want {
	case WantCatalogue, WantInventory, WantStatus, WantTemplates:
		return nil
	default:
		return errors.New(`want is not "catalogue", "inventory", "status" or "templates"`)
	}
}

// What a tick can want.
const (
	WantCatalogue = "catalogue"
	WantInventory = "inventory"
	WantStatus    = "status"
	// WantTemplates asks the launcher to delete launch templates out of use.
	WantTemplates = "templates"
)
