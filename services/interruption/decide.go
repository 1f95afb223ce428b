package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ConsistencyDelay is how long after an event EC2's answers may be older than the event.
const ConsistencyDelay = owner.ConsistencyDelay

// decideEvent decides how to handle an AWS event once the owners of its instances are known:
// whether facts must be published, and the error of the message after that.
func (s *Service) decideEvent(h *pendingEvent, now time.Time) (hasFacts bool, err error) {
	n, found := &h.notice, &h.lookup.Result
	unresolved := len(found.NotFound) + len(found.Untagged)
	h.LogFields.Add("instances", len(n.Instances), "owned", len(found.Owned), "unresolved", unresolved)
	if n.State.Gone() {
		h.goneAt, err = s.confirmTermination(n, found, now)
		return err == nil, err
	}
	switch {
	case unresolved > 0 && isRecent(n, now):
		err = fault.F("finding the owner", fault.Retry, "EC2 does not return %d of %d instances with their tags yet", unresolved, len(n.Instances))
	case len(found.Owned) == 0:
		err = s.foreignError()
	}
	return len(found.Owned) > 0, err
}

// confirmTermination returns since when a terminated instance is gone. EC2 must return it
// as terminated, or must no longer return it two minutes after the event. In the latter
// case its owner is unknown, and lifecycle drops the fact if no claim matches.
func (s *Service) confirmTermination(n *notice.Notice, found *owner.Owners, now time.Time) (goneAt time.Time, err error) {
	id := n.Instances[0]
	owned, notFound, untagged := len(found.Owned) > 0, len(found.NotFound) > 0, len(found.Untagged) > 0
	switch {
	case owned && found.Owned[0].State.Gone():
		return now.UTC(), nil
	case (owned || notFound || untagged) && isRecent(n, now):
		return time.Time{}, fault.F("confirming the termination of "+id, fault.Retry, "EC2 does not return it as terminated yet")
	case owned:
		return time.Time{}, fault.F("confirming the termination of "+id, fault.Stale, "EC2 still returns it as %s", found.Owned[0].State)
	case notFound:
		return n.Noticed, nil
	default:
		return time.Time{}, fault.F("finding the owner", fault.Foreign, "instance %s does not belong to cluster %s", id, s.Cluster.Name)
	}
}

// isRecent reports whether EC2's answers may be older than the event.
func isRecent(n *notice.Notice, now time.Time) bool { return now.Sub(n.Noticed) < ConsistencyDelay }

// eventLifetime returns how long an event is handled: as long as its fact is valid. Older events
// are stale; the status poll and the inventory find their instances.
func eventLifetime(n *notice.Notice) time.Duration {
	fact := event.NodeNoticedType
	if n.State.Gone() {
		fact = event.InstanceGoneType
	}
	spec, err := fact.Spec()
	if err != nil {
		return 0 // Unreachable: both types have a spec.
	}
	return spec.TTL
}
