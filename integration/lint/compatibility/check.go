package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/integration/lint/namedtests"
)

// checkAreas returns every problem of the areas. Tests are folders of the repository
// below root.
func checkAreas(areas []Area, sources []Source, root string) []string {
	c := checker{sources: sources, tests: namedtests.New(root)}
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
	tests    *namedtests.TestNames
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
		if problem := c.tests.Problem(test); problem != "" {
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
