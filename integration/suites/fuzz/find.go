package fuzz

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Fuzzer is a function of a test file.
type Fuzzer struct {
	// Module is the folder of its module, and Package that of its package in it; both with slashes.
	Module, Package string
	Name            string
}

// String returns the folder and the name.
func (f Fuzzer) String() string { return filepath.Join(f.Module, f.Package) + "." + f.Name }

// declaration is the line of a fuzzer, as go test recognizes it.
var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\) \{$`)

// FindFuzzers returns the fuzzers of all modules below root, sorted.
func FindFuzzers(root string) ([]Fuzzer, error) {
	var found []Fuzzer
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(entry.Name(), "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // the work tree is not changed meanwhile
		if err != nil {
			return err
		}
		for _, match := range declaration.FindAllSubmatch(text, -1) {
			f, err := locateFuzzer(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			f.Name = string(match[1])
			found = append(found, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finding fuzzers in %s: %w", root, err)
	}
	slices.SortFunc(found, func(a, b Fuzzer) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// locateFuzzer returns the module and the package of a folder.
func locateFuzzer(root, folder string) (Fuzzer, error) {
	for module := folder; ; module = filepath.Dir(module) {
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			below, err := filepath.Rel(module, folder)
			if err != nil {
				return Fuzzer{}, err
			}
			name, err := filepath.Rel(root, module)
			return Fuzzer{Module: filepath.ToSlash(name), Package: filepath.ToSlash(below)}, err
		}
		if module == root || module == filepath.Dir(module) {
			return Fuzzer{}, fmt.Errorf("%s is in no module", folder)
		}
	}
}
