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
	// Own is the Lease that one of the service's replicas holds. Alone is true if there
	// is only one replica, which needs no such Lease (DISABLE_LEADER_ELECTION).
	Own           cluster.Key
	SingleReplica bool
	// Holder is the name of this replica.
	Holder string
	// Karpenter is Karpenter's Lease (LEADER_ELECTION_NAME and
	// LEADER_ELECTION_NAMESPACE); the empty name is Karpenter's default. It is always
	// acquired, also by a single replica, because Karpenter may run as well.
	Karpenter cluster.Key
}

// Election acquires and renews the leases of a candidate. It is safe for concurrent use.
type Election struct {
	// own is nil for a single replica.
	own, karpenter *Lease
	// turn admits one caller at a time to the leases.
	turn chan struct{}

	mu sync.Mutex
	// leading is true while all leases are held. renewed is when the first of them was last renewed. runs has the
	// cancel functions of the runs in progress.
	leading bool
	renewed time.Time
	runs    map[*context.CancelCauseFunc]bool
}

// ErrLeaseLost is the cause of the context of a run when the leases are lost.
var ErrLeaseLost = errors.New("the Lease was lost")

// NewElection returns the election of a candidate.
func NewElection(c Candidate) *Election {
	c.Karpenter.Name = cmp.Or(c.Karpenter.Name, KarpenterName)
	e := &Election{karpenter: &Lease{Key: c.Karpenter, Holder: KarpenterHolder}, turn: make(chan struct{}, 1), runs: map[*context.CancelCauseFunc]bool{}}
	if !c.SingleReplica {
		e.own = &Lease{Key: c.Own, Holder: c.Holder}
	}
	return e
}

// AcquireLeases acquires or renews the leases and reports whether the candidate may act. now must
// come from a monotonic clock.
func (e *Election) AcquireLeases(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	if err := e.waitForTurn(ctx); err != nil {
		return false, err
	}
	defer e.endTurn()
	return e.acquireLocked(ctx, client, now)
}

// RenewLeases renews held leases if a renewal is due, and acquires none. The host calls it every
// RetryPeriod, because a lease would expire during a run that is longer than Duration.
func (e *Election) RenewLeases(ctx context.Context, client cluster.Client, now time.Time) error {
	if err := e.waitForTurn(ctx); err != nil {
		return err
	}
	defer e.endTurn()
	if !e.holdsAll() {
		return nil
	}
	_, err := e.acquireLocked(ctx, client, now)
	return err
}

// RunAsLeader runs a function that only the leader may run. The function's context ends when the
// leases are lost; then Act returns fault.Retry.
func (e *Election) RunAsLeader(ctx context.Context, act func(ctx context.Context) error) error {
	acting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !e.startRun(&cancel) {
		return fault.E("acting as the leader", fault.Retry, ErrLeaseLost)
	}
	defer e.endRun(&cancel)
	err := act(acting)
	if errors.Is(context.Cause(acting), ErrLeaseLost) {
		return fault.F("acting as the leader", fault.Retry, "%w: %w", ErrLeaseLost, err)
	}
	return err
}

// HoldsLeases reports whether the leases are held and were renewed within RenewDeadline. It makes no call, so
// that a process which was paused can find out at any step that another replica may lead by now.
func (e *Election) HoldsLeases(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading && now.Sub(e.renewed) < RenewDeadline
}

// startRun registers the cancel function of a run, and returns false if the leases are not
// held.
func (e *Election) startRun(act *context.CancelCauseFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leading {
		e.runs[act] = true
	}
	return e.leading
}

func (e *Election) endRun(act *context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runs, act)
}

// acquireLocked acquires or renews the leases, and ends all runs if they are lost. The
// caller has the turn, also in the functions below.
func (e *Election) acquireLocked(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	leads, err := AcquireAll(ctx, client, now, e.listLeases()...)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewed = e.firstRenewal()
	if e.leading = e.holdsAll(); !e.leading {
		for act := range e.runs {
			(*act)(ErrLeaseLost)
		}
	}
	return leads, err
}

func (e *Election) listLeases() []*Lease {
	if e.own == nil {
		return []*Lease{e.karpenter}
	}
	return []*Lease{e.own, e.karpenter}
}

func (e *Election) firstRenewal() time.Time {
	return slices.MinFunc(e.listLeases(), func(a, b *Lease) int { return a.renewed.Compare(b.renewed) }).renewed
}

func (e *Election) holdsAll() bool {
	return !slices.ContainsFunc(e.listLeases(), func(l *Lease) bool { return !l.held })
}

// waitForTurn waits for the turn, or for the context to end.
func (e *Election) waitForTurn(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Election) endTurn() { <-e.turn }

// ReleaseLease gives up the service's own Lease, so that another replica can act at once.
// Karpenter's Lease expires by itself, because Joist's other writer may still hold it.
func (e *Election) ReleaseLease(ctx context.Context, client cluster.Client) error {
	if e.own == nil {
		return nil
	}
	if err := e.waitForTurn(ctx); err != nil {
		return err
	}
	defer e.endTurn()
	e.mu.Lock()
	e.leading = false
	e.mu.Unlock()
	return e.own.Release(ctx, client)
}
