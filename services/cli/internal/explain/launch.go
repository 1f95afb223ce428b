package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Launch explains the choice of an instance.
type Launch struct {
	Claim        string `json:"nodeClaim"`
	NodePool     string `json:"nodePool"`
	CapacityType string `json:"capacityType"`
	// Strategy is EC2's allocation strategy; empty if the launch is not recorded.
	Strategy string `json:"strategy,omitempty"`
	// Pods are the pods for which the node is planned, and Requests the sum of their requests and those of
	// the daemons.
	Pods     []string            `json:"pods"`
	Requests corev1.ResourceList `json:"requests"`
	// Offerings are what the launch tries, the cheapest first.
	Offerings []OfferingPrice `json:"offerings"`
	// Chosen is what EC2 launched, if the instance is known, and Rank its place in Offerings, from 1.
	Chosen *OfferingPrice `json:"chosen,omitempty"`
	Rank   int            `json:"rank,omitempty"`
	// Why describes why this offering came first.
	Why string `json:"why"`
	// InstanceTypes are the types of the EC2NodeClass by the rule that removes them, for all pods of the
	// node together.
	InstanceTypes []TypeGroup `json:"instanceTypes"`
}

// ExplainLaunch explains the launch of a NodeClaim that the plan creates; false if it creates none of this
// name.
func (d *PlanDecision) ExplainLaunch(claim string) (Launch, bool) {
	planned, ok := d.launches[claim]
	if !ok {
		return Launch{}, false
	}
	out := Launch{
		Claim: claim, NodePool: planned.nodePool, CapacityType: planned.capacityType, Strategy: planned.strategy,
		Requests: planned.requests, Offerings: []OfferingPrice{}, InstanceTypes: []TypeGroup{},
	}
	for _, o := range planned.offerings {
		out.Offerings = append(out.Offerings, newOffering(o))
	}
	merged, names := d.podsOf(claim)
	out.Pods = append([]string{}, names...)
	if p, ok := d.explainMerged(merged, planned.nodePool); ok {
		out.InstanceTypes = groupTypes(p.Types, planned.offerings, exoticTypes(d.Stock, p.NodePool, p.NodeClass))
	}
	out.Why = out.explainOrder(nil)
	return out, true
}

// explainMerged explains the types of a NodePool for all pods of a node.
func (d *PlanDecision) explainMerged(merged planning.PodClass, pool string) (solver.PoolExplanation, bool) {
	pools := solver.ExplainPools(d.Batch, d.Stock, merged)
	i := slices.IndexFunc(pools, func(p solver.PoolExplanation) bool { return p.NodePool == pool })
	if i < 0 {
		return solver.PoolExplanation{}, false
	}
	return pools[i], true
}

// SetChosen sets the offering of the instance that EC2 launched, from the node's labels. unavailable are
// the offerings that EC2 refused.
func (l *Launch) SetChosen(n *planning.Node, unavailable []planning.Unavailable) {
	chosen := OfferingPrice{
		InstanceType: n.Labels[corev1.LabelInstanceTypeStable], Zone: n.Labels[corev1.LabelTopologyZone], CapacityType: n.Labels[karpenter.CapacityTypeLabelKey],
		PricePerHour: n.PricePerHour,
	}
	if chosen.InstanceType == "" {
		return
	}
	l.Rank = 1 + slices.IndexFunc(l.Offerings, func(o OfferingPrice) bool { return o.InstanceType == chosen.InstanceType && o.Zone == chosen.Zone })
	if l.Rank > 0 {
		chosen.PricePerHour = l.Offerings[l.Rank-1].PricePerHour
	}
	l.Chosen = &chosen
	l.Why = l.explainOrder(unavailable)
}

// explainOrder describes why an offering came first.
func (l *Launch) explainOrder(unavailable []planning.Unavailable) string {
	if len(l.Offerings) == 0 {
		return "the launch request lists no offerings"
	}
	order := "EC2 tries the offerings by price, the cheapest first"
	switch l.Strategy {
	case "price-capacity-optimized":
		order = "EC2 chooses among the offerings by price and by how much spot capacity they have (price-capacity-optimized)"
	case "capacity-optimized-prioritized", "prioritized":
		order = "EC2 tries the offerings in the order of the prices that a NodeOverlay sets"
	case "lowest-price":
		order += " (lowest-price)"
	}
	switch {
	case l.Chosen == nil:
		return fmt.Sprintf("%s: %s is the cheapest of %d", order, l.Offerings[0], len(l.Offerings))
	case l.Rank == 0:
		return fmt.Sprintf("%s. EC2 launched %s, which the request does not list", order, *l.Chosen)
	case l.Rank == 1:
		return fmt.Sprintf("%s. EC2 launched %s, the cheapest of %d", order, *l.Chosen, len(l.Offerings))
	}
	why := fmt.Sprintf("%s. EC2 launched %s, number %d of %d by price", order, *l.Chosen, l.Rank, len(l.Offerings))
	if refused := l.countRefused(unavailable); refused > 0 {
		why += fmt.Sprintf("; it had refused %d of the cheaper ones", refused)
	}
	return why
}

// countRefused counts the cheaper offerings that EC2 refused.
func (l *Launch) countRefused(unavailable []planning.Unavailable) (count int) {
	for _, o := range l.Offerings[:l.Rank-1] {
		if slices.ContainsFunc(unavailable, func(u planning.Unavailable) bool {
			return u.NodePool == "" && matchesValue(u.InstanceType, o.InstanceType) && matchesValue(u.Zone, o.Zone) && matchesValue(u.CapacityType, o.CapacityType)
		}) {
			count++
		}
	}
	return count
}

// matchesValue reports whether an empty or equal text matches.
func matchesValue(text, value string) bool { return text == "" || text == value }
