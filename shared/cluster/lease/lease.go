// Package lease acquires Kubernetes Leases, so that one replica acts at a time, and so
// that Joist and Karpenter never act at the same time.
//
// A lease is taken over when its holder has not renewed it for its duration, measured on
// the local clock; clocks of two machines are not compared. Leases only avoid contention:
// the system stays safe if two replicas believe that they hold one. A holder renews its
// leases during long runs, and stops before another replica may start.
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
	// KarpenterHolder is its holder while Joist acts. Both of Joist's writers use this
	// name, because the lease only has to exclude Karpenter.
	KarpenterHolder = "joist"
	// Duration is how long a lease is valid without renewal; client-go's default.
	Duration = 15 * time.Second
	// Renewal is how often it is renewed.
	Renewal = 5 * time.Second
	// RenewDeadline is how long a holder acts after its last renewal; client-go's default.
	// It is shorter than Duration, so that a holder stops before another one starts.
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

// AcquireOrRenew takes or renews the lease and reports whether it is held. now must come
// from a monotonic clock. It asks the API server only when a renewal is due.
func (l *Lease) AcquireOrRenew(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
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
	held, err := l.tryAcquireOrRenew(trying, client, now)
	switch {
	case err == nil:
		l.held = held
	case fault.Is(err, fault.Conflict):
		// Another replica wrote the lease first. The next call reads it again.
		l.held = false
		return false, nil
	case l.held && (trying.Err() == nil || ctx.Err() != nil):
		// The API server did not answer, or the caller's context ended. The lease is still held.
		return true, nil
	default:
		l.held = false
	}
	return l.held, err
}

// Release gives up a lease that is held, so that another replica need not wait until it
// expires. The caller must have stopped acting. A lease that has another holder by now is
// not changed.
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

func (l *Lease) tryAcquireOrRenew(ctx context.Context, client cluster.Client, now time.Time) (bool, error) {
	object, err := cluster.Get[*coordinationv1.Lease](ctx, client, cluster.Leases, l.Key)
	if fault.Is(err, fault.Missing) {
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Key.Namespace, Name: l.Key.Name}}
		l.writeHolder(fresh, now)
		_, err = client.Create(ctx, fresh)
		return l.recordRenewal(now, err)
	}
	if err != nil {
		return false, fmt.Errorf("reading lease %s: %w", l.Key, err)
	}
	if !l.isAvailable(object, now) {
		return false, nil
	}
	object = object.DeepCopy()
	l.writeHolder(object, now)
	_, err = client.Update(ctx, object)
	return l.recordRenewal(now, err)
}

func (l *Lease) recordRenewal(now time.Time, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("writing lease %s: %w", l.Key, err)
	}
	l.renewed = now
	return true, nil
}

// isAvailable reports whether the lease is held by this holder or by none, or has expired.
func (l *Lease) isAvailable(object *coordinationv1.Lease, now time.Time) bool {
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

func (l *Lease) writeHolder(object *coordinationv1.Lease, now time.Time) {
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

// AcquireAll acquires or renews several leases and reports whether all are held. It stops at the
// first that is not, so that a replica which cannot act does not block others.
func AcquireAll(ctx context.Context, client cluster.Client, now time.Time, leases ...*Lease) (bool, error) {
	for _, l := range leases {
		if held, err := l.AcquireOrRenew(ctx, client, now); !held || err != nil {
			return false, err
		}
	}
	return true, nil
}
