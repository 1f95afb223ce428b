package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checkAreas returns every problem of the areas. Tests are folders of the repository
// below root.
func checkAreas(areas []Area, sources []Source, root string) []string {
	c := checker{sources: sources, root: root, found: map[string]map[string]bool{}}
	for _, area := range areas {
		if area.Title == "" || len(area.Behaviours) == 0 {
			c.report("area %q has no title or no behaviours", area.Title)
		}
		for _, b := range area.Behaviours {
			c.check(area.Title, b)
		}
	}
	return c.problems
}

type checker struct {
	sources  []Source
	root     string
	found    map[string]map[string]bool // The tests of each folder.
	problems []string
}

func (c *checker) report(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) check(area string, b Behaviour) {
	at := fmt.Sprintf("%s: %q", area, b.Text)
	if b.Text == "" {
		c.report("%s: an entry has no behaviour", area)
	}
	if len(b.Home) == 0 {
		c.report("%s has no home", at)
	}
	for _, home := range b.Home {
		if problem := c.checkHome(home); problem != "" {
			c.report("%s: %s", at, problem)
		}
	}
	if !slices.Contains(statuses, b.Status) {
		c.report("%s: unknown status %q (use %s)", at, b.Status, strings.Join(statuses, ", "))
	}
	if b.Status != "same" && b.Note == "" {
		c.report("%s is %s and has no note that says why", at, b.Status)
	}
	for _, test := range b.Tests {
		if problem := c.checkTest(test); problem != "" {
			c.report("%s: %s", at, problem)
		}
	}
}

// checkHome reports a home that does not exist in Karpenter's modules. Documents are
// not in the modules.
func (c *checker) checkHome(home string) string {
	name, path, _ := strings.Cut(home, " ")
	if name == "docs" && path != "" {
		return ""
	}
	for _, source := range c.sources {
		if source.Name != name || path == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(source.Dir, filepath.FromSlash(path))); err != nil {
			return fmt.Sprintf("home %s does not exist in %s", path, source.Version)
		}
		return ""
	}
	return fmt.Sprintf("home %q is not \"core PATH\", \"provider PATH\" or \"docs TITLE\"", home)
}

func (c *checker) checkTest(test string) string {
	dir, name, _ := strings.Cut(test, " ")
	if !testName.MatchString(name) {
		return fmt.Sprintf("test %q is not \"FOLDER TestName\"", test)
	}
	tests, known := c.found[dir]
	if !known {
		var err error
		if tests, err = parseTests(filepath.Join(c.root, filepath.FromSlash(dir))); err != nil {
			return err.Error()
		}
		c.found[dir] = tests
	}
	if !tests[name] {
		return fmt.Sprintf("%s has no test %s", dir, name)
	}
	return ""
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
