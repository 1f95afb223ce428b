package manifest

import (
	"slices"
	"strings"
)

// editDistance returns the number of insertions, deletions and replacements from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
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

// nearestName returns the most similar name, or "".
func nearestName(written string, names []string) string {
	best, least := "", 0
	for _, name := range slices.Sorted(slices.Values(names)) {
		d := editDistance(strings.ToLower(written), strings.ToLower(name))
		if isSimilar(written, name) && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}
