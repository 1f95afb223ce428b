package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Area is one section of the table.
type Area struct {
	Title      string      `yaml:"area"`
	Behaviours []Behaviour `yaml:"behaviours"`
}

// Behaviour is one row of the table.
type Behaviour struct {
	// Text is what Karpenter does, in one sentence.
	Text string `yaml:"behaviour"`
	// Home is where Karpenter does it: "core pkg/…", "provider pkg/…", or "docs TITLE"
	// for a page of karpenter.sh or AWS.
	Home []string `yaml:"home"`
	// Status is same, different or absent.
	Status string `yaml:"status"`
	// Note is how and why Joist differs. With the status same it names what Joist adds.
	Note string `yaml:"note"`
	// Tests are "FOLDER TestName".
	Tests []string `yaml:"tests"`
}

// statuses are all that a behaviour can have.
var statuses = []string{"same", "different", "absent"}

// readAreas reads the areas of a folder in the order of the file names.
func readAreas(dir string) ([]Area, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing the areas of the compatibility table: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no YAML files in %s", dir)
	}
	slices.Sort(files)
	var areas []Area
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading an area of the compatibility table: %w", err)
		}
		var area Area
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		if err := decoder.Decode(&area); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", file, err)
		}
		areas = append(areas, area)
	}
	return areas, nil
}
