// Package nodehealth says which nodes are sick for so long that they are to be
// replaced. It is pure: the same view gives the same cases.
//
// The invariants:
//
//   - A breaker stands before every repair: when too many nodes of the pool are
//     sick at once, the fault is elsewhere, and taking nodes away makes it worse.
//     Nodes count as sick for the breaker at once, and for repair only after their
//     time.
//   - A repair is by force: the drain has no time left, for a node that does not
//     answer cannot be drained.
package nodehealth

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// RetryPause is for how long a node is left alone that the breaker has kept from
// repair.
const RetryPause = 5 * time.Minute

// Policy is when nodes are repaired. Without rules none is.
type Policy struct {
	Rules []karpenter.RepairPolicy
	// Unhealthy is how many nodes of a pool may be sick before none of it is
	// repaired, and of the cluster for a claim without pool. A percentage rounds up.
	Unhealthy intstr.IntOrString
	// UnhealthyInZone is the same of the nodes of a zone, whatever their pools;
	// nil for no such bound. Karpenter has none.
	UnhealthyInZone *intstr.IntOrString
}

// MonitoredNode is a claim and its node.
type MonitoredNode struct {
	Claim *karpenter.NodeClaim
	Node  *corev1.Node
}

// View is all that is looked at.
type View struct {
	Policy    Policy
	Monitored []MonitoredNode
	// Nodes are all of the cluster.
	Nodes []*corev1.Node
	// Paused says whether the breaker has kept the node from repair a short time ago.
	Paused func(node *corev1.Node) bool
	Now    time.Time
}

// PlannedRepair is a node whose time has come.
type PlannedRepair struct {
	MonitoredNode
	// Why says what it suffers from.
	Why string
	// Blocked says why it is not repaired; empty when it is to be.
	Blocked string
}

// PlanRepairs finds the nodes that are to be repaired now, and those that would be if the
// breaker allowed it.
func PlanRepairs(v View) []PlannedRepair {
	if len(v.Policy.Rules) == 0 {
		return nil
	}
	var cases []PlannedRepair
	b := breaker{View: v, said: map[string]string{}}
	for _, p := range v.Monitored {
		rule, since, sick := FindUnhealthy(p.Node, v.Policy.Rules)
		if !sick || v.Now.Before(since.Add(rule.After)) || v.Paused(p.Node) {
			continue
		}
		why := fmt.Sprintf("its condition %s has been %s for longer than %s", rule.Condition, rule.Status, rule.After)
		cases = append(cases, PlannedRepair{MonitoredNode: p, Why: why, Blocked: b.blocked(p)})
	}
	return cases
}

// FindUnhealthy finds what the node suffers from, and since when: of several conditions the
// one whose time comes first.
func FindUnhealthy(node *corev1.Node, rules []karpenter.RepairPolicy) (rule karpenter.RepairPolicy, since time.Time, sick bool) {
	for _, r := range rules {
		for _, c := range node.Status.Conditions {
			if c.Type != r.Condition || c.Status != r.Status {
				continue
			}
			at := c.LastTransitionTime.Time
			if !sick || at.Add(r.After).Before(since.Add(rule.After)) {
				rule, since, sick = r, at, true
			}
		}
	}
	return rule, since, sick
}

// breaker counts each set of nodes once.
type breaker struct {
	View
	said map[string]string
}

// blocked says why the breaker keeps the patient from repair, or "".
func (b breaker) blocked(p MonitoredNode) string {
	const pool, zone = karpenter.NodePoolLabelKey, corev1.LabelTopologyZone
	whole := breakerScope{"cluster", "", "", &b.Policy.Unhealthy}
	if name := p.Claim.Labels[pool]; name != "" {
		whole = breakerScope{"nodepool", pool, name, &b.Policy.Unhealthy}
	}
	place := breakerScope{"zone", zone, p.Node.Labels[zone], b.Policy.UnhealthyInZone}
	return cmp.Or(b.full(whole), b.full(place))
}

// breakerScope is a set of nodes, of which only so many may be sick: those with the label,
// or all where it has no key.
type breakerScope struct {
	name, key, value string
	most             *intstr.IntOrString
}

// full says that more nodes of the ward are sick than may be, or "".
func (b breaker) full(w breakerScope) string {
	if w.most == nil || w.key != "" && w.value == "" {
		return ""
	}
	id := w.key + "=" + w.value
	if _, counted := b.said[id]; !counted {
		b.said[id] = b.count(w)
	}
	return b.said[id]
}

func (b breaker) count(w breakerScope) string {
	sick, all := 0, 0
	for _, node := range b.Nodes {
		if w.key != "" && node.Labels[w.key] != w.value {
			continue
		}
		all++
		if _, _, is := FindUnhealthy(node, b.Policy.Rules); is {
			sick++
		}
	}
	allowed, err := intstr.GetScaledValueFromIntOrPercent(w.most, all, true)
	if err == nil && sick <= allowed {
		return ""
	}
	return fmt.Sprintf("more than %s nodes are unhealthy in the %s: %d of %d, and none is repaired while more than %d are",
		w.most.String(), w.name, sick, all, allowed)
}
