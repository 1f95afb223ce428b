package watcher

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// batchTrace describes a batch for its trace span. After a restart the span begins when the outbox
// received the batch, and has no links.
type batchTrace struct {
	seq uint64
	// since is the creation time of the oldest pod, and pods is the number of pods.
	since time.Time
	pods  int
	// links are the traces that led to this batch: earlier batches with some of its pods, and the
	// removals of nodes that some of its pods run on. Each occurs once.
	links []string
}

// recordTrace records the pods and links of a batch for its trace.
func (s *Service) recordTrace(held outbox.Stored, view collect.View) {
	if s.Span == nil {
		return
	}
	batch := batchTrace{seq: held.Seq, since: s.Now()}
	link := func(to string) {
		if to != "" && !slices.Contains(batch.links, to) {
			batch.links = append(batch.links, to)
		}
	}
	own, claims := s.batchHead(held).RootTraceparent(), claimsByNode(view.Snapshot.Nodes)
	tried := make(map[string]string, len(s.podTraces))
	for _, class := range view.Pending {
		for i := range class.Pods {
			pod := &class.Pods[i]
			if pod.Buffer != "" {
				continue
			}
			batch.pods++
			if !pod.Created.IsZero() && pod.Created.Before(batch.since) {
				batch.since = pod.Created
			}
			link(s.podTraces[pod.UID])
			if pod.Node != "" {
				link(s.claimTrace(claims[pod.Node]).Traceparent)
			}
			tried[pod.UID] = own
		}
	}
	s.lastTrace, s.podTraces = batch, tried
}

// batchHead returns the envelope of a batch without its body, which is enough to name the trace.
func (s *Service) batchHead(held outbox.Stored) event.Envelope {
	return s.maker.NewHead(s.Now(), batchMessage(held))
}

// reportPendingSpan reports the span that begins the trace of a batch, once for each batch and
// process. Another process that sends the same batch again reports the same span.
func (s *Service) reportPendingSpan(batch event.Envelope, held outbox.Stored) {
	if s.Span == nil || s.lastSentSeq == held.Seq {
		return
	}
	trace := s.lastTrace
	if trace.seq != held.Seq {
		trace = batchTrace{since: held.Since}
	}
	span := host.Span{Name: "pods pending", Envelope: batch, IsRoot: true, Start: trace.since, End: s.Now(), Links: trace.links}
	if trace.pods > 0 {
		span.Fields = []any{"pods", trace.pods}
	}
	s.Span(span)
}

// reportRunningSpans reports the spans that end traces of batches: pods became ready on a node that
// was started after the pods were created. It leaves out DaemonSet pods, which no batch contains.
func (s *Service) reportRunningSpans(view collect.View, ready []collect.PodStart) {
	if s.Span == nil || len(ready) == 0 {
		return
	}
	claims, by := claimsByNode(view.Snapshot.Nodes), map[string][]collect.PodStart{}
	for _, pod := range ready {
		if name := claims[pod.Node]; name != "" && !pod.Daemon {
			by[name] = append(by[name], pod)
		}
	}
	for name, pods := range by {
		of := s.claimTrace(name)
		object, known := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
		if !known || of.Traceparent == "" {
			continue
		}
		pods = slices.DeleteFunc(pods, func(pod collect.PodStart) bool { return !couldWaitFor(object.(*karpenter.NodeClaim), pod.Created) })
		if len(pods) == 0 {
			continue
		}
		first := slices.MinFunc(pods, func(a, b collect.PodStart) int { return a.Created.Compare(b.Created) })
		s.Span(host.Span{
			Name: "pods running", Envelope: of, Start: first.Created, End: s.Now(), Fields: []any{"pods", len(pods), "nodeclaim", name, "node", first.Node},
		})
	}
}

// couldWaitFor reports whether a pod with this creation time can have waited for the claim's node.
func couldWaitFor(c *karpenter.NodeClaim, created time.Time) bool {
	initialized, known := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
	return c.DeletionTimestamp == nil && (!known || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || created.Before(initialized.LastTransitionTime.Time))
}

// claimTrace returns an envelope with the trace that the claim's annotation names, or an empty
// envelope.
func (s *Service) claimTrace(name string) event.Envelope {
	object, known := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
	if !known {
		return event.Envelope{}
	}
	of := planning.ReadTrace(object)
	if of == nil {
		return event.Envelope{}
	}
	of.Cluster = s.Cluster.Name
	return *of
}

// claimsByNode maps the names of nodes to the names of their claims.
func claimsByNode(nodes []planning.Node) map[string]string {
	claims := make(map[string]string, len(nodes))
	for i := range nodes {
		claims[nodes[i].Name] = nodes[i].Claim
	}
	return claims
}
