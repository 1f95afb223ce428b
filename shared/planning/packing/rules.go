package packing

// tallies are the counts of one node, by rule, while it is filled. One value serves the whole packing:
// a node touches only the rules of its pods.
type tallies struct {
	rules   []Rule
	counts  []Tally
	touched []int32
}

func newTallies(rules []Rule) tallies {
	return tallies{rules: rules, counts: make([]Tally, len(rules))}
}

// clear resets the counts.
func (t *tallies) clear() {
	for _, r := range t.touched {
		t.counts[r] = Tally{}
	}
	t.touched = t.touched[:0]
}

// add counts n more pods of a lot.
func (t *tallies) add(marks []Mark, n int) {
	for _, m := range marks {
		if t.counts[m.Rule] == (Tally{}) {
			t.counts[m.Rule].Rule = m.Rule
			t.touched = append(t.touched, m.Rule)
		}
		t.counts[m.Rule].count(m, n)
	}
}

// room returns how many more pods with these marks the rules allow, at most n.
func (t *tallies) room(marks []Mark, n int) int {
	for _, m := range marks {
		if n = t.rules[m.Rule].admits(t.counts[m.Rule], m, n); n <= 0 {
			return 0
		}
	}
	return n
}

func (t *Tally) count(m Mark, n int) {
	switch {
	case m.Owner && m.Member:
		t.Inside += int32(n)
	case m.Owner:
		t.Outside += int32(n)
	}
	if m.Member {
		t.Members += int32(n)
	}
}

// admits returns how many more pods with a mark the rule allows on a node with these counts, at most
// n.
func (r Rule) admits(t Tally, m Mark, n int) int {
	if r.Soft && !m.Owner {
		return n
	}
	if !m.Member {
		if m.Owner && t.Members > r.WithOther {
			return 0
		}
		return n
	}
	if t.Inside > 0 || m.Owner {
		n = min(n, int(r.WithMember-t.Members))
	}
	if t.Outside > 0 {
		n = min(n, int(r.WithOther-t.Members))
	}
	return n
}
