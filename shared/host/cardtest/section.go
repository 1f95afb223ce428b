// Package cardtest reads the services' cards, services/*/README.md, for the tests that hold
// what a card promises to what is built: a card is written for people, and stays true.
package cardtest

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// ReadSection is what a service's card says under a heading, and the card's path for what
// is said about it. The root is the repository's.
func ReadSection(root, service, heading string) (path, section string, err error) {
	path = filepath.Join(root, "services", service, "README.md")
	card, err := os.ReadFile(path)
	if err != nil {
		return path, "", fmt.Errorf("reading a card: %w", err)
	}
	_, section, found := strings.Cut(string(card), "\n## "+heading+"\n")
	if !found {
		return path, "", fmt.Errorf("%s has no section %q", path, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return path, section, nil
}

// TableRows are the rows of a section's table, but for the one that begins with the title: the
// first cell, and what follows it.
func TableRows(section, title string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.SplitSeq(section, "\n") {
			cell, row, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			if ok && cell != title && !yield(cell, row) {
				return
			}
		}
	}
}
