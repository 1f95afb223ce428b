package sim

import (
	"slices"
	"time"
)

// HostilePromise is one invariant of the page threat-model.md, and where it ends.
type HostilePromise struct {
	Name string
	// Checker is the function that checks it.
	Checker string
	// Except are the attackers against whom it does not hold: their blast radius.
	Except []string
}

// HostilePromises lists the invariants that hostile seeds check, with the blast radius of each attacker.
var HostilePromises = []HostilePromise{
	{promiseForgery, "checkForgery", nil},
	{promiseNeighbour, "checkNow", nil},
	{promiseLaunches, "checkNow", []string{"catalog", "lifecycle"}},
	{promiseLimits, "checkLimits", []string{"lifecycle"}},
	{promiseRemovals, "observeWrite", []string{"interruption", "lifecycle"}},
	{promiseUnproven, "recordUnproven", []string{"lifecycle"}},
	{promiseTermination, "checkTermination", []string{"lifecycle"}},
	{promiseOwners, "checkOwners", nil},
	{promiseDelay, "checkDelays", nil},
	{promiseRecovery, "checkRecovery", nil},
	{promiseCrash, "checkCrash", nil},
	{promiseQueues, "checkQueues", nil},
	{promiseRejections, "checkRejections", nil},
}

// DelayBound is how long an attacker may delay the pods of others.
type DelayBound struct {
	// During is the longest time that a pod is pending at any time; 0 if pods may be pending as long as the attack lasts,
	// because the service that is taken over takes part in every launch.
	During time.Duration
	// After is the time from the end of the attack to a complete recovery.
	After time.Duration
}

// unlaunchedBound is how long after the attack a deleted NodeClaim may remain that never had an instance. The launcher refuses a request that
// was planned with a false catalogue. The NodeClaim is deleted after 5 minutes, as in Karpenter, and removed when inventories have proved that
// no instance belongs to it. No pod waits for that.
const unlaunchedBound = 20 * time.Minute

// DelayBounds are the bounds of each attacker.
var DelayBounds = map[string]DelayBound{
	"planner": {0, 10 * time.Minute}, "disruption": {2 * time.Minute, 10 * time.Minute}, "interruption": {5 * time.Minute, 10 * time.Minute}, "catalog": {0, 10 * time.Minute},
	"launcher": {0, 10 * time.Minute}, "watcher": {0, 10 * time.Minute}, "lifecycle": {0, 10 * time.Minute}, hostileTenant: {2 * time.Minute, 10 * time.Minute},
}

// engineExceptions are promises of the simulator about genuine services that an attacker can break without breaking one
// of HostilePromises: a node that counts as gone wrongly loses its NodeClaim before its instance is terminated.
var engineExceptions = map[string][]string{
	"interruption": {"a NodeClaim outlives its instance"},
	"catalog":      {"a NodeClaim outlives its instance"},
	"watcher":      {"the outbox sequence never decreases"},
}

// dropExceptions returns the violations of promises that hold against the attacker.
func (h *hostileChecker) dropExceptions(all []Violation) []Violation {
	return slices.DeleteFunc(slices.Clone(all), func(v Violation) bool {
		for _, p := range HostilePromises {
			if p.Name == v.Promise {
				return slices.Contains(p.Except, h.name)
			}
		}
		// lifecycle writes NodeClaims, Nodes and pods, about which all promises of the simulator are.
		return h.name == "lifecycle" || slices.Contains(engineExceptions[h.name], v.Promise)
	})
}
