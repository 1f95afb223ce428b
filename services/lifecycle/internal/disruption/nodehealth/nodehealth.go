// Package nodehealth decides which unhealthy nodes are replaced with LEGACY_NODE_REPAIR, as in
// Karpenter 1.14 (pkg/controllers/node/legacyrepair). Otherwise the disruption service repairs nodes.
// The package is pure: the same view gives the same repairs.
//
// The invariants:
//   - A breaker is checked before every repair. When too many nodes of a pool are unhealthy at once,
//     they are probably not the cause, and removing them would make it worse. Nodes count for the
//     breaker as soon as they are unhealthy, and are repaired only after their toleration duration.
//   - A repair is forceful: the drain's deadline is now, because a node that does not answer cannot be
//     drained.
package nodehealth

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// RetryPause is how long a node is not considered again after the breaker blocked its repair.
const RetryPause = 5 * time.Minute

// MonitoredNode is a claim and its node.
type MonitoredNode struct {
	Claim *karpenter.NodeClaim
	Node  *corev1.Node
}

// View is the input of PlanRepairs.
type View struct {
	Policy    repair.PolicySet
	Monitored []MonitoredNode
	// Nodes are all nodes of the cluster.
	Nodes []*corev1.Node
	// Paused reports whether the breaker blocked the node's repair less than RetryPause ago.
	Paused func(node *corev1.Node) bool
	Now    time.Time
}

// PlannedRepair is a node to repair.
type PlannedRepair struct {
	MonitoredNode
	// Why is the unhealthy condition.
	Why string
	// Blocked is why the node is not repaired; empty if it is.
	Blocked string
}

// PlanRepairs returns the nodes to repair now, and the nodes whose repair the breaker blocks.
func PlanRepairs(v View) []PlannedRepair {
	if len(v.Policy.Policies) == 0 {
		return nil
	}
	var cases []PlannedRepair
	b := breaker{View: v, results: map[string]string{}}
	for _, p := range v.Monitored {
		rule, since, sick := FindUnhealthy(p.Node, v.Policy.Policies)
		if !sick || v.Now.Before(since.Add(rule.Toleration)) || v.Paused(p.Node) {
			continue
		}
		why := fmt.Sprintf("its condition %s has been %s for longer than %s", rule.Condition, rule.Status, rule.Toleration)
		cases = append(cases, PlannedRepair{MonitoredNode: p, Why: why, Blocked: b.blockedReason(p)})
	}
	return cases
}

// FindUnhealthy returns the rule that applies to the node and since when. If several apply, it
// returns the one whose toleration duration ends first.
func FindUnhealthy(node *corev1.Node, rules []repair.Policy) (rule repair.Policy, since time.Time, sick bool) {
	for _, r := range rules {
		for _, c := range node.Status.Conditions {
			if c.Type != r.Condition || c.Status != r.Status {
				continue
			}
			at := c.LastTransitionTime.Time
			if !sick || at.Add(r.Toleration).Before(since.Add(rule.Toleration)) {
				rule, since, sick = r, at, true
			}
		}
	}
	return rule, since, sick
}

// breaker counts each set of nodes once.
type breaker struct {
	View
	results map[string]string
}

// blockedReason returns why the breaker blocks the repair, or "".
func (b breaker) blockedReason(p MonitoredNode) string {
	const pool, zone = karpenter.NodePoolLabelKey, corev1.LabelTopologyZone
	whole := breakerScope{"cluster", "", "", &b.Policy.Unhealthy}
	if name := p.Claim.Labels[pool]; name != "" {
		whole = breakerScope{"nodepool", pool, name, &b.Policy.Unhealthy}
	}
	place := breakerScope{"zone", zone, p.Node.Labels[zone], b.Policy.UnhealthyInZone}
	return cmp.Or(b.findExcess(whole), b.findExcess(place))
}

// breakerScope is a set of nodes with a limit of unhealthy ones: the nodes with the label, or all
// nodes if it has no key.
type breakerScope struct {
	name, key, value string
	most             *intstr.IntOrString
}

// findExcess returns the message that too many nodes of the scope are unhealthy, or "".
func (b breaker) findExcess(w breakerScope) string {
	if w.most == nil || w.key != "" && w.value == "" {
		return ""
	}
	id := w.key + "=" + w.value
	if _, counted := b.results[id]; !counted {
		b.results[id] = b.countUnhealthy(w)
	}
	return b.results[id]
}

func (b breaker) countUnhealthy(w breakerScope) string {
	sick, all := 0, 0
	for _, node := range b.Nodes {
		if w.key != "" && node.Labels[w.key] != w.value {
			continue
		}
		all++
		if _, _, is := FindUnhealthy(node, b.Policy.Policies); is {
			sick++
		}
	}
	if !repair.Exceeds(*w.most, sick, all) {
		return ""
	}
	return fmt.Sprintf("more than %s nodes are unhealthy in the %s: %d of %d", w.most.String(), w.name, sick, all)
}
