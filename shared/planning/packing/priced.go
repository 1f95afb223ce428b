package packing

import (
	"cmp"
	"slices"
)

// priced is a column, its lowest price, and its room in the first resource, which is a fast check for
// columns that are too small.
type priced struct {
	column int
	price  float64
	room   int64
}

// byPrice returns the stage's columns, the cheapest first.
func (s *stage) byPrice() []priced {
	if s.cheapest != nil {
		return s.cheapest
	}
	s.cheapest = make([]priced, 0, len(s.columns))
	for _, k := range s.columns {
		c := &s.p.problem.Columns[k]
		s.cheapest = append(s.cheapest, priced{k, s.p.cost(c, c.planes), c.Room[0]})
	}
	slices.SortFunc(s.cheapest, func(a, b priced) int {
		if a.price != b.price {
			return cmp.Compare(a.price, b.price)
		}
		return cmp.Compare(a.column, b.column)
	})
	return s.cheapest
}
