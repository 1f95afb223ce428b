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

// RuleNotExpiring is the rule of a node whose life does not end soon, or whose pool
// lets it end by force.
const RuleNotExpiring = "not-expiring"

const (
	// expiryFraction is which part of a node's life it takes to replace nodes in time, where
	// nobody has said how long, and expiryWindowMax how long that is at most.
	expiryFraction  = 10
	maxExpiryWindow = 24 * time.Hour
)

// findExpiring replaces nodes before expireAfter ends them by force, where their pool
// asks for that: one by one, the nearest end first. Budgets have no reason of that
// name; to them it is Drifted, as a node that is too old is not what is asked for
// either.
func (p *evaluation) findExpiring() { p.tryEach(Expiration, sortByExpiry) }

// checkExpiry is what keeps a node from being replaced because of its age. Whatever keeps
// a pod from being moved is heeded, though the drain has an end: the force that passes
// over it comes with the end of the node's life.
func (p *evaluation) checkExpiry(c *candidate.Candidate) candidate.Objection {
	from := replacementTime(c.Node, p.expiryPolicy(c.Pool))
	if from.IsZero() || from.After(p.snapshot.Taken) {
		p.expectChange(from)
		return candidate.Objection{Rule: RuleNotExpiring, Detail: "its life does not end soon"}
	}
	no := cmp.Or(c.Objection, c.PodObjection)
	p.expectChangeOf(no)
	return no
}

// expiryPolicy is what a pool asks for. One that cannot be read asks for nothing: its nodes
// end as they would without it, and the pass has told the problem.
func (p *evaluation) expiryPolicy(pool *karpenter.NodePool) policy.Expiring {
	if pool == nil {
		return policy.Expiring{}
	}
	asks, known := p.expiry[pool.Name]
	if !known {
		asks, _ = policy.ReadExpiration(pool.Annotations)
		p.expiry[pool.Name] = asks
	}
	return asks
}

// replacementTime is from when on a node is replaced because it expires; zero for never.
// Each node has a moment of its own in the first half of the window, so that nodes of
// one age do not all come due at once, and the second half is left for those that
// had to wait for a budget. The moment derives from the claim alone: whoever looks
// finds the same.
func replacementTime(n *planning.Node, e policy.Expiring) time.Time {
	if !e.Graceful || n.Expires.IsZero() {
		return time.Time{}
	}
	life := max(n.Expires.Sub(n.Created), 0)
	window := min(cmp.Or(e.Window, min(life/expiryFraction, maxExpiryWindow)), life)
	return n.Expires.Add(-window).Add(time.Duration(spreadFraction(n.ClaimUID) * float64(window/2)))
}

// spreadFraction is a number from 0 to 1 that is evenly spread over texts.
func spreadFraction(text string) float64 {
	sum := sha256.Sum256([]byte("expiration/" + text))
	return float64(binary.BigEndian.Uint64(sum[:8])) / math.MaxUint64
}

func sortByExpiry(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(a.Node.Expires.Compare(b.Node.Expires), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

// expectChange says that time alone may change the findings then.
func (p *evaluation) expectChange(at time.Time) { p.findings.expectChange(at) }

func (f *Findings) expectChange(at time.Time) {
	if !at.IsZero() && (f.NextChange.IsZero() || at.Before(f.NextChange)) {
		f.NextChange = at
	}
}

// expectChangeOf keeps the pass from rest because of what may pass at any time, though a
// later method finds something else to say of the node.
func (p *evaluation) expectChangeOf(no candidate.Objection) {
	if mayChangeWithTime(Kept{Rule: no.Rule}) {
		p.expectChange(p.snapshot.Taken)
	}
}
