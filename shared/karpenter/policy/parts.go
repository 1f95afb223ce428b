package policy

import "errors"

const (
	budgetPrefix     = "joist.sh/budget-"
	expirationPrefix = "joist.sh/expiration"
	driftPrefix      = "joist.sh/drift-"
)

// readPart reads the annotations with one prefix.
func readPart[T any](annotations map[string]string, prefix string, read func(*reader) T) (part T, err error) {
	r := reader{annotations: annotations}
	found := read(&r)
	r.reportUnknown(prefix)
	if len(r.problems) > 0 {
		return part, errors.Join(r.problems...)
	}
	return found, nil
}

// ReadBudgets reads only the budget annotations: errors in other annotations do not affect budgets.
func ReadBudgets(annotations map[string]string) (Budgets, error) {
	return readPart(annotations, budgetPrefix, (*reader).readBudgets)
}

func (r *reader) readBudgets() Budgets {
	return Budgets{Zone: r.readZone(BudgetTimeZone), PerHour: r.readShare(BudgetPerHour)}
}

// ReadExpiration reads only the expiration annotations: a misspelt threshold does not cause forceful expiration.
func ReadExpiration(annotations map[string]string) (ExpirationPolicy, error) {
	return readPart(annotations, expirationPrefix, (*reader).readExpiration)
}

// ReadDrift reads only the drift annotations: a misspelt threshold does not block a new image.
func ReadDrift(annotations map[string]string) (Drift, error) {
	return readPart(annotations, driftPrefix, (*reader).readDrift)
}

func (r *reader) readDrift() Drift {
	return Drift{Canary: r.readShare(DriftCanary), Bake: r.readDuration(DriftBake), Resume: r.readTime(DriftResume)}
}

// HasWaves reports whether drift proceeds in waves, and stops if one of them fails.
func (d Drift) HasWaves() bool { return d.Canary.IsSet() || d.Bake != 0 }

func (r *reader) readExpiration() ExpirationPolicy {
	return ExpirationPolicy{Graceful: r.readWord(Expiration, "forceful", "graceful") == "graceful", Window: r.readDuration(ExpirationWindow)}
}

// ReadConsolidation reads only the consolidation thresholds: errors in other annotations do not block consolidation.
func ReadConsolidation(annotations map[string]string) (Consolidation, error) {
	return readPart(annotations, consolidationPrefix, (*reader).readConsolidation)
}

func (r *reader) readConsolidation() Consolidation {
	return Consolidation{
		MinSaving: r.readDollars(MinSaving), MinSavingPart: r.readPercent(MinSavingPercent),
		Payback: r.readDuration(Payback), EvictionCost: r.readDollars(EvictionCost),
		Cooldown: r.readDuration(Cooldown), EvictionsPerHour: r.readShare(EvictionsPerHour),
	}
}
