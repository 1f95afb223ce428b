package solver

import (
	"cmp"
	"slices"
)

// maxWatcherDepth bounds how many watchers in a row are told apart: they may watch each
// other in a circle.
const maxWatcherDepth = 4

// watchesGroup reports whether the class has the group as a required spread that does not
// count itself. Where it may go is decided by others, and each of those that comes
// can only make it worse.
func (c *podClass) watchesGroup(g *group) bool {
	return g.kind == spreadKind && g.hard && !g.members[c.set]
}

// sortBoundFirst puts the classes first that have rules over domains of their own: the
// others can go anywhere, and make room for them. Before all those come watchers, and
// each before what it watches.
func sortBoundFirst(classes []*podClass) []*podClass {
	ahead := rankWatchers(classes)
	rank := func(c *podClass) int { return ahead[c] + min(len(c.rules.groups), 1) }
	out := slices.Clone(classes)
	slices.SortStableFunc(out, func(a, b *podClass) int { return cmp.Compare(rank(b), rank(a)) })
	return out
}

// rankWatchers are the classes that watch others, each with one more than those that it
// watches.
func rankWatchers(classes []*podClass) map[*podClass]int {
	var ahead map[*podClass]int
	for range maxWatcherDepth {
		watched := map[*group]int{}
		for c, n := range ahead {
			for _, g := range c.set.counted {
				watched[g] = max(watched[g], n)
			}
		}
		for _, c := range classes {
			for _, g := range c.rules.groups {
				if c.watchesGroup(g) && watched[g] >= ahead[c] {
					if ahead == nil {
						ahead = map[*podClass]int{}
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
