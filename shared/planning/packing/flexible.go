package packing

import "slices"

// flexible reports whether enough columns, including this one, could hold everything that fits into
// this one.
func (s *stage) flexible(k int, planes uint64) bool {
	c := &s.p.problem.Columns[k]
	if c.Flexible <= 1 {
		return true
	}
	count := 0
	for _, other := range slices.Backward(s.byPrice()) { // The most expensive are the largest.
		if other.room < c.Room[0] {
			continue
		}
		o := &s.p.problem.Columns[other.column]
		if o.Pool != c.Pool || o.planes&planes == 0 || !fits(c.Room, o.Room) || !s.p.moderateLimits(c, o, nil) {
			continue
		}
		if count++; count >= c.Flexible {
			return true
		}
	}
	return false
}
