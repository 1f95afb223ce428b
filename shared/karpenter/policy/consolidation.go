package policy

import "errors"

// ReadConsolidation reads only the consolidation thresholds: errors in other annotations do not block consolidation.
func ReadConsolidation(annotations map[string]string) (Consolidation, error) {
	r := reader{annotations: annotations}
	c := r.readConsolidation()
	r.reportUnknown(consolidationPrefix)
	if len(r.problems) > 0 {
		return Consolidation{}, errors.Join(r.problems...)
	}
	return c, nil
}

func (r *reader) readConsolidation() Consolidation {
	return Consolidation{
		MinSaving: r.readDollars(MinSaving), MinSavingPart: r.readPercent(MinSavingPercent),
		Payback: r.readDuration(Payback), EvictionCost: r.readDollars(EvictionCost),
		Cooldown: r.readDuration(Cooldown), EvictionsPerHour: r.readShare(EvictionsPerHour),
	}
}
