package mutants

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Survivor is a mutant that the packages' tests do not kill, for a known reason.
type Survivor struct {
	// Mutant is the mutant's identity.
	Mutant string `yaml:"mutant"`
	// Reason begins with one of the kinds of reasons and a colon, such as "equivalent: ".
	Reason string `yaml:"reason"`
}

// kinds are the kinds of reasons, with what follows the colon.
var kinds = map[string]string{
	"equivalent":  "why nothing that a caller or a user can observe changes",
	"simulator":   "the promise that a seed breaks",
	"log":         "which text of a log changes",
	"performance": "what takes longer or is done twice, with the same result",
}

// ReadSurvivors reads the list of survivors and returns their reasons by the mutants' identities.
func ReadSurvivors(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the list of surviving mutants: %w", err)
	}
	var listed []Survivor
	if err := yaml.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("reading the list of surviving mutants in %s: %w", file, err)
	}
	reasons := map[string]string{}
	for _, s := range listed {
		kind, text, _ := strings.Cut(s.Reason, ": ")
		if kinds[kind] == "" || text == "" {
			return nil, fmt.Errorf("%s: the reason %q of %q has no known kind (use %s, then a colon and the reason)",
				file, s.Reason, s.Mutant, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		}
		if reasons[s.Mutant] != "" {
			return nil, fmt.Errorf("%s lists %q twice (remove one)", file, s.Mutant)
		}
		reasons[s.Mutant] = s.Reason
	}
	return reasons, nil
}

// FindUnknown returns the listed mutants that do not exist.
func FindUnknown(reasons map[string]string, all []Mutant) []string {
	exists := map[string]bool{}
	for _, m := range all {
		exists[m.String()] = true
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !exists[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
