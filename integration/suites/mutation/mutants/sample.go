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
	// Dir is relative to the root of the repository.
	Dir  string
	Size int
	// Seed draws other mutants.
	Seed int
}

// IsBelow reports whether the package is in the directory or below it.
func IsBelow(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// Has reports whether the mutant is below the sample's directory.
func (s FixedSample) Has(m Mutant) bool { return IsBelow(m.Package, s.Dir) }

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
