package packing

import "slices"

// site is a node, existing or new, with its counts for the rules, so that they need not be recounted.
type site struct {
	counts []RuleCount
	// counted is false for a bin whose pods are not counted yet.
	counted bool
}

func (s *site) countOf(rule int32) RuleCount {
	for _, t := range s.counts {
		if t.Rule == rule {
			return t
		}
	}
	return RuleCount{Rule: rule}
}

// limitByRules returns how many more of the pod group's pods the rules allow, at most n.
func (s *site) limitByRules(rules []Rule, group *Group, n int) int {
	for _, m := range group.Roles {
		n = rules[m.Rule].countAllowed(s.countOf(m.Rule), m, n)
	}
	return max(0, n)
}

// hasAffinityPods reports whether the node has a member of every rule in the pod group's
// AffinityRules.
func (s *site) hasAffinityPods(group *Group) bool {
	return !slices.ContainsFunc(group.AffinityRules, func(r int32) bool { return s.countOf(r).Members == 0 })
}

func (s *site) addPods(roles []RuleRole, n int) {
	for _, m := range roles {
		at := slices.IndexFunc(s.counts, func(t RuleCount) bool { return t.Rule == m.Rule })
		if at < 0 {
			s.counts = append(s.counts, RuleCount{Rule: m.Rule})
			at = len(s.counts) - 1
		}
		s.counts[at].add(m, n)
	}
}

// countFits returns how often need fits into the free capacity, at most limit times. It divides
// only if needed, because most calls are for needs that do not fit or for one pod.
func countFits(need, free []int64, limit int) int {
	if limit <= 0 {
		return 0
	}
	for r, amount := range need {
		switch {
		case free[r] < 0 || amount > free[r]:
			return 0
		case amount > 0 && limit > 1:
			limit = int(min(free[r]/amount, int64(limit)))
		}
	}
	return limit
}
