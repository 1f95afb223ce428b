package manifest

import (
	"slices"
	"strings"
)

// distance counts the letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
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

// near says whether one is probably the other, misspelt.
func near(written, name string) bool {
	written, name = strings.ToLower(written), strings.ToLower(name)
	if len(written) > 2*len(name)+2 {
		return false
	}
	return distance(written, name) <= max(1, len(name)/4)
}

// nearest finds the name that was probably meant, or "".
func nearest(written string, names []string) string {
	best, least := "", 0
	for _, name := range slices.Sorted(slices.Values(names)) {
		d := distance(strings.ToLower(written), strings.ToLower(name))
		if near(written, name) && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}
