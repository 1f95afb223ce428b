// Package policy reads settings of a NodePool that Karpenter's spec does not have. They are annotations, because the
// CRDs are Karpenter's: all of them are off by default, and Karpenter ignores them.
//
// An invalid annotation is an error that names the annotation and the fix. A pool with such an error has no policy:
// the annotation was meant to limit something, so its readers do not do what it might have limited.
package policy

import (
	"errors"
	"time"
)

// Annotations of a NodePool.
const (
	// MinSaving is the minimum saving of a consolidation, in US dollars per hour: "0.05".
	MinSaving = "joist.sh/consolidation-min-saving"
	// MinSavingPercent is the minimum saving as a part of the price of the removed nodes: "10%".
	MinSavingPercent = "joist.sh/consolidation-min-saving-percent"
	// Payback is the time within which a consolidation must save more than it costs: "2h".
	Payback = "joist.sh/consolidation-payback"
	// EvictionCost is the cost of moving one pod in that calculation, in US dollars: "0.001".
	EvictionCost = "joist.sh/consolidation-eviction-cost"
	// Cooldown is how long a pod that consolidation moved is not moved again: "1h".
	Cooldown = "joist.sh/consolidation-cooldown"
	// EvictionsPerHour is how many pods of one workload consolidation may move in any hour, as a number or as a part
	// of the workload's pods: "5", "20%".
	EvictionsPerHour = "joist.sh/consolidation-evictions-per-hour"
	// Expiration is "forceful", as in Karpenter, or "graceful".
	Expiration = "joist.sh/expiration"
	// ExpirationWindow is how long before expireAfter the replacement of nodes begins: "24h".
	ExpirationWindow = "joist.sh/expiration-window"
	// BudgetTimeZone is the time zone of the budgets' schedules, by its IANA name: "Europe/Berlin".
	BudgetTimeZone = "joist.sh/budget-time-zone"
	// BudgetPerHour is how many nodes may start to be disrupted within any hour, for all reasons of budgets together,
	// as a number or as a part of the pool's nodes: "5", "10%".
	BudgetPerHour = "joist.sh/budget-per-hour"
	// DriftCanary is how many drifted nodes are replaced before the others, as a number or as a part of the pool's
	// nodes: "1", "10%".
	DriftCanary = "joist.sh/drift-canary"
	// DriftBake is how long those replacements must have been initialized by then: "30m".
	DriftBake = "joist.sh/drift-bake"
	// DriftResume is a time in RFC 3339: earlier failures no longer stop drift.
	DriftResume = "joist.sh/drift-resume"
	// PriceLimit is the maximum total price of the pool's nodes, in US dollars per hour: "25".
	PriceLimit = "joist.sh/price-limit"
	// Limits defines which nodes count against spec.limits: "karpenter" counts nodes that stay, and "strict" also
	// nodes that are being removed or replaced.
	Limits = "joist.sh/limits"
)

// Policy has the settings of one NodePool. The zero value has none.
type Policy struct {
	Consolidation Consolidation
	Expiration    ExpirationPolicy
	Drift         Drift
	Budgets       Budgets
	// PriceLimit is in US dollars per hour; nil is no limit.
	PriceLimit *float64
	// StrictLimits makes nodes count against spec.limits until they are gone.
	StrictLimits bool
}

// Consolidation has the thresholds and limits of consolidation.
type Consolidation struct {
	// MinSaving is in US dollars per hour, MinSavingPart between 0 and 1.
	MinSaving, MinSavingPart float64
	Payback                  time.Duration
	EvictionCost             float64
	Cooldown                 time.Duration
	EvictionsPerHour         Share
}

// ExpirationPolicy defines how expired nodes are removed.
type ExpirationPolicy struct {
	Graceful bool
	Window   time.Duration
}

// Budgets has settings that a budget's spec does not have.
type Budgets struct {
	// Zone is the time zone of the schedules; nil is UTC.
	Zone *time.Location
	// PerHour is how many nodes may start to be disrupted within any hour.
	PerHour Share
}

// Drift defines how drifted nodes are replaced.
type Drift struct {
	Canary Share
	Bake   time.Duration
	Resume time.Time
}

// HasPolicy reports whether a NodePool with these annotations has a policy, valid or not.
func HasPolicy(annotations map[string]string) bool {
	r := reader{annotations: annotations}
	r.readPolicy()
	return r.hasPolicy
}

// Read reads the annotations of a NodePool. The error contains all problems.
func Read(annotations map[string]string) (Policy, error) {
	r := reader{annotations: annotations}
	p := r.readPolicy()
	if len(r.problems) > 0 {
		return Policy{}, errors.Join(r.problems...)
	}
	return p, nil
}

func (r *reader) readPolicy() Policy {
	p := Policy{
		Consolidation: r.readConsolidation(),
		Expiration:    r.readExpiration(),
		Drift:         r.readDrift(),
		Budgets:       r.readBudgets(),
	}
	if _, limited := r.lookup(PriceLimit); limited {
		p.PriceLimit = new(r.readDollars(PriceLimit))
	}
	p.StrictLimits = r.readLimits()
	r.reportUnknown(prefixes...)
	return p
}

const limitsPrefix = "joist.sh/limit"

// StrictLimits reports whether nodes that are being removed or replaced count against spec.limits until they are
// gone. An invalid annotation counts as strict, because strict limits launch fewer nodes.
func StrictLimits(annotations map[string]string) bool {
	r := reader{annotations: annotations}
	strict := r.readLimits()
	r.reportUnknown(limitsPrefix)
	return strict || len(r.problems) > 0
}

func (r *reader) readLimits() bool { return r.readWord(Limits, "karpenter", "strict") == "strict" }

// ReadPriceLimit reads only PriceLimit, in US dollars per hour; nil is no limit. Errors in other annotations must
// neither raise the limit nor block launches.
func ReadPriceLimit(annotations map[string]string) (*float64, error) {
	text, limited := annotations[PriceLimit]
	if !limited {
		return nil, nil
	}
	p, err := Read(map[string]string{PriceLimit: text})
	return p.PriceLimit, err
}
