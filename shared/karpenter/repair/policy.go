// Package repair decides whether a node is unhealthy, since when, and what repairs it. It is pure: it reads the
// conditions of one node and a time.
//
// The invariants:
//   - A set of policies is used only if it is valid as a whole.
//   - A policy without a reason expression is the fallback. It applies only if no other policy of the same condition
//     and status matches the reason.
//   - The age of a condition is that of its status: another reason does not restart the toleration.
//
// Karpenter: pkg/controllers/node/health/policy.go.
package repair

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RepairAction repairs a node.
type RepairAction string

// The actions, with Karpenter's names.
const (
	Replace RepairAction = "ReplaceNode"
	Reboot  RepairAction = "RebootNode"
)

// Policy is an unhealthy condition of a node, and its repair.
type Policy struct {
	Condition corev1.NodeConditionType `json:"condition"`
	Status    corev1.ConditionStatus   `json:"status"`
	// Reason is a Go regular expression that matches a part of the condition's reason. The policy with an empty one is
	// the fallback.
	Reason string `json:"reason,omitempty"`
	// Toleration is how long a node may have the condition.
	Toleration time.Duration `json:"toleration"`
	// GracePeriod limits the drain: 0 skips it, and nil leaves it to the NodeClaim.
	GracePeriod *time.Duration `json:"gracePeriod,omitempty"`
	// Priority is from 0 to 100. Nodes with a higher one are repaired first.
	Priority int          `json:"priority,omitempty"`
	Action   RepairAction `json:"action"`
}

// PolicySet defines which nodes are unhealthy, and how many unhealthy nodes stop node repair.
type PolicySet struct {
	Policies []Policy `json:"policies"`
	// Unhealthy is how many nodes of a NodePool may be unhealthy. A percentage rounds up.
	Unhealthy intstr.IntOrString `json:"unhealthy"`
	// UnhealthyInZone is the same limit for the nodes of a zone in all NodePools; nil for no limit. Karpenter has no
	// such limit.
	UnhealthyInZone *intstr.IntOrString `json:"unhealthyInZone,omitempty"`
	// TerminateFirst is Karpenter's feature gate TerminateFirstRepair: a node may be terminated before its replacement
	// is launched, if that cannot be launched first.
	TerminateFirst bool `json:"terminateFirst,omitempty"`
}

// Exceeds reports whether more of the nodes are unhealthy than the limit allows.
func Exceeds(limit intstr.IntOrString, unhealthy, nodes int) bool {
	allowed, err := intstr.GetScaledValueFromIntOrPercent(&limit, nodes, true)
	return err != nil || unhealthy > allowed
}

// Matcher evaluates a valid set of policies.
type Matcher struct {
	Settings PolicySet
	// policies are those of one condition and status. A condition of which only the fallback is a policy has an empty
	// list.
	policies map[conditionKey][]compiledPolicy
	fallback compiledPolicy
}

type conditionKey struct {
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
}

type compiledPolicy struct {
	Policy
	reason *regexp.Regexp
	// rank is how many different priorities of the set are lower.
	rank int
}

// NewMatcher returns the matcher of the settings, or all problems of their policies with Karpenter's texts.
func NewMatcher(s PolicySet) (*Matcher, error) {
	if len(s.Policies) == 0 {
		return nil, errors.New("node repair requires the cloud provider to define RepairPolicies, but it defines none")
	}
	m := &Matcher{Settings: s, policies: map[conditionKey][]compiledPolicy{}}
	var priorities []int
	for _, p := range s.Policies {
		priorities = append(priorities, p.Priority)
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	var problems []error
	fallbacks := 0
	for i, p := range s.Policies {
		compiled, err := compilePolicy(p)
		if err != nil {
			problems = append(problems, fmt.Errorf("policy %d (%s=%s): %w", i, p.Condition, p.Status, err))
		}
		compiled.rank, _ = slices.BinarySearch(priorities, p.Priority)
		key := conditionKey{p.Condition, p.Status}
		specific := m.policies[key]
		if p.Reason == "" {
			fallbacks++
			m.fallback = compiled
		} else {
			specific = append(specific, compiled)
		}
		m.policies[key] = specific
	}
	switch {
	case fallbacks == 0:
		problems = append(problems, errors.New("repair policy set must define one default fallback"))
	case fallbacks > 1:
		problems = append(problems, fmt.Errorf("repair policy set has multiple default fallbacks: %d policies have no reason expression", fallbacks))
	case m.fallback.Action != Replace:
		problems = append(problems, fmt.Errorf("default fallback policy must use action %q", Replace))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("node repair requires valid RepairPolicies, %w", err)
	}
	return m, nil
}

// compilePolicy returns the policy with its compiled expression, and all of its problems.
func compilePolicy(p Policy) (compiledPolicy, error) {
	out := compiledPolicy{Policy: p}
	var problems []error
	refuse := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	refuse(p.Condition == "", "the condition type is empty")
	refuse(!slices.Contains([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}, p.Status),
		"unknown condition status %q (use True, False or Unknown)", p.Status)
	refuse(p.Toleration < 0, "the toleration %s is negative", p.Toleration)
	refuse(p.GracePeriod != nil && *p.GracePeriod < 0, "the termination grace period is negative")
	refuse(p.Priority < 0 || p.Priority > 100, "priority %d is outside the range from 0 to 100", p.Priority)
	refuse(p.Action != Replace && p.Action != Reboot, "unsupported action %q (use %s or %s)", p.Action, Replace, Reboot)
	if p.Reason != "" {
		var err error
		out.reason, err = regexp.Compile(p.Reason)
		refuse(err != nil, "invalid reason expression: %w", err)
	}
	return out, errors.Join(problems...)
}
