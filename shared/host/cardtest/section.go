// Package cardtest reads the READMEs of the services (services/*/README.md) for tests that compare their statements
// with the code.
package cardtest

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// ReadSection returns the section of a service's README under a heading, and the README's path for error messages.
// The root is the repository's.
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

// TableRows yields the rows of a section's table except the header row, which begins with title: the first cell, and
// the rest of the row.
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
