package policy

import "errors"

const (
	budgetPrefix     = "joist.sh/budget-"
	expirationPrefix = "joist.sh/expiration"
	driftPrefix      = "joist.sh/drift-"
)

// ReadBudgets reads only the budget annotations: errors in other annotations do not affect budgets.
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

// ReadExpiration reads only the expiration annotations: a misspelt threshold does not cause forceful expiration.
func ReadExpiration(annotations map[string]string) (ExpirationPolicy, error) {
	r := reader{annotations: annotations}
	e := r.readExpiration()
	r.reportUnknown(expirationPrefix)
	if len(r.problems) > 0 {
		return ExpirationPolicy{}, errors.Join(r.problems...)
	}
	return e, nil
}

// ReadDrift reads only the drift annotations: a misspelt threshold does not block a new image.
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

// HasWaves reports whether drift proceeds in waves, and stops if one of them fails.
func (d Drift) HasWaves() bool { return d.Canary.IsSet() || d.Bake != 0 }

func (r *reader) readExpiration() ExpirationPolicy {
	return ExpirationPolicy{Graceful: r.readWord(Expiration, "forceful", "graceful") == "graceful", Window: r.readDuration(ExpirationWindow)}
}
