package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// prefixes are the prefixes of the annotations. An unknown annotation with one of them is misspelt or of a later
// version, and was meant to limit something.
var prefixes = []string{
	consolidationPrefix, expirationPrefix, driftPrefix, budgetPrefix, "joist.sh/price-", limitsPrefix,
}

const consolidationPrefix = "joist.sh/consolidation-"

// reportUnknown reports annotations with these prefixes that no reader has looked up.
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
		r.problems = append(r.problems, fmt.Errorf("unknown annotation %s: use %s, or remove it", fault.Truncate(name, quotedMax), strings.Join(meant, " or ")))
	}
}
