package mutants

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// FixedSample is the part of the mutants below a directory that is checked, because all of them would take too long.
type FixedSample struct {
	// Dir is a directory or a file, relative to the root of the repository.
	Dir  string
	Size int
	// Seed draws other mutants.
	Seed int
	// FirstKilled is how many of them the tests killed when they were drawn, before tests were written for the others. It is 0 if
	// that was not counted.
	FirstKilled int
}

// Has reports whether the mutant is in the sample's file or below its directory.
func (s FixedSample) Has(m Mutant) bool {
	return m.File == s.Dir || strings.HasPrefix(m.File, s.Dir+"/")
}

// Draw returns the drawn mutants below the directory, and how many there are. Whether a mutant is drawn depends on its identity, so
// that a change of the source leaves most of the sample as it is.
func (s FixedSample) Draw(all []Mutant) (drawn []Mutant, of int) {
	rank := func(m Mutant) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", s.Seed, m))
		return sum[:]
	}
	for _, m := range all {
		if s.Has(m) {
			drawn = append(drawn, m)
		}
	}
	of = len(drawn)
	slices.SortStableFunc(drawn, func(a, b Mutant) int { return bytes.Compare(rank(a), rank(b)) })
	return drawn[:min(s.Size, of)], of
}

// DrawnSample is what a sample draws.
type DrawnSample struct {
	FixedSample
	Mutants []Mutant
	// Of is how many mutants there are in the sample's directory or file.
	Of int
}

// DrawSamples draws the samples one after another. No mutant is drawn twice.
func DrawSamples(all []Mutant, samples []FixedSample) (drawn []DrawnSample) {
	known := map[string]bool{}
	for _, s := range samples {
		_, of := s.Draw(all)
		part, _ := s.Draw(slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool { return known[m.String()] }))
		for _, m := range part {
			known[m.String()] = true
		}
		drawn = append(drawn, DrawnSample{s, part, of})
	}
	return drawn
}
