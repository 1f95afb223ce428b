package watcher

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// unsyncedAfter is how long a cache may take before it is said that nothing is
	// planned, and unsyncedEvery how often it is said again.
	unsyncedAfter = 30 * time.Second
	unsyncedEvery = 10 * time.Second
)

// syncing is since when the cache is not synced, and when that was told last.
type syncing struct{ from, told time.Time }

// check is an error when it is time to tell that the cache is not synced.
func (s *syncing) check(synced bool, now time.Time) error {
	if synced {
		*s = syncing{}
		return nil
	}
	if s.from.IsZero() {
		s.from = now
	}
	waited := now.Sub(s.from)
	if waited < unsyncedAfter || now.Sub(s.told) < unsyncedEvery {
		return nil
	}
	s.told = now
	return fault.F("waiting for the watches", fault.Retry, "not every kind has been listed after %s, and nothing is planned before", waited.Round(time.Second)).
		WithHint("see whether the API server answers, and whether the rights of the chart (templates/rights-watcher.yaml) are given")
}
