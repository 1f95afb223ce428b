package convert

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// splitLines returns the lines of a text without their line breaks.
func splitLines(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
