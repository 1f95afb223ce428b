// Package policy is what a NodePool asks of Joist beyond what Karpenter's spec can
// say. It stands in annotations of the NodePool, as the CRDs stay as they are:
// nothing of it is on unless somebody writes it, and Karpenter ignores it.
//
// What cannot be read is an error that names the annotation and the remedy. A pool
// with such an error has no policy: who meant to hold something back is not served
// by going on without it, so its readers leave alone what it would have held back.
package policy

import (
	"errors"
	"time"
)

// Annotations of a NodePool.
const (
	// MinSaving is what consolidation must save at least, in US dollars an hour: "0.05".
	MinSaving = "joist.sh/consolidation-min-saving"
	// MinSavingPercent is what it must save at least of what the nodes that go cost: "10%".
	MinSavingPercent = "joist.sh/consolidation-min-saving-percent"
	// Payback is how soon a consolidation must have earned what it costs: "2h".
	Payback = "joist.sh/consolidation-payback"
	// EvictionCost is what moving one pod counts for in that, in US dollars: "0.001".
	EvictionCost = "joist.sh/consolidation-eviction-cost"
	// Cooldown is for how long what consolidation moved is not moved again: "1h".
	Cooldown = "joist.sh/consolidation-cooldown"
	// EvictionsPerHour is how many pods of one workload consolidation may move in any
	// hour, as a number or as a part of the workload's pods: "5", "20%".
	EvictionsPerHour = "joist.sh/consolidation-evictions-per-hour"
	// Expiration is "forceful", as upstream, or "graceful".
	Expiration = "joist.sh/expiration"
	// ExpirationWindow is how long before expireAfter nodes begin to be replaced: "24h".
	ExpirationWindow = "joist.sh/expiration-window"
	// BudgetTimeZone is in which time zone the schedules of budgets are read, by its
	// IANA name: "Europe/Berlin".
	BudgetTimeZone = "joist.sh/budget-time-zone"
	// BudgetPerHour is how many nodes may begin to go within any hour, for whatever reason
	// budgets know, as a number or as a part of the pool's nodes: "5", "10%".
	BudgetPerHour = "joist.sh/budget-per-hour"
	// DriftCanary is how many nodes are replaced for drift before the others, as a
	// number or as a part of the pool's nodes: "1", "10%".
	DriftCanary = "joist.sh/drift-canary"
	// DriftBake is how long these must have been initialized by then: "30m".
	DriftBake = "joist.sh/drift-bake"
	// DriftResume is a time, as RFC 3339 has it: what failed before does not hold drift
	// up any more.
	DriftResume = "joist.sh/drift-resume"
	// PriceLimit is what the nodes of the pool may cost together, in US dollars an
	// hour: "25".
	PriceLimit = "joist.sh/price-limit"
	// Limits says which nodes count against spec.limits: "karpenter" counts those that
	// stay, and "strict" also those that are being removed or replaced.
	Limits = "joist.sh/limits"
)

// Policy is what the annotations of one NodePool say. The zero value asks nothing.
type Policy struct {
	Consolidation Consolidation
	Expiration    ExpirationPolicy
	Drift         Drift
	Budgets       Budgets
	// PriceLimit is in US dollars an hour; nil is no limit.
	PriceLimit *float64
	// StrictLimits is whether nodes count against spec.limits until they are gone.
	StrictLimits bool
}

// Consolidation is what holds consolidation back.
type Consolidation struct {
	// MinSaving is in US dollars an hour, MinSavingPart between 0 and 1.
	MinSaving, MinSavingPart float64
	Payback                  time.Duration
	EvictionCost             float64
	Cooldown                 time.Duration
	EvictionsPerHour         Share
}

// ExpirationPolicy is how nodes end that have got too old.
type ExpirationPolicy struct {
	Graceful bool
	Window   time.Duration
}

// Budgets is what budgets cannot say themselves.
type Budgets struct {
	// Zone is where their schedules are read; nil is UTC.
	Zone *time.Location
	// PerHour is how many nodes may begin to go within any hour.
	PerHour Share
}

// Drift is how nodes are replaced that are not what is asked for.
type Drift struct {
	Canary Share
	Bake   time.Duration
	Resume time.Time
}

// HasPolicy reports whether a NodePool with these annotations has a policy, be it readable
// or not.
func HasPolicy(annotations map[string]string) bool {
	r := reader{annotations: annotations}
	r.readPolicy()
	return r.hasPolicy
}

// Read reads the annotations of a NodePool. All that is wrong with them is told.
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
