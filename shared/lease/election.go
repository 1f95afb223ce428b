package lease

import (
	"cmp"
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Candidate says which Leases one of Joist's writers holds while it acts.
type Candidate struct {
	// Own is the Lease by which one of its replicas acts at a time. Alone says that
	// there is no other replica, so that it is not needed (DISABLE_LEADER_ELECTION).
	Own   cluster.Key
	Alone bool
	// Holder tells replicas apart.
	Holder string
	// Karpenter is Karpenter's Lease (LEADER_ELECTION_NAME and
	// LEADER_ELECTION_NAMESPACE); without a name it has the one that Karpenter gives
	// it. It is held in any case: who is alone of its kind may still stand beside
	// Karpenter.
	Karpenter cluster.Key
}

// Election is a candidate's stand (B062). It is not safe for concurrent use.
type Election struct {
	// own is nil for a candidate that is alone.
	own, karpenter *Lease
}

// Elect makes the election of a candidate.
func Elect(c Candidate) *Election {
	c.Karpenter.Name = cmp.Or(c.Karpenter.Name, KarpenterName)
	e := &Election{karpenter: &Lease{Key: c.Karpenter, Holder: KarpenterHolder}}
	if !c.Alone {
		e.own = &Lease{Key: c.Own, Holder: c.Holder}
	}
	return e
}

// Leads takes or renews what is needed, and reports whether the candidate may act.
// now must come from a monotonic clock.
func (e *Election) Leads(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	if e.own == nil {
		return All(ctx, client, now, e.karpenter)
	}
	return All(ctx, client, now, e.own, e.karpenter)
}

// Release lets another replica lead at once, when this one has stopped. Karpenter's
// Lease is left to run out: Joist's other writer may act under it still.
func (e *Election) Release(ctx context.Context, client cluster.Client) error {
	if e.own == nil {
		return nil
	}
	return e.own.Release(ctx, client)
}
