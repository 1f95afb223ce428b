package policy

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
