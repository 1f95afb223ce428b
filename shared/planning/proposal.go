package planning

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	poolpolicy "github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// ProposalAnnotation is where lifecycle writes a disruption proposal on a
// NodeClaim, as JSON.
const ProposalAnnotation = "joist.sh/proposal"

// ConfirmAfter is how old a proposal must be before a confirmation acts.
const ConfirmAfter = 15 * time.Second

// MethodExpiration is the method of proposals that replace nodes before they expire. Budgets
// count them as drift; unlike drift, they respect all protections of pods.
const MethodExpiration = "Expiration"

// IdleSince is since when no pod came or went: since the node was initialized, if none ever
// did.
func (n *Node) IdleSince() time.Time {
	if n.LastPodEvent.IsZero() {
		return n.InitializedAt
	}
	return n.LastPodEvent
}

// IsBeingRemoved reports whether the node is being removed or replaced: it goes, or a proposal
// for it has begun to act.
func (n *Node) IsBeingRemoved() bool { return n.MarkedForDeletion || n.Proposal.isConfirmed() }

// IsClaimBeingRemoved reports the same of a claim.
func IsClaimBeingRemoved(claim *karpenter.NodeClaim) bool {
	return claim.DeletionTimestamp != nil || claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) || ReadProposal(claim).isConfirmed()
}

func (p *Proposal) isConfirmed() bool { return p != nil && !p.ConfirmedAt.IsZero() }

// ReadProposal reads the proposal on a claim, or nil.
func ReadProposal(claim *karpenter.NodeClaim) *Proposal {
	var p Proposal
	if json.Unmarshal([]byte(claim.Annotations[ProposalAnnotation]), &p) != nil || p.ID == "" {
		return nil
	}
	return &p
}

// CountsNodesBeingRemoved reports whether nodes of the pool count against its limits until they
// are gone. Karpenter counts only nodes that stay against the limits of a dynamic pool
// (pkg/controllers/disruption/helpers.go, SimulateScheduling), and all nodes against
// limits.nodes of a static pool (pkg/controllers/state/statenodepool.go, ReserveNodeCount).
func CountsNodesBeingRemoved(np *karpenter.NodePool) bool {
	return np.IsStatic() || poolpolicy.StrictLimits(np.Annotations)
}
