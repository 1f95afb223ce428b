package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ConsistencyDelay is how long after an event EC2's answers may still be older than it.
const ConsistencyDelay = owner.ConsistencyDelay

// decideEvent decides what an event of AWS means for the cluster, once it is known whose
// its instances are: whether there is anything to say, and what becomes of the message
// afterwards.
func (s *Service) decideEvent(h *pendingEvent, now time.Time) (speaks bool, err error) {
	n, found := &h.notice, &h.lookup.Result
	open := len(found.NotFound) + len(found.Untagged)
	h.Note.Say("instances", len(n.Instances), "ours", len(found.Owned), "unseen", open)
	if n.State.Gone() {
		h.goneAt, err = s.confirmTermination(n, found, now)
		return err == nil, err
	}
	switch {
	case open > 0 && isRecent(n, now):
		err = fault.F("finding the owner", fault.Retry, "EC2 does not show %d of %d instances and their tags yet", open, len(n.Instances))
	case len(found.Owned) == 0:
		err = s.foreignError()
	}
	return len(found.Owned) > 0, err
}

// confirmTermination takes the word that an instance is terminated, and says since when it is
// gone. It is passed on once EC2 shows it so, or has forgotten the instance; whose
// it was cannot be told then, and lifecycle drops what none of its claims has.
func (s *Service) confirmTermination(n *notice.Notice, found *owner.Owners, now time.Time) (gone time.Time, err error) {
	id := n.Instances[0]
	mine, unseen, untagged := len(found.Owned) > 0, len(found.NotFound) > 0, len(found.Untagged) > 0
	switch {
	case mine && found.Owned[0].State.Gone():
		return now.UTC(), nil
	case (mine || unseen || untagged) && isRecent(n, now):
		return time.Time{}, fault.F("looking for the end of "+id, fault.Retry, "EC2 does not show it terminated yet")
	case mine:
		return time.Time{}, fault.F("looking for the end of "+id, fault.Stale, "EC2 still shows it %s", found.Owned[0].State)
	case unseen:
		return n.Noticed, nil
	default:
		return time.Time{}, fault.F("finding the owner", fault.Foreign, "instance %s is not of cluster %s", id, s.Cluster.Name)
	}
}

// isRecent reports whether EC2's answers may still be older than the event.
func isRecent(n *notice.Notice, now time.Time) bool { return now.Sub(n.Noticed) < ConsistencyDelay }

// eventLifetime is how long an event means something: as long as the fact that it
// becomes. Afterwards the status poll and the inventory know better.
func eventLifetime(n *notice.Notice) time.Duration {
	fact := event.NodeNoticedType
	if n.State.Gone() {
		fact = event.InstanceGoneType
	}
	spec, err := fact.Spec()
	if err != nil {
		return 0 // Not reached: both are types of ours.
	}
	return spec.TTL
}
