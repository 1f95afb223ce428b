// Command reference writes the pages of the reference that follow from the code.
//
//	cd integration && go generate ./site/reference
//
// deploy/docs/cli.md has the commands of joist with their flags and examples. deploy/docs/names.md has the annotations,
// labels, taints, finalizers, conditions and Events, with the doc comments of their constants: a constant without a comment
// is an error. A test fails when a page is out of date.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run .

// root is the repository, from this folder, in which go generate and go test run.
const root = "../../.."

func main() {
	if err := writePages(); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// renderPages returns the pages by their path in the repository.
func renderPages() (map[string][]byte, error) {
	commands, err := renderCommands()
	if err != nil {
		return nil, err
	}
	names, err := renderNames()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"deploy/docs/cli.md": commands, "deploy/docs/names.md": names}, nil
}

func writePages() error {
	pages, err := renderPages()
	if err != nil {
		return err
	}
	for path, text := range pages {
		if err := os.WriteFile(filepath.Join(root, path), text, 0o644); err != nil {
			return fmt.Errorf("writing a page of the reference: %w", err)
		}
	}
	return nil
}
