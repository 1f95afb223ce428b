package lifecycle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/metrics"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// traceCauses store the message that caused the actions of reconciles on a claim, so that the
// messages that they send belong to the same trace: tags, terminations of interrupted instances,
// registrations. The claim's annotation contains the same for the next leader. The memory is newer
// than the cache, and also contains notices without a deadline, for which nothing is written on the
// claim.
type traceCauses struct {
	mu     sync.Mutex
	causes map[types.UID]traceCause
}

type traceCause struct {
	cause event.Envelope
	at    time.Time
}

// maxTraceAge is how long a cause is kept without an update.
const maxTraceAge = 24 * time.Hour

// writeTrace records the message as the cause of later actions on the claim, and annotates the
// claim, which the caller writes. Without a trace nothing is annotated.
func (s *Service) writeTrace(c *karpenter.NodeClaim, e event.Envelope) {
	if c.UID != "" {
		s.traces.record(c.UID, e, s.Now())
	}
	if e.Traceparent != "" {
		annotateObject(c, planning.TraceAnnotation, e.Traceparent)
	}
}

// keepTrace is writeTrace for a notice. The first of AWS's notices about an instance remains the
// cause.
func (s *Service) keepTrace(c *karpenter.NodeClaim, e event.Envelope) {
	s.rememberTrace(c, e)
	// The cause in memory may not have been written, because that write was lost.
	if written := planning.ReadTrace(c); e.Traceparent != "" && (written == nil || written.Correlation != e.Correlation) {
		annotateObject(c, planning.TraceAnnotation, e.Traceparent)
	}
}

// rememberTrace is keepTrace without the annotation.
func (s *Service) rememberTrace(c *karpenter.NodeClaim, e event.Envelope) {
	if known := s.causeOfClaim(c); known == nil || known.Correlation != e.Correlation {
		s.traces.record(c.UID, e, s.Now())
	}
}

// causeOfClaim returns the message that caused the actions on a claim, nil if it is unknown.
func (s *Service) causeOfClaim(c *karpenter.NodeClaim) *event.Envelope {
	if cause := s.traces.find(c.UID); cause != nil {
		return cause
	}
	return planning.ReadTrace(c)
}

// record stores the cause of a claim without its body.
func (t *traceCauses) record(claim types.UID, cause event.Envelope, now time.Time) {
	cause.Data = nil
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.causes == nil {
		t.causes = map[types.UID]traceCause{}
	}
	t.causes[claim] = traceCause{cause, now}
}

func (t *traceCauses) find(claim types.UID) *event.Envelope {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.causes[claim]; ok {
		return &found.cause
	}
	return nil
}

// clear drops everything, because another replica leads.
func (t *traceCauses) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.causes = nil
}

// removeMissing drops the causes of deleted claims, and old ones.
func (t *traceCauses) removeMissing(before, now map[types.UID]claimSnapshot, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range before {
		if _, still := now[uid]; !still {
			delete(t.causes, uid)
		}
	}
	for uid, s := range t.causes {
		if at.Sub(s.at) > maxTraceAge {
			delete(t.causes, uid)
		}
	}
}

// causeOfMessage returns the cause of a message about a claim that a reconcile sends, nil if it
// is unknown.
func (s *Service) causeOfMessage(body event.Body) *event.Envelope {
	name, uid := "", types.UID("")
	switch b := body.(type) {
	case event.TagRequested:
		name, uid = b.Tags[karpenter.NodeClaimTagKey], types.UID(b.ClaimUID)
	case event.TerminateRequested:
		name, uid = b.Claim, types.UID(b.ClaimUID)
	case event.RebootRequested:
		name, uid = b.Claim, types.UID(b.ClaimUID)
	default:
		return nil
	}
	if cause := s.traces.find(uid); cause != nil {
		return cause
	}
	if object, ok := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name}); ok && object.GetUID() == uid {
		return planning.ReadTrace(object)
	}
	return nil
}

// causeOfLaunch returns the cause of a launch request. A plan also triggers the requests of other
// plans' claims, each of which stays in its own trace. A plan without a trace has written none on
// its claims.
func causeOfLaunch(cause *event.Envelope, c *karpenter.NodeClaim) *event.Envelope {
	written := planning.ReadTrace(c)
	switch {
	case cause == nil:
		return written
	case written == nil && cause.Traceparent == "", written != nil && written.Correlation == cause.Correlation:
		return cause
	default:
		return written
	}
}

// recordSpan adds a change that a reconcile observed on a claim to its trace, because no message
// represents it.
func (s *Service) recordSpan(c metrics.Count, of *karpenter.NodeClaim) {
	name := map[string]string{metric.ClaimInitialization.Name: "node initialized", metric.ClaimTermination.Name: "node gone"}[c.Metric.Name]
	if name == "" || s.Span == nil {
		return
	}
	cause := s.causeOfClaim(of)
	if cause == nil {
		return
	}
	envelope := *cause
	envelope.Cluster = s.Cluster.Name
	s.Span(host.Span{
		Name: name, Envelope: envelope, Start: s.lastReconcile.Add(-time.Duration(c.Value * float64(time.Second))), End: s.lastReconcile,
		Fields: []any{"nodeclaim", of.Name, "instance", of.Status.ProviderID},
	})
}
