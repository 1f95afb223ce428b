package planning

import "slices"

// Intersect is the set of what both sets hold. The larger minValues counts.
func (v Values) Intersect(w Values) Values {
	out := Values{absent: v.absent && w.absent, minValues: max(v.minValues, w.minValues)}
	switch {
	case !v.others:
		out.listed = slices.DeleteFunc(slices.Clone(v.listed), func(s string) bool { return !w.Has(s) })
	case !w.others:
		out.listed = slices.DeleteFunc(slices.Clone(w.listed), func(s string) bool { return !v.Has(s) })
	default:
		return out.intersectComplements(v, w)
	}
	return out
}

// intersectComplements intersects two sets that are complements: bounds tighten, exclusions add
// up. Exclusions outside of the bounds say nothing and are left out, so that
// equal sets look equal.
func (v Values) intersectComplements(a, b Values) Values {
	v.others = true
	v.bounded = a.bounded || b.bounded
	switch {
	case a.bounded && b.bounded:
		v.least, v.most = max(a.least, b.least), min(a.most, b.most)
	case a.bounded:
		v.least, v.most = a.least, a.most
	case b.bounded:
		v.least, v.most = b.least, b.most
	}
	v.listed = SortUnique(append(slices.Clone(a.listed), b.listed...))
	v.listed = slices.DeleteFunc(v.listed, func(s string) bool { return !v.isInBounds(s) })
	return v
}
