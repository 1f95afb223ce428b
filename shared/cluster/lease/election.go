package lease

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
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

// Election is a candidate's stand. It is safe for concurrent use.
type Election struct {
	// own is nil for a candidate that is alone.
	own, karpenter *Lease
	// turn has room for the one caller that reads and writes the leases.
	turn chan struct{}

	mu sync.Mutex
	// leading says that the leases are held, as far as is known, and acts end what is done
	// meanwhile.
	leading bool
	acts    map[*context.CancelCauseFunc]bool
}

// ErrLost is why the context of an act ends when the leases are lost.
var ErrLost = errors.New("the lease was lost")

// Elect makes the election of a candidate.
func Elect(c Candidate) *Election {
	c.Karpenter.Name = cmp.Or(c.Karpenter.Name, KarpenterName)
	e := &Election{karpenter: &Lease{Key: c.Karpenter, Holder: KarpenterHolder}, turn: make(chan struct{}, 1), acts: map[*context.CancelCauseFunc]bool{}}
	if !c.Alone {
		e.own = &Lease{Key: c.Own, Holder: c.Holder}
	}
	return e
}

// Leads takes or renews what is needed, and reports whether the candidate may act.
// now must come from a monotonic clock.
func (e *Election) Leads(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	if err := e.enter(ctx); err != nil {
		return false, err
	}
	defer e.leave()
	return e.hold(ctx, client, now)
}

// Renew renews the leases if they are held and a renewal is due; it takes no lease that is
// not held. The host calls it every RetryPeriod, because a lease would run out in an act
// that takes longer than Duration.
func (e *Election) Renew(ctx context.Context, client cluster.Client, now time.Time) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if !e.held() {
		return nil
	}
	_, err := e.hold(ctx, client, now)
	return err
}

// Act runs what only a leader may do. The context of act ends once the leases are lost;
// then Act returns fault.Retry.
func (e *Election) Act(ctx context.Context, act func(ctx context.Context) error) error {
	acting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !e.begin(&cancel) {
		return fault.E("acting as the leader", fault.Retry, ErrLost)
	}
	defer e.finish(&cancel)
	err := act(acting)
	if errors.Is(context.Cause(acting), ErrLost) {
		return fault.F("acting as the leader", fault.Retry, "%w: %w", ErrLost, err)
	}
	return err
}

// begin notes how to end an act, and returns false if the leases are not held.
func (e *Election) begin(act *context.CancelCauseFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leading {
		e.acts[act] = true
	}
	return e.leading
}

func (e *Election) finish(act *context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.acts, act)
}

// hold takes or renews the leases, and ends all acts if they are lost. The caller has the
// turn, here and below.
func (e *Election) hold(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	leads, err := All(ctx, client, now, e.leases()...)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leading = e.held(); !e.leading {
		for act := range e.acts {
			(*act)(ErrLost)
		}
	}
	return leads, err
}

func (e *Election) leases() []*Lease {
	if e.own == nil {
		return []*Lease{e.karpenter}
	}
	return []*Lease{e.own, e.karpenter}
}

func (e *Election) held() bool {
	return !slices.ContainsFunc(e.leases(), func(l *Lease) bool { return !l.held })
}

// enter waits for the turn, or for the context to end.
func (e *Election) enter(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Election) leave() { <-e.turn }

// Release lets another replica lead at once, when this one has stopped. Karpenter's
// Lease is left to run out: Joist's other writer may act under it still.
func (e *Election) Release(ctx context.Context, client cluster.Client) error {
	if e.own == nil {
		return nil
	}
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	return e.own.Release(ctx, client)
}
