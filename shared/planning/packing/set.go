package packing

import (
	"encoding/binary"
	"math/bits"
)

// Set is a bit set of small numbers. Pod groups share sets: a set must not change once a pod group
// has it.
type Set []uint64

// NewSet returns an empty set for numbers below n.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Add adds i.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Has reports whether i is in the set; a nil set is empty.
func (s Set) Has(i int) bool { return i>>6 < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

// Intersect returns the intersection.
func (s Set) Intersect(t Set) Set {
	out := make(Set, min(len(s), len(t)))
	for i := range out {
		out[i] = s[i] & t[i]
	}
	return out
}

// AddAll adds everything in t, in place; t must not be larger.
func (s Set) AddAll(t Set) {
	for i := range t {
		s[i] |= t[i]
	}
}

// Len returns the number of members.
func (s Set) Len() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Each calls f with every member in rising order until f returns false.
func (s Set) Each(f func(i int) bool) {
	for w, word := range s {
		for word != 0 {
			i := w<<6 + bits.TrailingZeros64(word)
			if !f(i) {
				return
			}
			word &= word - 1
		}
	}
}

// EachCommon calls f with every member of both sets in rising order, until f returns false.
func (s Set) EachCommon(t Set, f func(i int) bool) {
	for w := range min(len(s), len(t)) {
		for word := s[w] & t[w]; word != 0; word &= word - 1 {
			if !f(w<<6 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// Union returns the union.
func (s Set) Union(t Set) Set {
	if len(s) < len(t) {
		s, t = t, s
	}
	out := make(Set, len(s))
	copy(out, s)
	for i := range t {
		out[i] |= t[i]
	}
	return out
}

// Overlaps reports whether the sets have a common member.
func (s Set) Overlaps(t Set) bool {
	for i := range min(len(s), len(t)) {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// Without returns the members that are not in t.
func (s Set) Without(t Set) Set {
	out := make(Set, len(s))
	copy(out, s)
	for i := range out {
		if i < len(t) {
			out[i] &^= t[i]
		}
	}
	return out
}

// Key returns a map key that is equal for equal sets.
func (s Set) Key() string { return string(s.AppendKey(make([]byte, 0, 8*len(s)))) }

// AppendKey appends the key to out.
func (s Set) AppendKey(out []byte) []byte {
	for _, word := range s {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}
