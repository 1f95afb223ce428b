package policy

import (
	"errors"
	"time"
)

// ZoneOf reads the time zone of budgets alone, so that what is wrong with other
// annotations does not hold up what budgets allow. Nil is UTC.
func ZoneOf(annotations map[string]string) (*time.Location, error) {
	r := reader{annotations: annotations}
	zone := r.zone(BudgetTimeZone)
	return zone, errors.Join(r.problems...)
}
