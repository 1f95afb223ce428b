package repair

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// UnhealthyCondition is an unhealthy condition of a node.
type UnhealthyCondition struct {
	Type   corev1.NodeConditionType `json:"type"`
	Status corev1.ConditionStatus   `json:"status"`
	Reason string                   `json:"reason,omitempty"`
	// Since is when the status changed, or when the node was created if that is later.
	Since time.Time `json:"since"`
}

// FindConditions returns the conditions of a node for which the set has a policy, at any age, in the node's
// order.
func (m *Matcher) FindConditions(node *corev1.Node) []UnhealthyCondition {
	var out []UnhealthyCondition
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if _, has := m.policies[conditionKey{c.Type, c.Status}]; !has {
			continue
		}
		since := c.LastTransitionTime.Time
		if since.Before(node.CreationTimestamp.Time) {
			since = node.CreationTimestamp.Time
		}
		out = append(out, UnhealthyCondition{c.Type, c.Status, c.Reason, since.UTC()})
	}
	return out
}

// NodeRepair is the repair of one node, merged from all policies whose toleration has ended. The zero value has no
// Action: the node is not repaired now.
type NodeRepair struct {
	Action RepairAction
	// Condition is the condition that determines Action, and EligibleAt is when its toleration ended.
	Condition  UnhealthyCondition
	EligibleAt time.Time
	// GracePeriod is the shortest limit of the drain of all these policies; nil if none has one.
	GracePeriod *time.Duration
	// Score orders nodes, the highest first: it is the rank of the priority, and 1 for each 30 minutes of waiting.
	Score float64
	// Next is when the next toleration ends; zero if none is running.
	Next time.Time
	// Escalated is true if the node is replaced because reboots have not cleared its fault.
	Escalated bool

	priority int
}

// scoreInterval is how long a node waits until it has the score of a node with the next higher priority.
const scoreInterval = 30 * time.Minute

// Decide returns the repair of a node with these conditions. Tolerations begin no earlier than notBefore, which is
// when the node's last reboot ended, or zero.
func (m *Matcher) Decide(conditions []UnhealthyCondition, now, notBefore time.Time) NodeRepair {
	var out NodeRepair
	for _, c := range conditions {
		for _, p := range m.matchPolicies(c) {
			from := c.Since
			if from.Before(notBefore) {
				from = notBefore
			}
			out.merge(p, c, from.Add(p.Toleration), now)
		}
	}
	return out
}

// matchPolicies returns the policies that apply to the condition: those whose expression matches its reason, else the
// fallback.
func (m *Matcher) matchPolicies(c UnhealthyCondition) []compiledPolicy {
	policies, has := m.policies[conditionKey{c.Type, c.Status}]
	if !has {
		return nil
	}
	var out []compiledPolicy
	for _, p := range policies {
		if p.reason.MatchString(c.Reason) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return []compiledPolicy{m.fallback}
	}
	return out
}

// merge adds a policy, if its toleration has ended.
func (d *NodeRepair) merge(p compiledPolicy, c UnhealthyCondition, eligible, now time.Time) {
	if eligible.After(now) {
		if d.Next.IsZero() || eligible.Before(d.Next) {
			d.Next = eligible
		}
		return
	}
	isFirst := d.Action == ""
	if score := float64(p.rank) + now.Sub(eligible).Minutes()/scoreInterval.Minutes(); isFirst || score > d.Score {
		d.Score = score
	}
	if p.GracePeriod != nil && (d.GracePeriod == nil || *p.GracePeriod < *d.GracePeriod) {
		d.GracePeriod = p.GracePeriod
	}
	isStronger := p.Action == Replace && d.Action == Reboot
	isSooner := p.Action == d.Action && cmp.Or(cmp.Compare(d.priority, p.Priority), eligible.Compare(d.EligibleAt), cmp.Compare(c.Type, d.Condition.Type)) < 0
	if isFirst || isStronger || isSooner {
		d.Action, d.Condition, d.EligibleAt, d.priority = p.Action, c, eligible, p.Priority
	}
}

// LimitDrain returns the longest drain of a NodeClaim with this termination grace period, or nil for no limit of the
// policies: the shorter of both counts.
func (d NodeRepair) LimitDrain(claim *time.Duration) *time.Duration {
	if d.GracePeriod != nil && claim != nil && *claim < *d.GracePeriod {
		return claim
	}
	return d.GracePeriod
}

const (
	// maxReboots is how many reboots within rebootWindow may fail to clear a node's fault.
	maxReboots   = 2
	rebootWindow = 24 * time.Hour
)

// LimitReboots replaces the node instead of rebooting it if it was rebooted too often before. Karpenter:
// pkg/controllers/disruption/repair_history.go.
func (d NodeRepair) LimitReboots(reboots []time.Time, now time.Time) NodeRepair {
	recent := 0
	for _, at := range reboots {
		if at.After(now.Add(-rebootWindow)) {
			recent++
		}
	}
	if d.Action == Reboot && recent >= maxReboots {
		d.Action, d.Escalated = Replace, true
	}
	return d
}
