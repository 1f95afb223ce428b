package solver

import (
	"cmp"
	"slices"
)

// watchMax bounds how many watchers in a row are told apart: they may watch each
// other in a circle.
const watchMax = 4

// watches reports whether the class has the group as a required spread that does not
// count itself. Where it may go is decided by others, and each of those that comes
// can only make it worse.
func (c *class) watches(g *group) bool { return g.kind == spreadKind && g.hard && !g.members[c.set] }

// boundFirst puts the classes first that have rules over domains of their own: the
// others can go anywhere, and make room for them. Before all those come watchers, and
// each before what it watches.
func boundFirst(classes []*class) []*class {
	ahead := watchers(classes)
	rank := func(c *class) int { return ahead[c] + min(len(c.own.groups), 1) }
	out := slices.Clone(classes)
	slices.SortStableFunc(out, func(a, b *class) int { return cmp.Compare(rank(b), rank(a)) })
	return out
}

// watchers are the classes that watch others, each with one more than those that it
// watches.
func watchers(classes []*class) map[*class]int {
	var ahead map[*class]int
	for range watchMax {
		watched := map[*group]int{}
		for c, n := range ahead {
			for _, g := range c.set.counted {
				watched[g] = max(watched[g], n)
			}
		}
		for _, c := range classes {
			for _, g := range c.own.groups {
				if c.watches(g) && watched[g] >= ahead[c] {
					if ahead == nil {
						ahead = map[*class]int{}
					}
					ahead[c] = watched[g] + 1
				}
			}
		}
		if ahead == nil {
			return nil
		}
	}
	return ahead
}
