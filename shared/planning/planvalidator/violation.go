package planvalidator

import (
	"fmt"
)

// Rule names a checked rule.
type Rule string

// The rules in the order of the checks.
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
	PriceLimits  Rule = "price limits"
	Spread       Rule = "topology spread"
	Affinity     Rule = "pod affinity"
	AntiAffinity Rule = "pod anti-affinity"
	Devices      Rule = "devices"
	// These apply to consolidations only.
	Budgets  Rule = "disruption budgets"
	Protects Rule = "disruption policy"
	Saves    Rule = "saving"
	Final    Rule = "final state"
)

// Violation is one broken rule.
type Violation struct {
	Rule Rule
	// Subject is the pod, node or NodePool that breaks the rule.
	Subject string
	Detail  string
}

// Error returns the violation as one line.
func (v Violation) Error() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Subject, v.Detail) }

// report collects violations.
type report []Violation

func (r *report) add(rule Rule, subject, detail string, args ...any) {
	*r = append(*r, Violation{Rule: rule, Subject: subject, Detail: fmt.Sprintf(detail, args...)})
}
