package event

import (
	"errors"
	"strconv"
	"time"
)

// PodsUnschedulable sends a batch to the planner. The watcher sends it after it has stored the batch in the outbox,
// and again unchanged while the batch is in flight.
type PodsUnschedulable struct {
	// Outbox is the UID of the outbox ConfigMap. Outbox and Seq identify the batch.
	Outbox string `json:"outbox"`
	Seq    uint64 `json:"seq"`
	Batch  Ref    `json:"batch"`
}

func (PodsUnschedulable) EventType() Type { return PodsUnschedulableType }

// Key is the outbox, the sequence number and the digest of the batch.
func (b PodsUnschedulable) Key() []string {
	return []string{b.Outbox, strconv.FormatUint(b.Seq, 10), string(b.Batch.Digest)}
}
func (b PodsUnschedulable) Subject() string { return "batch/" + strconv.FormatUint(b.Seq, 10) }
func (b PodsUnschedulable) Reference() Ref  { return b.Batch }

// Validate requires a persisted sequence number and a batch.
func (b PodsUnschedulable) Validate() error {
	if b.Outbox == "" || b.Seq == 0 {
		return errors.New("outbox and seq are needed: they fence the plan")
	}
	return b.Batch.ValidateKind(BatchKind)
}

// PlanMade publishes the plan of a batch. Lifecycle accepts one plan per batch: the first one whose digest it writes
// to the outbox by compare-and-swap.
type PlanMade struct {
	Outbox string `json:"outbox"`
	Seq    uint64 `json:"seq"`
	Batch  Ref    `json:"batch"`
	Plan   Ref    `json:"plan"`
	// The counts are for people who read the log; the plan has the details.
	Claims     int `json:"claims"`
	Nominated  int `json:"nominated"`
	Unplaced   int `json:"unplaced"`
	PricePerHr Usd `json:"pricePerHour"`
}

// Usd is an amount of money in US dollars.
type Usd float64

func (PlanMade) EventType() Type { return PlanMadeType }

// Key is the outbox, the sequence number and the digest of the plan.
func (b PlanMade) Key() []string {
	return []string{b.Outbox, strconv.FormatUint(b.Seq, 10), string(b.Plan.Digest)}
}
func (b PlanMade) Subject() string { return "batch/" + strconv.FormatUint(b.Seq, 10) }
func (b PlanMade) Reference() Ref  { return b.Plan }

// Validate requires the outbox, the sequence number and both documents.
func (b PlanMade) Validate() error {
	if b.Outbox == "" || b.Seq == 0 {
		return errors.New("outbox and seq are needed: they fence the plan")
	}
	return errors.Join(b.Batch.ValidateKind(BatchKind), b.Plan.ValidateKind(PlanKind))
}

// ClusterSnapshot sends the state of the cluster to disruption. While nothing changes the document stays the same,
// and Taken is the time as of which it is still valid.
type ClusterSnapshot struct {
	Taken    time.Time `json:"taken"`
	Snapshot Ref       `json:"snapshot"`
	// Again means that the document was already sent when it was taken.
	Again bool `json:"again,omitempty"`
}

func (ClusterSnapshot) EventType() Type { return ClusterSnapshotType }

// Key is the digest of the snapshot, which includes when it was taken; a repeated snapshot also has Taken in its key.
func (b ClusterSnapshot) Key() []string {
	if !b.Again {
		return []string{string(b.Snapshot.Digest)}
	}
	return []string{string(b.Snapshot.Digest), b.Taken.UTC().Format(time.RFC3339Nano)}
}
func (b ClusterSnapshot) Subject() string { return "snapshot/" + b.Snapshot.Digest.ShortText() }
func (b ClusterSnapshot) Reference() Ref  { return b.Snapshot }

// Validate requires the time and the document.
func (b ClusterSnapshot) Validate() error {
	if b.Taken.IsZero() {
		return errors.New("taken is missing")
	}
	return b.Snapshot.ValidateKind(SnapshotKind)
}

// CatalogRefreshed announces a new current catalogue.
type CatalogRefreshed struct {
	Region    string    `json:"region"`
	AsOf      time.Time `json:"asOf"`
	Types     int       `json:"types"`
	Catalogue Ref       `json:"catalogue"`
	// Warnings name the parts of the catalogue that are outdated, and why.
	Warnings []string `json:"warnings,omitempty"`
}

func (CatalogRefreshed) EventType() Type { return CatalogRefreshedType }

// Key is the digest of the catalogue.
func (b CatalogRefreshed) Key() []string   { return []string{string(b.Catalogue.Digest)} }
func (b CatalogRefreshed) Subject() string { return "catalogue/" + b.Region }
func (b CatalogRefreshed) Reference() Ref  { return b.Catalogue }

// Validate requires the document.
func (b CatalogRefreshed) Validate() error { return b.Catalogue.ValidateKind(CatalogueKind) }

// Tick is the message that EventBridge Scheduler sends each minute. The schedule's template sets id and time; the
// expiry follows from the type.
type Tick struct {
	// Want is "catalogue", "inventory", "status" or "templates".
	Want string `json:"want"`
	// Due is the scheduled time. It makes each minute's tick a different message.
	Due time.Time `json:"due"`
}

func (Tick) EventType() Type { return TickType }

// Key is Want and Due.
func (b Tick) Key() []string   { return []string{b.Want, b.Due.UTC().Format(time.RFC3339Nano)} }
func (b Tick) Subject() string { return "tick/" + b.Want }

// Validate requires a known value of Want.
func (b Tick) Validate() error {
	switch b.Want {
	case WantCatalogue, WantInventory, WantStatus, WantTemplates:
		return nil
	default:
		return errors.New(`want is not "catalogue", "inventory", "status" or "templates"`)
	}
}

// The values of Tick.Want.
const (
	WantCatalogue = "catalogue"
	WantInventory = "inventory"
	WantStatus    = "status"
	// WantTemplates makes the launcher delete unused launch templates.
	WantTemplates = "templates"
)
