package planning

import "slices"

// Intersect returns the intersection of both sets, with the larger minValues.
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

// intersectComplements intersects two complements: it narrows the bounds and joins the exclusions. It
// drops exclusions outside of the bounds, so that equal sets have equal fields.
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
