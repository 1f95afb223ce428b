package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/deletioncost"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

const (
	// deletionCostInterval is how often nodes are ranked, as in Karpenter.
	deletionCostInterval = time.Minute
	// deletionCostWrites is after how many writes a reconcile begins with no further node, so that a
	// notice does not wait for them.
	deletionCostWrites = 32
)

// deletionCostState is the last ranking without the nodes that are written.
type deletionCostState struct {
	rankedAt time.Time
	costs    []deletioncost.NodeCost
	// nodes are the nodes that the last ranking changes, by NodePool.
	nodes map[string]int
}

// reconcileDeletionCosts ranks the nodes and writes pod-deletion-cost on their pods. A write that fails
// is repeated after the next ranking.
func (s *Service) reconcileDeletionCosts(ctx context.Context, w clusterState) error {
	if !s.PodDeletionCosts {
		return nil
	}
	state := &s.deletionCosts
	if len(state.costs) == 0 && s.lastReconcile.Sub(state.rankedAt) >= deletionCostInterval {
		view, err := s.deletionCostView(ctx, w)
		if err != nil {
			return fmt.Errorf("ranking nodes for pod-deletion-cost: %w", err)
		}
		state.rankedAt = s.lastReconcile
		state.costs, state.nodes = deletioncost.RankNodes(view).ListCosts()
	}
	var failures []error
	for written := 0; written < deletionCostWrites && len(state.costs) > 0; {
		next := state.costs[0]
		state.costs = state.costs[1:]
		n, err := s.writeNodeCost(ctx, next, w)
		written += n
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// writeNodeCost writes the pods of a node, as they are in the API server, and returns how many
// requests it made. Cached pods have no resourceVersion.
func (s *Service) writeNodeCost(ctx context.Context, c deletioncost.NodeCost, w clusterState) (requests int, err error) {
	pods, err := w.livePods(c.Node)
	if err != nil {
		return 1, fmt.Errorf("listing the pods of node %s for pod-deletion-cost: %w", c.Node, err)
	}
	changed, unchanged := c.SplitPods(pods)
	s.Metrics.Record(metric.DeletionCostWrites, float64(unchanged), "skipped_unchanged")
	failures := s.executor.ForEach(len(changed), func(i int) error {
		err := s.Client.PatchAnnotation(ctx, changed[i], corev1.PodDeletionCost, c.Value)
		s.Metrics.Record(metric.DeletionCostWrites, 1, writeResult(err))
		if fault.Is(err, fault.Missing, fault.Conflict) {
			return nil
		}
		return err
	})
	return 1 + len(changed), errors.Join(failures...)
}

// writeResult returns the metric's result of a write.
func writeResult(err error) string {
	switch {
	case err == nil:
		return "updated"
	case fault.Is(err, fault.Missing):
		return "skipped_notfound"
	case fault.Is(err, fault.Conflict):
		return "skipped_conflict"
	default:
		return "error"
	}
}

// deletionCostView collects the input of deletioncost.RankNodes.
func (s *Service) deletionCostView(ctx context.Context, w clusterState) (deletioncost.RankingView, error) {
	prices, err := s.readPrices(ctx, w.pools)
	if err != nil {
		return deletioncost.RankingView{}, err
	}
	counted := w.countBudgets()
	v := deletioncost.RankingView{
		Budgets: s.cachedBudgets(),
		Remaining: func(pool *karpenter.NodePool, reason karpenter.DisruptionReason) int {
			allowed, consumed := counted.MeasureUse(pool, reason, s.lastReconcile)
			return allowed - consumed
		},
		Now: s.lastReconcile,
	}
	for _, c := range w.claims {
		node := w.findNode(c)
		if node == nil {
			continue
		}
		n := deletioncost.RankedNode{Candidate: disruption.Candidate{Claim: c, Node: node, Pods: w.pods(node.Name)}, Pool: w.pools[c.Labels[karpenter.NodePoolLabelKey]]}
		n.Nominated, _ = time.Parse(time.RFC3339, c.Annotations[NominatedAnnotation])
		n.Price, n.Offered = prices.find(c)
		v.Nodes = append(v.Nodes, n)
	}
	return v, nil
}

// countBudgets counts the nodes that the budgets of the NodePools count.
func (w clusterState) countBudgets() disruption.RemainingBudgets {
	return disruption.CountBudgets(slices.Collect(maps.Values(w.pools)), w.claims, func(*karpenter.NodeClaim) bool { return false }, func(c *karpenter.NodeClaim) bool {
		node := w.findNode(c)
		return node != nil && conditions.NodeReady(node)
	})
}

// nodePrices are the instance types of the NodePools, with the prices of NodeOverlays. Nil knows no
// types, and then the prices at launch count.
type nodePrices struct {
	types   instancetypes.InstanceTypes
	classes map[string]string
}

// readPrices resolves the instance types of the NodePools with the latest catalogue, as planning does.
func (s *Service) readPrices(ctx context.Context, pools map[string]*karpenter.NodePool) (*nodePrices, error) {
	if s.Catalogues == nil {
		return nil, nil
	}
	cat, err := s.readLatestCatalogue(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.readSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	for _, pool := range pools {
		snapshot.NodePools = append(snapshot.NodePools, *pool)
	}
	out := nodePrices{instancetypes.New(snapshot, cat), map[string]string{}}
	for _, pool := range pools {
		if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
			out.classes[pool.Name] = ref.Name
		}
	}
	return &out, nil
}

// find returns the price of a claim's node in US dollars per hour, 0 if it is unknown, and whether its
// NodePool offers the instance type.
func (p *nodePrices) find(c *karpenter.NodeClaim) (perHour float64, offered bool) {
	if p == nil {
		perHour, _ = planning.ReadPrice(c)
		return perHour, true
	}
	pool, name := c.Labels[karpenter.NodePoolLabelKey], c.Labels[corev1.LabelInstanceTypeStable]
	types := p.types.TypesForPool(pool, p.classes[pool])
	i := slices.IndexFunc(types, func(t instancetypes.Type) bool { return t.Name == name })
	if i < 0 {
		return 0, pool == "" || name == ""
	}
	for j := range types[i].Offerings {
		o := &types[i].Offerings[j]
		if o.Zone == c.Labels[corev1.LabelTopologyZone] && o.CapacityType == c.Labels[karpenter.CapacityTypeLabelKey] && !o.Unpriced {
			return o.PricePerHour, true
		}
	}
	return 0, true
}
