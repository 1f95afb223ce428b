package policy

import "errors"

// ReadConsolidation reads what holds consolidation back, and nothing else: whatever is
// wrong with other annotations does not keep nodes that these would have let go.
func ReadConsolidation(annotations map[string]string) (Consolidation, error) {
	r := reader{annotations: annotations}
	c := r.consolidation()
	r.strangers(consolidationFamily)
	if len(r.problems) > 0 {
		return Consolidation{}, errors.Join(r.problems...)
	}
	return c, nil
}

func (r *reader) consolidation() Consolidation {
	return Consolidation{
		MinSaving: r.dollars(MinSaving), MinSavingPart: r.percent(MinSavingPercent),
		Payback: r.duration(Payback), EvictionCost: r.dollars(EvictionCost),
		Cooldown: r.duration(Cooldown), EvictionsPerHour: r.share(EvictionsPerHour),
	}
}
