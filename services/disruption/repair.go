package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// RuleHealthy keeps a node that is healthy, or not unhealthy for long enough.
	RuleHealthy = "healthy"
	// RuleRepairBreaker keeps an unhealthy node of a NodePool or zone in which too many nodes are
	// unhealthy: the cause is probably not in the nodes.
	RuleRepairBreaker = "repair-breaker"
	// RuleRepairUnplaceable keeps an unhealthy node whose pods cannot all be placed elsewhere.
	RuleRepairUnplaceable = "repair-unplaceable"
)

// repairs has what node repair decides about the nodes of a snapshot.
type repairs struct {
	// matcher is nil if node repair is off.
	matcher *repair.Matcher
	// breakers are the texts about NodePools and zones that have too many unhealthy nodes.
	breakers map[labelValue]string
	// objections has the unhealthy nodes that are not repaired, by their indexes in the snapshot. They
	// are reported in preference to the objections of later methods.
	objections map[int]candidate.Objection
}

type labelValue struct{ label, value string }

// newRepairs counts the unhealthy nodes of a snapshot. Invalid policies repair no node; the watcher
// does not start with them.
func newRepairs(s *planning.Snapshot) repairs {
	out := repairs{breakers: map[labelValue]string{}, objections: map[int]candidate.Objection{}}
	if s.Repair == nil {
		return out
	}
	matcher, err := repair.NewMatcher(*s.Repair)
	if err != nil {
		return out
	}
	out.matcher = matcher
	out.addBreakers(s, karpenter.NodePoolLabelKey, "nodepool", &s.Repair.Unhealthy)
	out.addBreakers(s, corev1.LabelTopologyZone, "zone", s.Repair.UnhealthyInZone)
	return out
}

// addBreakers counts the nodes with each value of a label. A node counts as unhealthy as soon as a
// policy matches, within its toleration too.
func (r repairs) addBreakers(s *planning.Snapshot, label, name string, limit *intstr.IntOrString) {
	if limit == nil {
		return
	}
	nodes, unhealthy := map[string]int{}, map[string]int{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		value := n.Labels[label]
		if value == "" || !n.HasJoined() {
			continue
		}
		nodes[value]++
		if n.Unhealthy != nil {
			unhealthy[value]++
		}
	}
	for value, count := range nodes {
		if repair.Exceeds(*limit, unhealthy[value], count) {
			r.breakers[labelValue{label, value}] = fmt.Sprintf("more than %s of nodes in %s %q are unhealthy", limit.String(), name, value)
		}
	}
}

// checkBreakers returns the objection that too many nodes of the NodePool or zone are unhealthy.
func (r repairs) checkBreakers(n *planning.Node) candidate.Objection {
	for _, label := range []string{karpenter.NodePoolLabelKey, corev1.LabelTopologyZone} {
		if text := r.breakers[labelValue{label, n.Labels[label]}]; text != "" {
			no := candidate.Objection{Rule: RuleRepairBreaker, Detail: text}
			if label == corev1.LabelTopologyZone {
				no.Subject = n.Labels[label]
			}
			return no
		}
	}
	return candidate.Objection{}
}

// decide returns the repair of a node; the zero decision for a healthy node.
func (r repairs) decide(n *planning.Node, now time.Time) repair.NodeRepair {
	if r.matcher == nil || n.Unhealthy == nil {
		return repair.NodeRepair{}
	}
	return r.matcher.Decide(n.Unhealthy.Conditions, now, n.Unhealthy.LastReboot).LimitReboots(n.Unhealthy.Reboots, now)
}

// checkUnhealthy returns the objection to repairing a node.
func (p *evaluation) checkUnhealthy(c *candidate.Candidate) candidate.Objection {
	now := p.snapshot.TakenAt
	d := p.repairs.decide(c.Node, now)
	p.expectChange(d.Next)
	if d.Action == "" {
		return candidate.Objection{Rule: RuleHealthy, Detail: "it is not unhealthy, or not for long enough"}
	}
	no := cmp.Or(c.CheckRepairable(now), c.CheckUnboundedDrain(d.GracePeriod != nil, now), p.repairs.checkBreakers(c.Node))
	p.expectChangeOf(no)
	return no
}

// findUnhealthy repairs the most urgent node that may be repaired. Each evaluation proposes at most
// one, as in Karpenter.
func (p *evaluation) findUnhealthy() {
	hasFound := false
	for _, c := range p.sortByUrgency(p.availableCandidates(Repair)) {
		if hasFound {
			p.objections[c.Index] = candidate.Objection{Rule: RuleLowerPriority, Detail: "a more urgent node is repaired first"}
			continue
		}
		a := p.tryCommand(Repair, []*candidate.Candidate{c})
		if hasFound = a.isGood(); hasFound {
			p.addCommand(&a)
			continue
		}
		if a.objection.Rule == consolidation.RuleUnplaceable {
			a.objection.Rule = RuleRepairUnplaceable
		}
		p.objections[c.Index] = a.objection
		p.expectChangeOf(a.objection)
	}
	for i := range p.candidates {
		if no := p.objections[p.candidates[i].Index]; no.Rule != RuleHealthy {
			p.repairs.objections[p.candidates[i].Index] = no
		}
	}
}

// sortByUrgency sorts by the score of the repair, then by disruption cost and name.
func (p *evaluation) sortByUrgency(list []*candidate.Candidate) []*candidate.Candidate {
	scores := map[int]float64{}
	for _, c := range list {
		scores[c.Index] = p.repairs.decide(c.Node, p.snapshot.TakenAt).Score
	}
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(scores[b.Index], scores[a.Index]), cmp.Compare(a.Cost*a.Lifetime(), b.Cost*b.Lifetime()), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return list
}
