package packing

import "slices"

// site is a node, existing or new, with its counts for the rules, so that they need not be recounted.
type site struct {
	tallies []Tally
	// counted is false for a bin whose tallies are not counted yet.
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

// admits returns how many more of the lot's pods the rules allow, at most n.
func (s *site) admits(rules []Rule, lot *Lot, n int) int {
	for _, m := range lot.Marks {
		n = rules[m.Rule].admits(s.tally(m.Rule), m, n)
	}
	return max(0, n)
}

// beside reports whether the node has a member of every rule in the lot's Beside.
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

// times returns how often need fits into room, at most limit times. It divides only if needed, because
// most calls are for needs that do not fit or for one pod.
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
