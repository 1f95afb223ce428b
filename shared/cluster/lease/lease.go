// Package lease holds Kubernetes Leases, so that one replica acts at a time,
// and so that Joist and Karpenter never act together.
//
// A lease is taken when its holder has not renewed it for its duration, as
// observed on our own clock: no two machines' clocks are compared. It only
// avoids contention; nothing unsafe follows when two believe to hold it. A holder renews
// its leases also during a long act, and stops to act before another may begin.
package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// KarpenterName is the Lease that Karpenter's controllers hold.
	KarpenterName = "karpenter-leader-election"
	// KarpenterHolder is who holds it while Joist acts: both of Joist's writers
	// share it, because the point is only that Karpenter does not.
	KarpenterHolder = "joist"
	// Duration is how long a lease is good without renewal; client-go's default.
	Duration = 15 * time.Second
	// Renewal is how often it is renewed.
	Renewal = 5 * time.Second
	// RenewDeadline is how long a holder acts after its last renewal; client-go's default.
	// It is shorter than Duration, so that a holder has stopped when another begins.
	RenewDeadline = 10 * time.Second
	// RetryPeriod is how often a renewal that is due is tried; client-go's default.
	RetryPeriod = 2 * time.Second
)

// Lease is one lease as one holder sees it.
type Lease struct {
	Key    cluster.Key
	Holder string

	// seen and seenAt are the renewal that was last observed, and when.
	seen    string
	seenAt  time.Time
	renewed time.Time
	held    bool
}

// Hold takes or renews the lease and reports whether it is held. now must come
// from a monotonic clock. It asks the API server only when a renewal is due.
func (l *Lease) Hold(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	if l.held && now.Sub(l.renewed) < Renewal {
		return true, nil
	}
	left := RenewDeadline - now.Sub(l.renewed)
	l.held = l.held && left > 0
	trying := ctx
	if l.held {
		var cancel context.CancelFunc
		trying, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	held, err := l.try(trying, client, now)
	switch {
	case err == nil:
		l.held = held
	case fault.Is(err, fault.Conflict):
		// Somebody else was faster. Look again before believing anything.
		l.held = false
		return false, nil
	case l.held && (trying.Err() == nil || ctx.Err() != nil):
		// The API server is away for a moment, or the caller ended; the lease is still ours.
		return true, nil
	default:
		l.held = false
	}
	return l.held, err
}

// Release gives up a lease that is held, so that nobody has to wait until it runs
// out. Whoever calls it must have stopped to act. A lease that is another's by now
// is left alone.
func (l *Lease) Release(ctx context.Context, client cluster.Client) error {
	if !l.held {
		return nil
	}
	l.held = false
	object, err := cluster.Get[*coordinationv1.Lease](ctx, client, cluster.Leases, l.Key)
	if err == nil && deref(object.Spec.HolderIdentity) == l.Holder {
		object = object.DeepCopy()
		object.Spec.HolderIdentity = nil
		_, err = client.Update(ctx, object)
	}
	if err != nil && !fault.Is(err, fault.Conflict, fault.Missing) {
		return fmt.Errorf("releasing lease %s: %w", l.Key, err)
	}
	return nil
}

func (l *Lease) try(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	object, err := cluster.Get[*coordinationv1.Lease](ctx, client, cluster.Leases, l.Key)
	if fault.Is(err, fault.Missing) {
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Key.Namespace, Name: l.Key.Name}}
		l.write(fresh, now)
		_, err = client.Create(ctx, fresh)
		return l.done(now, err)
	}
	if err != nil {
		return false, fmt.Errorf("reading lease %s: %w", l.Key, err)
	}
	if !l.free(object, now) {
		return false, nil
	}
	object = object.DeepCopy()
	l.write(object, now)
	_, err = client.Update(ctx, object)
	return l.done(now, err)
}

func (l *Lease) done(now time.Time, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("writing lease %s: %w", l.Key, err)
	}
	l.renewed = now
	return true, nil
}

// free reports whether the lease is ours, nobody's, or abandoned.
func (l *Lease) free(object *coordinationv1.Lease, now time.Time) bool {
	holder := deref(object.Spec.HolderIdentity)
	if holder == "" || holder == l.Holder {
		return true
	}
	mark := holder
	if object.Spec.RenewTime != nil {
		mark += object.Spec.RenewTime.String()
	}
	if mark != l.seen {
		l.seen, l.seenAt = mark, now
		return false
	}
	duration := Duration
	if object.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*object.Spec.LeaseDurationSeconds) * time.Second
	}
	return now.Sub(l.seenAt) >= duration
}

func (l *Lease) write(object *coordinationv1.Lease, now time.Time) {
	stamp := metav1.NewMicroTime(now)
	if deref(object.Spec.HolderIdentity) != l.Holder {
		transitions := int32(0)
		if object.Spec.LeaseTransitions != nil {
			transitions = *object.Spec.LeaseTransitions + 1
		}
		object.Spec.LeaseTransitions = &transitions
		object.Spec.AcquireTime = &stamp
	}
	seconds := int32(Duration / time.Second)
	object.Spec.HolderIdentity = &l.Holder
	object.Spec.LeaseDurationSeconds = &seconds
	object.Spec.RenewTime = &stamp
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// All holds several leases, and reports whether every one is held. It stops at
// the first that is not, so that what cannot act does not hinder others.
func All(ctx context.Context, client cluster.Client, now time.Time, leases ...*Lease) (bool, error) {
	for _, l := range leases {
		if held, err := l.Hold(ctx, client, now); !held || err != nil {
			return false, err
		}
	}
	return true, nil
}
