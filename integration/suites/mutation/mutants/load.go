package mutants

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// MutatedModule is a Go module with packages that are changed.
type MutatedModule struct {
	// Dir is the module's directory relative to the root of the repository.
	Dir string
	// Patterns are the packages, relative to Dir.
	Patterns []string
	// Without are the packages below Patterns that are not changed, because only tests use them or they are main packages.
	Without []string
	// TestedBy is another package whose tests also test these packages, such as a service's, relative to the root of the
	// repository. It is empty if the packages' own tests are all.
	TestedBy string
}

// MutatedCode has the changed files of a module.
type MutatedCode struct {
	Module  MutatedModule
	Mutants []Mutant
	// root is the root of the repository, and files the changed text by absolute path.
	root  string
	files map[string]string
	// dirs are the directories of the packages, relative to root.
	dirs []string
}

// Load finds the mutants of the module's packages.
func Load(root string, m MutatedModule) (MutatedCode, error) {
	config := &packages.Config{
		Mode: packages.LoadSyntax, Dir: filepath.Join(root, m.Dir), Env: append(os.Environ(), "GOWORK=off"),
	}
	loaded, err := packages.Load(config, m.Patterns...)
	if err != nil {
		return MutatedCode{}, fmt.Errorf("loading the packages of %s: %w", m.Dir, err)
	}
	out := MutatedCode{Module: m, root: root, files: map[string]string{}}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return MutatedCode{}, fmt.Errorf("loading %s: %w", pkg.PkgPath, pkg.Errors[0])
		}
		dir, err := filepath.Rel(root, pkg.Dir)
		if err != nil {
			return MutatedCode{}, fmt.Errorf("locating %s: %w", pkg.PkgPath, err)
		}
		if pkg.Name == "main" || slices.Contains(m.Without, dir) {
			continue
		}
		if err := out.addPackage(pkg, dir); err != nil {
			return MutatedCode{}, err
		}
	}
	return out, nil
}

// addPackage adds the mutants of a package, and the file with which its code asks for the selected mutant.
func (o *MutatedCode) addPackage(pkg *packages.Package, dir string) error {
	first := len(o.Mutants) + 1
	for i, syntax := range pkg.Syntax {
		name := pkg.CompiledGoFiles[i]
		if ast.IsGenerated(syntax) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		s := &source{
			pkg: pkg, syntax: syntax, text: text, dir: dir, number: len(o.Mutants) + 1,
			name: filepath.ToSlash(filepath.Join(dir, filepath.Base(name))),
		}
		s.collect()
		if len(s.mutants) == 0 {
			continue
		}
		o.Mutants = append(o.Mutants, s.mutants...)
		o.files[name] = s.withMutants()
	}
	if last := len(o.Mutants) + 1; last > first {
		o.files[filepath.Join(pkg.Dir, "mutant_selection.go")] = selectionFile(pkg.Name, first, last)
		o.dirs = append(o.dirs, dir)
	}
	return nil
}

// selectionFile returns the source with which a package's code asks for the selected mutant. The package's mutants have the
// numbers from first to before last.
func selectionFile(name string, first, last int) string {
	return strings.NewReplacer("PACKAGE", name, "FIRST", strconv.Itoa(first), "COUNT", strconv.Itoa(last-first)).Replace(selection)
}
