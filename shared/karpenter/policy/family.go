package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// prefixes are what the names of the annotations begin with. What begins so and is not
// known was meant to hold something back, and is misspelt or of a later version.
var prefixes = []string{
	consolidationPrefix, expirationPrefix, driftPrefix, budgetPrefix, "joist.sh/price-", limitsPrefix,
}

const consolidationPrefix = "joist.sh/consolidation-"

// reportUnknown tells of annotations of these families that nobody has looked for.
func (r *reader) reportUnknown(families ...string) {
	for _, name := range slices.Sorted(maps.Keys(r.annotations)) {
		at := slices.IndexFunc(families, func(f string) bool { return strings.HasPrefix(name, f) })
		if at < 0 || slices.Contains(r.names, name) {
			continue
		}
		r.hasPolicy = true
		var meant []string
		for _, known := range r.names {
			if strings.HasPrefix(known, families[at]) {
				meant = append(meant, known)
			}
		}
		r.problems = append(r.problems, fmt.Errorf("annotation %s is not known: write %s, or take it off", truncateText(name), strings.Join(meant, " or ")))
	}
}
