package planvalidator

import (
	"fmt"
)

// Rule names what a violation broke.
type Rule string

// The rules, in the order in which they are asked.
const (
	Once         Rule = "every pod exactly once"
	Sums         Rule = "sums"
	Offered      Rule = "offering"
	Priced       Rule = "price"
	Resources    Rule = "resources"
	Selectors    Rule = "node selector and affinity"
	Taints       Rule = "taints"
	HostPorts    Rule = "host ports"
	Options      Rule = "options"
	MinValues    Rule = "minimum of values"
	Limits       Rule = "limits"
	Spread       Rule = "topology spread"
	Affinity     Rule = "pod affinity"
	AntiAffinity Rule = "pod anti-affinity"
	// The rest is asked of consolidations alone.
	Budgets  Rule = "disruption budgets"
	Protects Rule = "disruption policy"
	Saves    Rule = "saving"
	Final    Rule = "final state"
)

// Violation is one thing that is wrong with a plan.
type Violation struct {
	Rule Rule
	// Subject is the pod, the node or the pool that it is about.
	Subject string
	Detail  string
}

// Error says it in one line.
func (v Violation) Error() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Subject, v.Detail) }

// report collects violations.
type report []Violation

func (r *report) add(rule Rule, subject, detail string, args ...any) {
	*r = append(*r, Violation{Rule: rule, Subject: subject, Detail: fmt.Sprintf(detail, args...)})
}
