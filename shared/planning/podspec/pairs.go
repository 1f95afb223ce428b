package podspec

import (
	"cmp"
	"slices"
)

// pair is one label.
type pair struct{ key, value string }

// pairs are labels sorted by key.
type pairs []pair

// of sets the pairs from a map.
func (p pairs) of(labels map[string]string) pairs {
	p = p[:0]
	for key, value := range labels {
		p = append(p, pair{key, value})
	}
	p.sort()
	return p
}

func (p pairs) sort() {
	slices.SortFunc(p, func(x, y pair) int { return cmp.Compare(x.key, y.key) })
}

// labels returns the pairs as a map; nil if empty.
func (p pairs) labels() map[string]string {
	if len(p) == 0 {
		return nil
	}
	out := make(map[string]string, len(p))
	for _, one := range p {
		out[one.key] = one.value
	}
	return out
}
