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

// story is how a batch came about. It is memory: without it the batch's span is told all
// the same, from when the outbox has it and without links.
type story struct {
	seq uint64
	// since is when the first of its pods was made, and pods how many there are.
	since time.Time
	pods  int
	// links are the stories that it comes from, each once: batches before, in which some of
	// its pods were already, and what takes the nodes that some of its pods are on.
	links []string
}

// compose notes how a batch comes about, of the pods that are in it.
func (s *Service) compose(held outbox.Held, view collect.View) {
	if s.Span == nil {
		return
	}
	batch := story{seq: held.Seq, since: s.Now()}
	link := func(to string) {
		if to != "" && !slices.Contains(batch.links, to) {
			batch.links = append(batch.links, to)
		}
	}
	own, claims := s.head(held).Root(), claimOf(view.Snapshot.Nodes)
	tried := make(map[string]string, len(s.tried))
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
			link(s.tried[pod.UID])
			if pod.Node != "" {
				link(s.claimStory(claims[pod.Node]).Traceparent)
			}
			tried[pod.UID] = own
		}
	}
	s.composed, s.tried = batch, tried
}

// head is the message of a batch, as far as its story goes.
func (s *Service) head(held outbox.Held) event.Envelope { return s.maker.Head(s.Now(), asking(held)) }

// tellBatch begins the story of a batch with the pods that waited for it. A batch is sent
// again for as long as nobody answers, also by another process, and is one span all the
// same.
func (s *Service) tellBatch(batch event.Envelope, held outbox.Held) {
	if s.Span == nil || s.sentSeq == held.Seq {
		return
	}
	how := s.composed
	if how.seq != held.Seq {
		how = story{since: held.Since}
	}
	told := host.Span{Name: "pods pending", Of: batch, Begins: true, From: how.since, To: s.Now(), Links: how.links}
	if how.pods > 0 {
		told.Fields = []any{"pods", how.pods}
	}
	s.Span(told)
}

// tellRunning ends the stories of batches with their pods that run: those that came onto
// a node which was started since they were made. The node's daemons are no batch's.
func (s *Service) tellRunning(view collect.View, ready []collect.Start) {
	if s.Span == nil || len(ready) == 0 {
		return
	}
	claims, by := claimOf(view.Snapshot.Nodes), map[string][]collect.Start{}
	for _, pod := range ready {
		if name := claims[pod.Node]; name != "" && !pod.Daemon {
			by[name] = append(by[name], pod)
		}
	}
	for name, pods := range by {
		of := s.claimStory(name)
		object, known := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
		if !known || of.Traceparent == "" {
			continue
		}
		pods = slices.DeleteFunc(pods, func(pod collect.Start) bool { return !waitedFor(object.(*karpenter.NodeClaim), pod.Made) })
		if len(pods) == 0 {
			continue
		}
		first := slices.MinFunc(pods, func(a, b collect.Start) int { return a.Made.Compare(b.Made) })
		s.Span(host.Span{
			Name: "pods running", Of: of, From: first.Made, To: s.Now(), Fields: []any{"pods", len(pods), "nodeclaim", name, "node", first.Node},
		})
	}
}

// waitedFor reports whether a pod of that age can have waited for the claim's node.
func waitedFor(c *karpenter.NodeClaim, made time.Time) bool {
	joined, known := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
	return c.DeletionTimestamp == nil && (!known || !c.Status.Conditions.True(karpenter.ConditionTypeInitialized) || made.Before(joined.LastTransitionTime.Time))
}

// claimStory is the story that a claim says that it is in, or none.
func (s *Service) claimStory(name string) event.Envelope {
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

// claimOf names the claims of nodes.
func claimOf(nodes []scheduling.Node) map[string]string {
	claims := make(map[string]string, len(nodes))
	for i := range nodes {
		claims[nodes[i].Name] = nodes[i].Claim
	}
	return claims
}
