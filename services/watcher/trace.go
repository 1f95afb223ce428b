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
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// batchTrace is how a batch came about. It is memory: without it the batch's span is told all
// the same, from when the outbox has it and without links.
type batchTrace struct {
	seq uint64
	// since is when the first of its pods was made, and pods how many there are.
	since time.Time
	pods  int
	// links are the stories that it comes from, each once: batches before, in which some of
	// its pods were already, and what takes the nodes that some of its pods are on.
	links []string
}

// recordTrace notes how a batch comes about, of the pods that are in it.
func (s *Service) recordTrace(held outbox.Held, view collect.View) {
	if s.Span == nil {
		return
	}
	batch := batchTrace{seq: held.Seq, since: s.Now()}
	link := func(to string) {
		if to != "" && !slices.Contains(batch.links, to) {
			batch.links = append(batch.links, to)
		}
	}
	own, claims := s.batchHead(held).Root(), claimsByNode(view.Snapshot.Nodes)
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

// batchHead is the message of a batch, as far as its story goes.
func (s *Service) batchHead(held outbox.Held) event.Envelope {
	return s.maker.Head(s.Now(), batchMessage(held))
}

// reportPendingSpan begins the story of a batch with the pods that waited for it. A batch is sent
// again for as long as nobody answers, also by another process, and is one span all the
// same.
func (s *Service) reportPendingSpan(batch event.Envelope, held outbox.Held) {
	if s.Span == nil || s.lastSentSeq == held.Seq {
		return
	}
	how := s.lastTrace
	if how.seq != held.Seq {
		how = batchTrace{since: held.Since}
	}
	told := host.Span{Name: "pods pending", Of: batch, Begins: true, From: how.since, To: s.Now(), Links: how.links}
	if how.pods > 0 {
		told.Fields = []any{"pods", how.pods}
	}
	s.Span(told)
}

// reportRunningSpans ends the stories of batches with their pods that run: those that came onto
// a node which was started since they were made. The node's daemons are no batch's.
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
			Name: "pods running", Of: of, From: first.Created, To: s.Now(), Fields: []any{"pods", len(pods), "nodeclaim", name, "node", first.Node},
		})
	}
}

// couldWaitFor reports whether a pod of that age can have waited for the claim's node.
func couldWaitFor(c *karpenter.NodeClaim, made time.Time) bool {
	joined, known := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
	return c.DeletionTimestamp == nil && (!known || !c.Status.Conditions.True(karpenter.ConditionTypeInitialized) || made.Before(joined.LastTransitionTime.Time))
}

// claimTrace is the story that a claim says that it is in, or none.
func (s *Service) claimTrace(name string) event.Envelope {
	object, known := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
	if !known {
		return event.Envelope{}
	}
	of := scheduling.StoryOf(object)
	if of == nil {
		return event.Envelope{}
	}
	of.Cluster = s.Cluster.Name
	return *of
}

// claimsByNode names the claims of nodes.
func claimsByNode(nodes []scheduling.Node) map[string]string {
	claims := make(map[string]string, len(nodes))
	for i := range nodes {
		claims[nodes[i].Name] = nodes[i].Claim
	}
	return claims
}
