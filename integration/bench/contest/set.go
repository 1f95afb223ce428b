package contest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/integration/bench/scenarios"
)

// Set lists kinds with their sizes, as "a,b=100,1000;a=5000", or is the name of a predefined set.
type Set string

// The predefined sets, which have names.
const (
	// Usual takes about a quarter of an hour with both planners.
	Usual Set = "usual"
	// Alone is for Joist alone, and takes some minutes: Karpenter would need hours.
	Alone Set = "alone"
)

var predefined = map[Set]Set{
	Usual: "a,b,bamd,bspot,u,c,r,d=100,1000;a,b,c=5000;e,f=100",
	Alone: "a,b,u,c,r,d=100000",
}

// Entry is a kind with a size.
type Entry struct {
	Kind scenarios.Kind
	Size int
}

// Entries parses the set.
func (s Set) Entries() ([]Entry, error) {
	var out []Entry
	if named, ok := predefined[s]; ok {
		s = named
	}
	for part := range strings.SplitSeq(string(s), ";") {
		kinds, sizes, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q has no sizes: write a set as %q", part, "a,b=100,1000;a=5000")
		}
		for name := range strings.SplitSeq(kinds, ",") {
			kind, err := scenarios.Find(strings.TrimSpace(name))
			if err != nil {
				return nil, err
			}
			for text := range strings.SplitSeq(sizes, ",") {
				size, err := strconv.Atoi(strings.TrimSpace(text))
				if err != nil || size < 1 {
					return nil, fmt.Errorf("invalid size %q of a scenario: it is a number of pods or nodes, 1 or more", text)
				}
				out = append(out, Entry{kind, size})
			}
		}
	}
	return out, nil
}

// Generate writes the set's scenarios and their types into a directory.
func (s Set) Generate(dir string, seed uint64) error {
	entries, err := s.Entries()
	if err != nil {
		return err
	}
	if err := scenarios.WriteTypes(dir); err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := e.Kind.Make(e.Size, seed).Write(dir); err != nil {
			return err
		}
	}
	return nil
}
