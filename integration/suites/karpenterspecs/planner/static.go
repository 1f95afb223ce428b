package planner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// PlanStaticNodes returns the nodes that the static NodePools of the question lack. Every node and NodeClaim counts,
// except claims that are being deleted.
func PlanStaticNodes(ctx context.Context, q Question) ([]NodeAnswer, error) {
	q.AnySystem, q.Nodes = true, map[string]bool{}
	q.Settings.Gates.StaticCapacity = true
	nodes, claims := &corev1.NodeList{}, &karpv1.NodeClaimList{}
	if err := q.Client.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if err := q.Client.List(ctx, claims); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	for i := range nodes.Items {
		q.Nodes[nodes.Items[i].Name] = true
	}
	for i := range claims.Items {
		q.Nodes[claims.Items[i].Name] = true
	}
	feed, err := readCluster(ctx, q)
	if err != nil {
		return nil, err
	}
	batch, _ := watcher.CollectDocuments(watcher.Observation{
		Feed: feed, Cluster: event.Cluster{Name: "specs", UID: "specs"}, Settings: q.Settings, Outbox: "specs", Seq: 1, Now: q.Now,
	})
	batch.Unplanned = nil // Karpenter launches NodeClaims of users elsewhere.
	var out []NodeAnswer
	for _, node := range solver.SolveWithTypes(batch, convertTypes(q)).Nodes {
		one := NodeAnswer{PlannedNode: node, Types: map[string]bool{}}
		for _, o := range node.Offerings {
			one.Types[o.InstanceType] = true
		}
		out = append(out, one)
	}
	return out, nil
}
