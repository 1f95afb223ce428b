package manifest

import (
	"slices"
	"strings"
)

// editDistance returns the number of insertions, deletions, replacements and exchanges of two neighbours from a to b.
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				change = min(change, before[j-1]+1)
			}
			next[j+1] = min(next[j]+1, row[j+1]+1, change)
		}
		before, row = row, next
	}
	return row[len(b)]
}

// isSimilar reports whether written is probably a misspelling of name.
func isSimilar(written, name string) bool {
	written, name = strings.ToLower(written), strings.ToLower(name)
	if len(written) > 2*len(name)+2 {
		return false
	}
	return editDistance(written, name) <= max(1, len(name)/4)
}

// NearestName returns the name of which written is probably a misspelling, in upper or lower case, or "".
func NearestName(written string, names []string) string {
	best, least := "", 0
	for _, name := range slices.Sorted(slices.Values(names)) {
		d := editDistance(strings.ToLower(written), strings.ToLower(name))
		if isSimilar(written, name) && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}
