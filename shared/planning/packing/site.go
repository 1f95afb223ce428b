package packing

import "slices"

// site is a node that pods are put on one after the other: one that exists, or a
// bin. It remembers what it holds of each rule, so that asking costs no recount.
type site struct {
	tallies []Tally
	// counted is false for a bin of which the tallies are still to be made.
	counted bool
}

func (s *site) tally(rule int32) Tally {
	for _, t := range s.tallies {
		if t.Rule == rule {
			return t
		}
	}
	return Tally{Rule: rule}
}

// admits is how many more pods with these marks may join, n at most.
func (s *site) admits(rules []Rule, lot *Lot, n int) int {
	for _, m := range lot.Marks {
		n = rules[m.Rule].admits(s.tally(m.Rule), m, n)
	}
	return max(0, n)
}

// beside reports whether every rule that a lot must stand beside has a member here.
func (s *site) beside(lot *Lot) bool {
	return !slices.ContainsFunc(lot.Beside, func(r int32) bool { return s.tally(r).Members == 0 })
}

func (s *site) join(marks []Mark, n int) {
	for _, m := range marks {
		at := slices.IndexFunc(s.tallies, func(t Tally) bool { return t.Rule == m.Rule })
		if at < 0 {
			s.tallies = append(s.tallies, Tally{Rule: m.Rule})
			at = len(s.tallies) - 1
		}
		s.tallies[at].count(m, n)
	}
}

// times is how often need goes into room, limit at most. It divides only where it
// must, as most needs that are asked about do not fit, or are of one pod.
func times(need, room []int64, limit int) int {
	if limit <= 0 {
		return 0
	}
	for r, amount := range need {
		switch {
		case room[r] < 0 || amount > room[r]:
			return 0
		case amount > 0 && limit > 1:
			limit = int(min(room[r]/amount, int64(limit)))
		}
	}
	return limit
}
