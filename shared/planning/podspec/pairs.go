package podspec

import (
	"cmp"
	"slices"
)

// pair is one label.
type pair struct{ key, value string }

// pairs are labels in the order of their keys.
type pairs []pair

// of replaces the pairs by those of a map.
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

// labels is of's inverse; without pairs it is nil.
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
