package event

import (
	"errors"
	"time"
)

// NoticeKind says what AWS is about to do, or did.
type NoticeKind string

// The kinds of notice.
const (
	SpotInterruption        NoticeKind = "spot-interruption"
	RebalanceRecommendation NoticeKind = "rebalance-recommendation"
	ScheduledChange         NoticeKind = "scheduled-change"
	StateChange             NoticeKind = "state-change"
	ReservationInterruption NoticeKind = "capacity-reservation-interruption"
	StatusImpaired          NoticeKind = "instance-status"
)

// instancePrefix begins the subject of what is about an instance.
const instancePrefix = "instance/"

// NodeNoticed says that an instance of the cluster is about to go.
type NodeNoticed struct {
	Kind       NoticeKind `json:"kind"`
	InstanceID string     `json:"instanceId"`
	// Deadline is absolute; zero when AWS names none. A relative deadline would
	// grow with every hop.
	Deadline time.Time `json:"deadline,omitzero"`
	// Noticed is when AWS said so.
	Noticed  time.Time `json:"noticed"`
	Detail   string    `json:"detail,omitempty"`
	Offering Offering  `json:"offering,omitzero"`
}

func (NodeNoticed) EventType() Type { return NodeNoticedType }

// Key is the kind, the instance and when AWS said so.
func (b NodeNoticed) Key() []string {
	return []string{string(b.Kind), b.InstanceID, b.Detail, b.Noticed.UTC().Format(time.RFC3339Nano)}
}
func (b NodeNoticed) Subject() string { return instancePrefix + b.InstanceID }

// Validate demands a kind and an instance.
func (b NodeNoticed) Validate() error {
	if b.Kind == "" || b.InstanceID == "" || b.Noticed.IsZero() {
		return errors.New("kind, instanceId and noticed are needed")
	}
	return nil
}

// InstanceGone says that EC2 shows the instance terminated. Only this, or an
// inventory, lets the claim's finalizer go.
type InstanceGone struct {
	InstanceID string    `json:"instanceId"`
	Shown      time.Time `json:"shown"`
}

func (InstanceGone) EventType() Type { return InstanceGoneType }

// Key is the instance: it goes once.
func (b InstanceGone) Key() []string   { return []string{b.InstanceID} }
func (b InstanceGone) Subject() string { return instancePrefix + b.InstanceID }

// Validate demands an instance.
func (b InstanceGone) Validate() error {
	if b.InstanceID == "" {
		return errors.New("instanceId is missing")
	}
	return nil
}

// Phase is how far a disruption proposal has come.
type Phase string

// The phases of a proposal.
const (
	// Proposed is written on the claims and waits for the next snapshot.
	Proposed Phase = "proposed"
	// Confirmed was found right again at least 15 s later, and acts.
	Confirmed Phase = "confirmed"
	// Dropped was found wrong again, and is taken off the claims.
	Dropped Phase = "dropped"
)

// DisruptionProposed says which claims could go, and why.
type DisruptionProposed struct {
	Proposal string   `json:"proposal"`
	Phase    Phase    `json:"phase"`
	Reason   string   `json:"reason"`
	Claims   []string `json:"claims"`
	// Method is how it was found.
	Method string `json:"method,omitempty"`
	// SavedPerHr is what the removal saves, in US dollars an hour.
	SavedPerHr Usd `json:"savedPerHour"`
	// Moved is how many pods have to move.
	Moved int `json:"podsMoved,omitempty"`
	// Plan is the document of what replaces the nodes, in a confirmation of a proposal
	// that needs something to.
	Plan Ref `json:"plan,omitzero"`
	// Snapshot is the document from which it was decided.
	Snapshot Ref       `json:"snapshot"`
	Decided  time.Time `json:"decided"`
}

func (DisruptionProposed) EventType() Type { return DisruptionProposedType }

// Key is the proposal and its phase.
func (b DisruptionProposed) Key() []string {
	return []string{b.Proposal, string(b.Phase), string(b.Snapshot.Digest)}
}
func (b DisruptionProposed) Subject() string { return "proposal/" + b.Proposal }
func (b DisruptionProposed) Reference() Ref  { return b.Snapshot }

// Validate demands a proposal that names claims.
func (b DisruptionProposed) Validate() error {
	switch {
	case b.Proposal == "" || len(b.Claims) == 0:
		return errors.New("proposal and claims are needed")
	case b.Phase != Proposed && b.Phase != Confirmed && b.Phase != Dropped:
		return errors.New("phase is not proposed, confirmed or dropped")
	case b.Moved < 0:
		return errors.New("podsMoved is below zero")
	}
	if !b.Plan.IsZero() {
		return errors.Join(b.Snapshot.ValidateKind(SnapshotKind), b.Plan.ValidateKind(PlanKind))
	}
	return b.Snapshot.ValidateKind(SnapshotKind)
}

// NodesKept lists the nodes that disruption does not remove, and why. Lifecycle turns it
// into Kubernetes Events and into nothing else.
type NodesKept struct {
	// Kept has one entry for each reason.
	Kept []Kept `json:"kept"`
	// Snapshot is the document from which it was decided.
	Snapshot Ref       `json:"snapshot"`
	Decided  time.Time `json:"decided"`
}

// Kept is one reason, and the NodeClaims of the nodes that it keeps.
type Kept struct {
	// Rule is one of disruption's rules. A consumer ignores those that it does not know.
	Rule string `json:"rule"`
	// Subject is the one thing that the rule names: a pod or a PodDisruptionBudget as
	// "namespace/name", or a number.
	Subject string `json:"subject,omitempty"`
	// Detail is the reason in words.
	Detail string   `json:"detail,omitempty"`
	Claims []string `json:"claims"`
}

func (NodesKept) EventType() Type { return NodesKeptType }

// Key is the snapshot and the time as of which it holds.
func (b NodesKept) Key() []string {
	return []string{string(b.Snapshot.Digest), b.Decided.UTC().Format(time.RFC3339Nano)}
}
func (b NodesKept) Subject() string { return "snapshot/" + string(b.Snapshot.Digest) }
func (b NodesKept) Reference() Ref  { return b.Snapshot }

// Validate demands reasons with their rules and claims.
func (b NodesKept) Validate() error {
	if len(b.Kept) == 0 {
		return errors.New("kept is missing")
	}
	for _, k := range b.Kept {
		if k.Rule == "" || len(k.Claims) == 0 {
			return errors.New("each reason needs a rule and claims")
		}
	}
	return b.Snapshot.ValidateKind(SnapshotKind)
}
