package policy

import "errors"

const (
	budgetFamily     = "joist.sh/budget-"
	expirationFamily = "joist.sh/expiration"
	driftFamily      = "joist.sh/drift-"
)

// ReadBudgets reads what is asked of budgets, and nothing else: what is wrong with other
// annotations does not hold up what budgets allow.
func ReadBudgets(annotations map[string]string) (Budgets, error) {
	r := reader{annotations: annotations}
	b := r.budgets()
	r.strangers(budgetFamily)
	if len(r.problems) > 0 {
		return Budgets{}, errors.Join(r.problems...)
	}
	return b, nil
}

func (r *reader) budgets() Budgets {
	return Budgets{Zone: r.zone(BudgetTimeZone), PerHour: r.share(BudgetPerHour)}
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

// ReadDrift reads how drift goes, and nothing else: a threshold that is misspelt does
// not hold up a new image.
func ReadDrift(annotations map[string]string) (Drift, error) {
	r := reader{annotations: annotations}
	d := r.drift()
	r.strangers(driftFamily)
	if len(r.problems) > 0 {
		return Drift{}, errors.Join(r.problems...)
	}
	return d, nil
}

func (r *reader) drift() Drift {
	return Drift{Canary: r.share(DriftCanary), Bake: r.duration(DriftBake), Resume: r.time(DriftResume)}
}

// Waves reports whether drift goes in waves, and halts when one of them fails.
func (d Drift) Waves() bool { return d.Canary.Set() || d.Bake != 0 }

func (r *reader) expiring() Expiring {
	return Expiring{Graceful: r.word(Expiration, "forceful", "graceful") == "graceful", Window: r.duration(ExpirationWindow)}
}
