package policy

import (
	"errors"
	"time"
)

const (
	budgetFamily     = "joist.sh/budget-"
	expirationFamily = "joist.sh/expiration"
)

// ReadZone reads the time zone of budgets, and nothing else: what is wrong with other
// annotations does not hold up what budgets allow. Nil is UTC.
func ReadZone(annotations map[string]string) (*time.Location, error) {
	r := reader{annotations: annotations}
	zone := r.zone(BudgetTimeZone)
	r.strangers(budgetFamily)
	return zone, errors.Join(r.problems...)
}

// ReadExpiration reads how nodes end that have got too old, and nothing else: a
// threshold that is misspelt does not make nodes end by force.
func ReadExpiration(annotations map[string]string) (Expiring, error) {
	r := reader{annotations: annotations}
	e := r.expiring()
	r.strangers(expirationFamily)
	if len(r.problems) > 0 {
		return Expiring{}, errors.Join(r.problems...)
	}
	return e, nil
}

func (r *reader) expiring() Expiring {
	return Expiring{Graceful: r.word(Expiration, "forceful", "graceful") == "graceful", Window: r.duration(ExpirationWindow)}
}
