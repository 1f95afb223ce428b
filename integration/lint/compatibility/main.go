// Command compatibility writes deploy/docs/karpenter-compatibility.md.
//
//	cd integration && go generate ./lint/compatibility
//
// The files in behaviours list what Karpenter does, where its sources do it, and the tests
// that hold Joist to it. The tests of this package fail when a listed test or source
// does not exist, when an entry is incomplete, and when the page is out of date.
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
	data = "behaviours"
)

var pagePath = filepath.Join(root, "deploy", "docs", "karpenter-compatibility.md")

func main() {
	if err := writePage(); err != nil {
		fmt.Fprintln(os.Stderr, "compatibility:", err)
		os.Exit(1)
	}
}

func writePage() error {
	areas, err := readAreas(data)
	if err != nil {
		return err
	}
	sources, err := findSources()
	if err != nil {
		return err
	}
	if err := os.WriteFile(pagePath, renderPage(areas, sources), 0o644); err != nil {
		return fmt.Errorf("writing the compatibility table: %w", err)
	}
	return nil
}
