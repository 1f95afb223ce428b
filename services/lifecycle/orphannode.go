package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// orphanNodesEvery is the interval of releaseOrphanNodes. Orphan nodes are rare, and all claims are
// read live for them.
const orphanNodesEvery = 2 * time.Second

// releaseOrphanNodes releases nodes whose claim is deleted and returns the jobs that remove their
// pods. Nodes and claims come from two watches, so the claims are read live before anything is
// written.
func (s *Service) releaseOrphanNodes(ctx context.Context, w clusterState) ([]effect.Job, error) {
	names := slices.Sorted(maps.Keys(w.nodesByName))
	nodes := w.findNodes(names)
	found := garbagecollection.FindOrphanNodes(nodes, w.claims)
	s.settled.hasWork = s.settled.hasWork || len(found) > 0
	if len(found) == 0 || !s.allowAction("orphan nodes", orphanNodesEvery) {
		return nil, nil
	}
	if err := garbagecollection.CheckOrphanNodes(found, nodes); err != nil {
		s.Metrics.Record(metric.GarbageCollectionStopped, 1)
		return nil, err
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return nil, fmt.Errorf("listing NodeClaims to find orphan nodes: %w", err)
	}
	var urgent, drains []effect.Job
	for _, node := range garbagecollection.FindOrphanNodes(found, claims) {
		job := effect.Job{Name: "Node " + node.Name, Effects: garbagecollection.ReleaseOrphanNode(node, s.podsOfNodes([]*corev1.Node{node}, w), s.evictions.MayRemove, s.Now())}
		at, removals := job.Split()
		urgent, drains = append(urgent, at), append(drains, removals)
	}
	return drains, joinUnexpected(s.executor.ExecuteJobs(ctx, urgent))
}
