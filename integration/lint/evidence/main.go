// Command evidence writes deploy/docs/evidence.md.
//
//	cd integration && go generate ./lint/evidence
//
// The files in promises list each statement of README.md and design.md: the promises with the tests and checks that fail if
// they are broken, and the statements that promise nothing. The tests of this package fail when a statement is not listed,
// when listed evidence does not exist, and when the page is out of date.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run .

// Paths from this folder, in which go generate and go test run.
const (
	root = "../../.."
	data = "promises"
)

var (
	pagePath   = filepath.Join(root, "deploy", "docs", "evidence.md")
	suitesPath = filepath.Join(root, "integration", "suites")
)

func main() {
	if err := writePage(); err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}

func writePage() error {
	pages, statements, checks, err := load()
	if err != nil {
		return err
	}
	if err := os.WriteFile(pagePath, renderPage(pages, statements, checks), 0o644); err != nil {
		return fmt.Errorf("writing the page of evidence: %w", err)
	}
	return nil
}

// load reads the promises, the statements of each page by its path, and the simulator's checks.
func load() (pages []Page, statements map[string][]Sentence, checks map[string][]string, err error) {
	if pages, err = readPages(data); err != nil {
		return nil, nil, nil, err
	}
	statements = map[string][]Sentence{}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page.Path)))
		if err != nil {
			return nil, nil, nil, fmt.Errorf("reading a page that makes promises: %w", err)
		}
		statements[page.Path] = readSentences(text)
	}
	if checks, err = readChecks(suitesPath); err != nil {
		return nil, nil, nil, err
	}
	return pages, statements, checks, nil
}
