package disruption

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// RuleNotExpiring keeps a node that does not expire soon, or whose NodePool does not replace expiring nodes.
const RuleNotExpiring = "not-expiring"

const (
	// expiryFraction is the default window for replacing expiring nodes, as a fraction (1/10) of a
	// node's life. maxExpiryWindow limits it.
	expiryFraction  = 10
	maxExpiryWindow = 24 * time.Hour
)

// findExpiring replaces nodes before expireAfter deletes them, in NodePools that set it, one by
// one, the nearest end first. Budgets have no reason for expiration; it uses Drifted, because such
// a node is outdated too.
func (p *evaluation) findExpiring() { p.tryEach(Expiration, sortByExpiry) }

// checkExpiry returns the objection to replacing a node because of its age. Protected pods block
// the replacement even if terminationGracePeriod bounds the drain: only the node's expiry overrides
// them.
func (p *evaluation) checkExpiry(c *candidate.Candidate) candidate.Objection {
	from := replacementTime(c.Node, p.expiryPolicy(c.Pool))
	if from.IsZero() || from.After(p.snapshot.TakenAt) {
		p.expectChange(from)
		return candidate.Objection{Rule: RuleNotExpiring, Detail: "it does not expire soon"}
	}
	no := cmp.Or(c.Objection, c.PodObjection)
	p.expectChangeOf(no)
	return no
}

// expiryPolicy returns the expiration policy of a NodePool, cached. If its annotation cannot be
// parsed, the policy is empty; poolPolicies reports the error.
func (p *evaluation) expiryPolicy(pool *karpenter.NodePool) policy.ExpirationPolicy {
	if pool == nil {
		return policy.ExpirationPolicy{}
	}
	expiring, known := p.expiry[pool.Name]
	if !known {
		expiring, _ = policy.ReadExpiration(pool.Annotations)
		p.expiry[pool.Name] = expiring
	}
	return expiring
}

// replacementTime returns when a node may be replaced because it expires; zero means never. Each
// node has its own time in the first half of the window, so that nodes of the same age are not due
// at the same time, and the second half is left for nodes that wait for a budget. The time derives
// from the claim's UID, so every evaluation computes the same time.
func replacementTime(n *planning.Node, e policy.ExpirationPolicy) time.Time {
	if !e.Graceful || n.ExpiresAt.IsZero() {
		return time.Time{}
	}
	life := max(n.ExpiresAt.Sub(n.Created), 0)
	window := min(cmp.Or(e.Window, min(life/expiryFraction, maxExpiryWindow)), life)
	return n.ExpiresAt.Add(-window).Add(time.Duration(spreadFraction(n.ClaimUID) * float64(window/2)))
}

// spreadFraction maps a text to a number from 0 to 1, spread evenly.
func spreadFraction(text string) float64 {
	sum := sha256.Sum256([]byte("expiration/" + text))
	return float64(binary.BigEndian.Uint64(sum[:8])) / math.MaxUint64
}

func sortByExpiry(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(a.Node.ExpiresAt.Compare(b.Node.ExpiresAt), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

// expectChange records a time at which the findings may change although the cluster does not.
func (p *evaluation) expectChange(at time.Time) { p.findings.expectChange(at) }

func (f *Findings) expectChange(at time.Time) {
	if !at.IsZero() && (f.NextChange.IsZero() || at.Before(f.NextChange)) {
		f.NextChange = at
	}
}

// expectChangeOf records that the objection may end at any time, even if a later method has another
// objection to the node.
func (p *evaluation) expectChangeOf(no candidate.Objection) {
	if mayChangeWithTime(Kept{Rule: no.Rule}) {
		p.expectChange(p.snapshot.TakenAt)
	}
}
