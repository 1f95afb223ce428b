package packing

// binCounts are the counts of one node, by rule, while it is filled. One value serves the whole
// packing: a node touches only the rules of its pods.
type binCounts struct {
	rules   []Rule
	counts  []RuleCount
	touched []int32
}

func newBinCounts(rules []Rule) binCounts {
	return binCounts{rules: rules, counts: make([]RuleCount, len(rules))}
}

// reset resets the counts.
func (t *binCounts) reset() {
	for _, r := range t.touched {
		t.counts[r] = RuleCount{}
	}
	t.touched = t.touched[:0]
}

// addPods counts n more pods of a pod group.
func (t *binCounts) addPods(roles []RuleRole, n int) {
	for _, m := range roles {
		if t.counts[m.Rule] == (RuleCount{}) {
			t.counts[m.Rule].Rule = m.Rule
			t.touched = append(t.touched, m.Rule)
		}
		t.counts[m.Rule].add(m, n)
	}
}

// countAllowed returns how many more pods with these roles the rules allow, at most n.
func (t *binCounts) countAllowed(roles []RuleRole, n int) int {
	for _, m := range roles {
		if n = t.rules[m.Rule].countAllowed(t.counts[m.Rule], m, n); n <= 0 {
			return 0
		}
	}
	return n
}

// add counts n more pods with a role.
func (t *RuleCount) add(m RuleRole, n int) {
	switch {
	case m.Owner && m.Member:
		t.OwnersInside += int32(n)
	case m.Owner:
		t.OwnersOutside += int32(n)
	}
	if m.Member {
		t.Members += int32(n)
	}
}

// countAllowed returns how many more pods with a role the rule allows on a node with these counts,
// at most n.
func (r Rule) countAllowed(t RuleCount, m RuleRole, n int) int {
	if r.Soft && !m.Owner {
		return n
	}
	if !m.Member {
		if m.Owner && t.Members > r.WithOther {
			return 0
		}
		return n
	}
	if t.OwnersInside > 0 || m.Owner {
		n = min(n, int(r.WithMember-t.Members))
	}
	if t.OwnersOutside > 0 {
		n = min(n, int(r.WithOther-t.Members))
	}
	return n
}
