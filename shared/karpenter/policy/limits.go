package policy

const limitsPrefix = "joist.sh/limit"

// StrictLimits reports whether nodes that are being removed or replaced count against spec.limits until they are
// gone. An invalid annotation counts as strict, because strict limits launch fewer nodes.
func StrictLimits(annotations map[string]string) bool {
	r := reader{annotations: annotations}
	strict := r.readLimits()
	r.reportUnknown(limitsPrefix)
	return strict || len(r.problems) > 0
}

func (r *reader) readLimits() bool { return r.readWord(Limits, "karpenter", "strict") == "strict" }
