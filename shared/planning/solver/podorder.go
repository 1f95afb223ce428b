package solver

import (
	"cmp"
	"slices"
)

// maxWatcherDepth bounds the chains of watchers, because classes may watch each other in a cycle.
const maxWatcherDepth = 4

// watchesGroup reports whether the group is a required spread of the class that does not count the
// class itself. Other pods decide where the class may go, and each additional one can only restrict
// it.
func (c *podClass) watchesGroup(g *group) bool {
	return g.kind == spreadKind && g.hard && !g.members[c.set]
}

// sortBoundFirst returns the classes in assignment order: first watchers, each before the classes that
// it watches; then classes with rules over domains; then the others, which can go anywhere.
func sortBoundFirst(classes []*podClass) []*podClass {
	ahead := rankWatchers(classes)
	rank := func(c *podClass) int { return ahead[c] + min(len(c.rules.groups), 1) }
	out := slices.Clone(classes)
	slices.SortStableFunc(out, func(a, b *podClass) int { return cmp.Compare(rank(b), rank(a)) })
	return out
}

// rankWatchers returns the rank of each watcher: one more than the highest rank of the classes that it
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
