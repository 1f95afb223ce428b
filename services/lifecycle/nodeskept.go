package lifecycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// budgetRule is disruption's rule for nodes that a budget protects.
const budgetRule = "budget"

// breakerRule is disruption's rule for unhealthy nodes of a NodePool, or of the zone in the subject,
// with too many unhealthy nodes.
const breakerRule = "repair-breaker"

// handleNodesKept publishes why nodes are not disrupted, as Events on them and on NodePools whose
// budgets allow no disruption. It reads only the cache and writes only Events.
func (s *Service) handleNodesKept(ctx context.Context, _ event.Envelope, b event.NodesKept) error {
	var report []events.Kept
	var effects []effect.Effect
	seen := map[string]bool{}
	for _, k := range b.Kept {
		for _, name := range k.Claims {
			object, known := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
			if !known {
				continue
			}
			c := object.(*karpenter.NodeClaim)
			if k.Rule == breakerRule {
				effects = append(effects, s.reportBreaker(c, k.Subject)...)
				continue
			}
			if pool := c.Labels[karpenter.NodePoolLabelKey]; k.Rule == budgetRule && !seen[pool+"/"+k.Subject] {
				seen[pool+"/"+k.Subject] = true
				effects = append(effects, s.reportClosedBudget(pool, karpenter.DisruptionReason(k.Subject))...)
			}
			report = append(report, events.Kept{Claim: c, Node: s.cachedNodeByName(c), Rule: k.Rule, Subject: k.Subject, Detail: k.Detail})
		}
	}
	effects = append(effects, s.publisher.ReportKept(report, s.Now())...)
	host.AddLogFields(ctx, "kept", len(report), "events", len(effects))
	return s.executor.Execute(ctx, nil, effects...)
}

// reportClosedBudget returns the Event of a NodePool whose budgets allow no disruption for the
// reason.
func (s *Service) reportClosedBudget(name string, reason karpenter.DisruptionReason) []effect.Effect {
	object, known := s.Cache.Get(cluster.NodePools, cluster.Key{Name: name})
	if !known || !slices.Contains(budget.Reasons, reason) {
		return nil
	}
	pool := object.(*karpenter.NodePool)
	// One node is sufficient, because percentages are rounded up.
	if n, err := budget.AllowedDisruptions(pool, 1, reason, s.Now()); err != nil || n > 0 {
		return nil
	}
	return []effect.Effect{events.BudgetBlocked.About(cluster.NodePools, pool, s.Now(),
		"No allowed disruptions for disruption reason %s due to blocking budget", reason)}
}

// reportBreaker returns the Events about a node that is not repaired because too many nodes of its
// NodePool, or of the zone, are unhealthy.
func (s *Service) reportBreaker(c *karpenter.NodeClaim, zone string) []effect.Effect {
	if s.Repair == nil {
		return nil
	}
	pool := c.Labels[karpenter.NodePoolLabelKey]
	text := fmt.Sprintf("more than %s of nodes in nodepool %q are unhealthy", s.Repair.Settings.Unhealthy.String(), pool)
	if limit := s.Repair.Settings.UnhealthyInZone; zone != "" && limit != nil {
		text = fmt.Sprintf("more than %s of nodes in zone %q are unhealthy", limit.String(), c.Labels[corev1.LabelTopologyZone])
	}
	np, _ := s.Cache.Get(cluster.NodePools, cluster.Key{Name: pool})
	return s.reportRepairBlocked(s.cachedNodeByName(c), c, np, text)
}

// reportRepairBlocked returns the Events about a node that is not repaired. The node and the NodePool
// may be nil.
func (s *Service) reportRepairBlocked(node *corev1.Node, c *karpenter.NodeClaim, pool cluster.Object, text string) []effect.Effect {
	out := []effect.Effect{events.NodeRepairBlocked.About(cluster.NodeClaims, c, s.Now(), "%s", text)}
	if node != nil {
		out = append(out, events.NodeRepairBlocked.About(cluster.Nodes, node, s.Now(), "%s", text))
	}
	if pool != nil {
		out = append(out, events.NodeRepairBlocked.About(cluster.NodePools, pool, s.Now(), "%s", text))
	}
	return out
}

// cachedNodeByName returns the claim's node from the cache by its name, or nil.
func (s *Service) cachedNodeByName(c *karpenter.NodeClaim) *corev1.Node {
	object, known := s.Cache.Get(cluster.Nodes, cluster.Key{Name: c.Status.NodeName})
	if !known || object.(*corev1.Node).Spec.ProviderID != c.Status.ProviderID {
		return nil
	}
	return object.(*corev1.Node)
}
