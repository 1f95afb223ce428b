package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Page has the statements of one page, each either among the promises or in the background.
type Page struct {
	// Path is relative to the repository's root.
	Path     string    `yaml:"page"`
	Promises []Promise `yaml:"promises"`
	// Background are statements that promise nothing about Joist, such as "Karpenter tries prefixes of one ordered list."
	Background []string `yaml:"background"`
}

// Promise is what fails if Joist no longer does what the statements say.
type Promise struct {
	// Says are statements of the page.
	Says []string `yaml:"says"`
	// Tests are "FOLDER TestName".
	Tests []string `yaml:"tests"`
	// Checks are invariants of the simulator, which every seed and every crash point checks.
	Checks []string `yaml:"checks"`
}

// files are the data in the order of the generated page.
var files = []string{"readme.yaml", "design.yaml"}

// readPages reads the pages' promises in a folder.
func readPages(dir string) ([]Page, error) {
	var pages []Page
	for _, name := range files {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading promises: %w", err)
		}
		var page Page
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		if err := decoder.Decode(&page); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", file, err)
		}
		pages = append(pages, page)
	}
	return pages, nil
}
