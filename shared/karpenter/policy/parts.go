package policy

import "errors"

const (
	budgetPrefix     = "joist.sh/budget-"
	expirationPrefix = "joist.sh/expiration"
	driftPrefix      = "joist.sh/drift-"
)

// ReadBudgets reads what is asked of budgets, and nothing else: what is wrong with other
// annotations does not hold up what budgets allow.
func ReadBudgets(annotations map[string]string) (Budgets, error) {
	r := reader{annotations: annotations}
	b := r.readBudgets()
	r.reportUnknown(budgetPrefix)
	if len(r.problems) > 0 {
		return Budgets{}, errors.Join(r.problems...)
	}
	return b, nil
}

func (r *reader) readBudgets() Budgets {
	return Budgets{Zone: r.readZone(BudgetTimeZone), PerHour: r.readShare(BudgetPerHour)}
}

// ReadExpiration reads how nodes end that have got too old, and nothing else: a
// threshold that is misspelt does not make nodes end by force.
func ReadExpiration(annotations map[string]string) (ExpirationPolicy, error) {
	r := reader{annotations: annotations}
	e := r.readExpiration()
	r.reportUnknown(expirationPrefix)
	if len(r.problems) > 0 {
		return ExpirationPolicy{}, errors.Join(r.problems...)
	}
	return e, nil
}

// ReadDrift reads how drift goes, and nothing else: a threshold that is misspelt does
// not hold up a new image.
func ReadDrift(annotations map[string]string) (Drift, error) {
	r := reader{annotations: annotations}
	d := r.readDrift()
	r.reportUnknown(driftPrefix)
	if len(r.problems) > 0 {
		return Drift{}, errors.Join(r.problems...)
	}
	return d, nil
}

func (r *reader) readDrift() Drift {
	return Drift{Canary: r.readShare(DriftCanary), Bake: r.readDuration(DriftBake), Resume: r.readTime(DriftResume)}
}

// HasWaves reports whether drift goes in waves, and halts when one of them fails.
func (d Drift) HasWaves() bool { return d.Canary.IsSet() || d.Bake != 0 }

func (r *reader) readExpiration() ExpirationPolicy {
	return ExpirationPolicy{Graceful: r.readWord(Expiration, "forceful", "graceful") == "graceful", Window: r.readDuration(ExpirationWindow)}
}
