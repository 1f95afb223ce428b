// Package namedtests finds the tests that the data of generated pages name, as "FOLDER TestName".
package namedtests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// TestNames knows the tests of one repository. It reads each folder once.
type TestNames struct {
	root string
	// found are the tests of each folder that was read.
	found map[string]map[string]bool
}

// New returns the names of the tests of the repository below root.
func New(root string) *TestNames { return &TestNames{root: root, found: map[string]map[string]bool{}} }

// Problem returns the problem of a name such as "services/watcher TestLonePod". It is empty if the test exists.
func (l *TestNames) Problem(test string) string {
	dir, name, _ := strings.Cut(test, " ")
	if !testName.MatchString(name) {
		return fmt.Sprintf("test %q is not \"FOLDER TestName\"", test)
	}
	tests, known := l.found[dir]
	if !known {
		var err error
		if tests, err = parseTests(filepath.Join(l.root, filepath.FromSlash(dir))); err != nil {
			return err.Error()
		}
		l.found[dir] = tests
	}
	if !tests[name] {
		return fmt.Sprintf("%s has no test %s", dir, name)
	}
	return ""
}

// List formats names for a table: each folder once, with its tests behind it.
func List(tests []string) string {
	var out []string
	last := ""
	for _, test := range tests {
		dir, name, _ := strings.Cut(test, " ")
		if dir == last {
			out[len(out)-1] += ", `" + name + "`"
			continue
		}
		last = dir
		out = append(out, dir+" `"+name+"`")
	}
	return strings.Join(out, "; ")
}

var testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)

// parseTests reads which tests a folder has, with any build tags.
func parseTests(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w", dir, err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		}
		for _, decl := range syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests, nil
}
