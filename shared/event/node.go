package event

import (
	"errors"
	"time"
)

// NoticeKind is the kind of an AWS notice. A lifecycle that does not know a kind drains and replaces the node, as for
// an interruption. So a new kind after which the node stays is a new message type instead.
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

// instancePrefix precedes the instance id in a subject.
const instancePrefix = "instance/"

// NodeNoticed announces that an instance of the cluster will be interrupted or changed state.
type NodeNoticed struct {
	Kind       NoticeKind `json:"kind"`
	InstanceID string     `json:"instanceId"`
	// Deadline is absolute, because a relative one would grow with each hop. It is zero if AWS gives none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Noticed is the time of the AWS notice.
	Noticed  time.Time `json:"noticed"`
	Detail   string    `json:"detail,omitempty"`
	Offering Offering  `json:"offering,omitzero"`
}

func (NodeNoticed) EventType() Type { return NodeNoticedType }

// Key is the kind, the instance, the detail and the time of the notice.
func (b NodeNoticed) Key() []string {
	return []string{string(b.Kind), b.InstanceID, b.Detail, b.Noticed.UTC().Format(time.RFC3339Nano)}
}
func (b NodeNoticed) Subject() string { return instancePrefix + b.InstanceID }

// Validate requires a kind, an instance and a time.
func (b NodeNoticed) Validate() error {
	if b.Kind == "" || b.InstanceID == "" || b.Noticed.IsZero() {
		return errors.New("kind, instanceId and noticed are needed")
	}
	return nil
}

// InstanceGone publishes that EC2 shows the instance as terminated. Lifecycle removes the claim's finalizer only
// after this or an inventory.
type InstanceGone struct {
	InstanceID string    `json:"instanceId"`
	Shown      time.Time `json:"shown"`
}

func (InstanceGone) EventType() Type { return InstanceGoneType }

// Key is the instance, which terminates only once.
func (b InstanceGone) Key() []string   { return []string{b.InstanceID} }
func (b InstanceGone) Subject() string { return instancePrefix + b.InstanceID }

// Validate requires an instance.
func (b InstanceGone) Validate() error {
	if b.InstanceID == "" {
		return errors.New("instanceId is missing")
	}
	return nil
}

// Phase is the phase of a disruption proposal.
type Phase string

// The phases of a proposal.
const (
	// Proposed: written on the claims, waiting for the next snapshot.
	Proposed Phase = "proposed"
	// Confirmed: still valid at least 15 s later; lifecycle executes it.
	Confirmed Phase = "confirmed"
	// Dropped: no longer valid; lifecycle removes it from the claims.
	Dropped Phase = "dropped"
)

// DisruptionProposed proposes claims to remove, and why.
type DisruptionProposed struct {
	Proposal string   `json:"proposal"`
	Phase    Phase    `json:"phase"`
	Reason   string   `json:"reason"`
	Claims   []string `json:"claims"`
	// Method is the disruption method that found it.
	Method string `json:"method,omitempty"`
	// TerminateFirst is why the nodes are removed before their replacements are launched: no-reserved-capacity or
	// static-at-limit. It is empty for other proposals.
	TerminateFirst string `json:"terminateFirst,omitempty"`
	// Reboot proposes to reboot the node of the claim instead of removing it.
	Reboot bool `json:"reboot,omitempty"`
	// SavedPerHr is the saving in US dollars per hour.
	SavedPerHr Usd `json:"savedPerHour"`
	// Moved is how many pods have to move.
	Moved int `json:"podsMoved,omitempty"`
	// Plan is the document with the replacements, if a confirmed proposal needs any.
	Plan Ref `json:"plan,omitzero"`
	// Snapshot is the document on which the decision is based.
	Snapshot Ref       `json:"snapshot"`
	Decided  time.Time `json:"decided"`
	// ProposedAt is when lifecycle recorded the proposal that is confirmed: the newest time on its claims in the snapshot. A
	// proposal that was rolled back may be recorded again under its ID. Versions before November 2026 send no time.
	ProposedAt time.Time `json:"proposed,omitzero"`
}

func (DisruptionProposed) EventType() Type { return DisruptionProposedType }

// Key is the proposal, its phase and the snapshot.
func (b DisruptionProposed) Key() []string {
	return []string{b.Proposal, string(b.Phase), string(b.Snapshot.Digest)}
}
func (b DisruptionProposed) Subject() string { return "proposal/" + b.Proposal }
func (b DisruptionProposed) Reference() Ref  { return b.Snapshot }

// Validate requires a proposal with claims and a known phase.
func (b DisruptionProposed) Validate() error {
	switch {
	case b.Proposal == "" || len(b.Claims) == 0:
		return errors.New("proposal and claims are needed")
	case b.Phase != Proposed && b.Phase != Confirmed && b.Phase != Dropped:
		return errors.New("phase is not proposed, confirmed or dropped")
	case b.Moved < 0:
		return errors.New("podsMoved is below zero")
	case b.Reboot && (len(b.Claims) > 1 || b.TerminateFirst != "" || !b.Plan.IsZero()):
		return errors.New("a reboot has one claim and no replacement")
	}
	if !b.Plan.IsZero() {
		return errors.Join(b.Snapshot.ValidateKind(SnapshotKind), b.Plan.ValidateKind(PlanKind))
	}
	return b.Snapshot.ValidateKind(SnapshotKind)
}

// NodesKept lists the nodes that disruption does not remove, and why. Lifecycle only turns it into Kubernetes Events.
type NodesKept struct {
	// Kept has one entry for each reason.
	Kept []Kept `json:"kept"`
	// Snapshot is the document on which the decision is based.
	Snapshot Ref       `json:"snapshot"`
	Decided  time.Time `json:"decided"`
}

// Kept is one reason, and the NodeClaims of the nodes that it keeps.
type Kept struct {
	// Rule is one of disruption's rules. Consumers ignore unknown rules.
	Rule string `json:"rule"`
	// Subject is the object of the rule: a pod or a PodDisruptionBudget as "namespace/name", or a number.
	Subject string `json:"subject,omitempty"`
	// Detail is the reason in words.
	Detail string   `json:"detail,omitempty"`
	Claims []string `json:"claims"`
}

func (NodesKept) EventType() Type { return NodesKeptType }

// Key is the snapshot and the time of the decision.
func (b NodesKept) Key() []string {
	return []string{string(b.Snapshot.Digest), b.Decided.UTC().Format(time.RFC3339Nano)}
}
func (b NodesKept) Subject() string { return "snapshot/" + string(b.Snapshot.Digest) }
func (b NodesKept) Reference() Ref  { return b.Snapshot }

// Validate requires at least one reason, and a rule and claims for each.
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
