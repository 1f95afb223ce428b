package sim

import (
	"slices"
	"time"
)

// delayBounds are the bounds of each attacker.
var delayBounds = map[string]delayBound{
	"planner": {0, 20 * time.Minute}, "disruption": {10 * time.Minute, 20 * time.Minute}, "interruption": {10 * time.Minute, 20 * time.Minute}, "catalog": {0, 20 * time.Minute},
	"launcher": {0, 20 * time.Minute}, "watcher": {0, 20 * time.Minute}, "lifecycle": {0, 20 * time.Minute}, hostileTenant: {10 * time.Minute, 20 * time.Minute},
}

// exceptions are the promises that do not hold against an attacker: the blast radius of each.
var exceptions = map[string][]string{}

// promised returns the violations of promises that hold against the attacker.
func (h *hostileChecker) promised(all []Violation) []Violation {
	return slices.DeleteFunc(slices.Clone(all), func(v Violation) bool { return slices.Contains(exceptions[h.name], v.Promise) })
}
