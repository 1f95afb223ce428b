package planning

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	poolpolicy "github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// ProposalAnnotation is the annotation in which lifecycle stores a disruption proposal on a NodeClaim,
// as JSON.
const ProposalAnnotation = "joist.sh/proposal"

// ReservationAnnotation marks a NodeClaim whose proposal is about to be confirmed, with the replica and the
// time. From then on it counts against budgets.
const ReservationAnnotation = "joist.sh/reservation"

// TerminateFirstReason is why a node is removed before its replacement is launched.
type TerminateFirstReason string

const (
	// TerminateFirstNoReservedCapacity means that only the capacity that the node uses in a reservation
	// can hold its replacement.
	TerminateFirstNoReservedCapacity TerminateFirstReason = "no-reserved-capacity"
	// TerminateFirstStaticAtLimit means that limits.nodes of the static NodePool allows no further node.
	TerminateFirstStaticAtLimit TerminateFirstReason = "static-at-limit"
)

// ConfirmAfter is the age from which on a proposal can be confirmed.
const ConfirmAfter = 15 * time.Second

// AdmissionTime is how long after its confirmation a proposal's replacements may still be admitted.
// Its message expires by then.
const AdmissionTime = 2 * time.Minute

// MayBeAdmitted reports whether the replacements of a confirmed proposal may still be admitted. A
// replacement that is missing later was created and has ended since, although the old node may drain
// for hours.
func (p *Proposal) MayBeAdmitted(now time.Time) bool { return now.Sub(p.ConfirmedAt) < AdmissionTime }

// MethodExpiration is the method of proposals that replace nodes before they expire. Budgets
// count them as drift; unlike drift, they respect all protections of pods.
const MethodExpiration = "Expiration"

// IdleSince returns the time of the last pod event, or of the initialization if there was none.
func (n *Node) IdleSince() time.Time {
	if n.LastPodEvent.IsZero() {
		return n.InitializedAt
	}
	return n.LastPodEvent
}

// IsBeingRemoved reports whether the node is marked for deletion or has a confirmed proposal.
func (n *Node) IsBeingRemoved() bool { return n.MarkedForDeletion || n.Proposal.isConfirmed() }

// IsClaimBeingRemoved is IsBeingRemoved for a NodeClaim.
func IsClaimBeingRemoved(claim *karpenter.NodeClaim) bool {
	return claim.DeletionTimestamp != nil || claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) || ReadProposal(claim).isConfirmed()
}

func (p *Proposal) isConfirmed() bool { return p != nil && !p.ConfirmedAt.IsZero() }

// ReadProposal returns the proposal on a NodeClaim; nil if it has none that is valid.
func ReadProposal(claim *karpenter.NodeClaim) *Proposal {
	var p Proposal
	if json.Unmarshal([]byte(claim.Annotations[ProposalAnnotation]), &p) != nil || p.ID == "" {
		return nil
	}
	return &p
}

// RebootsAnnotation has the times at which the last reboots of a NodeClaim's node began, separated by commas.
const RebootsAnnotation = "joist.sh/reboots"

// keptReboots is how many reboots are recorded: as many as node repair reads.
const keptReboots = 2

// ReadReboots returns the recorded reboots of the claim's node, and skips times that cannot be parsed.
func ReadReboots(claim *karpenter.NodeClaim) []time.Time {
	var out []time.Time
	for text := range strings.SplitSeq(claim.Annotations[RebootsAnnotation], ",") {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			out = append(out, at.UTC())
		}
	}
	return out
}

// FormatReboots returns the annotation's text after another reboot.
func FormatReboots(before []time.Time, at time.Time) string {
	all := append(slices.Clone(before), at)
	var texts []string
	for _, at := range all[max(0, len(all)-keptReboots):] {
		texts = append(texts, at.UTC().Format(time.RFC3339))
	}
	return strings.Join(texts, ",")
}

// CountsNodesBeingRemoved reports whether nodes of the pool count against its limits until they are
// gone. Against the limits of a dynamic pool Karpenter counts only nodes that stay
// (pkg/controllers/disruption/helpers.go, SimulateScheduling), and against limits.nodes of a static
// pool all nodes (pkg/controllers/state/statenodepool.go, ReserveNodeCount).
func CountsNodesBeingRemoved(np *karpenter.NodePool) bool {
	return np.IsStatic() || poolpolicy.StrictLimits(np.Annotations)
}
