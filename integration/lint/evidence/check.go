package main

import (
	"fmt"

	"github.com/joist-autoscaler/joist/integration/lint/namedtests"
)

// checkPage returns the problems of a page's promises: a statement of the page that is not among them, one that the page
// no longer makes, and a promise without evidence that exists. checks are the simulator's.
func checkPage(page Page, statements []Sentence, tests *namedtests.TestNames, checks map[string][]string) []string {
	c := checker{page: page.Path, open: map[string]int{}, tests: tests, checks: checks}
	for _, s := range statements {
		c.open[s.Text]++
	}
	for _, promise := range page.Promises {
		c.checkPromise(promise)
	}
	for _, text := range page.Background {
		c.take(text)
	}
	for _, s := range statements {
		if c.open[s.Text] > 0 {
			c.open[s.Text] = 0
			c.report("%s: no evidence is listed for %q (under %q). Try: add it to a promise with the test that fails if it is broken, or to the background", page.Path, s.Text, s.Heading)
		}
	}
	return c.problems
}

type checker struct {
	page string
	// open counts the statements of the page that are not listed yet.
	open     map[string]int
	tests    *namedtests.TestNames
	checks   map[string][]string
	problems []string
}

func (c *checker) report(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// take removes one statement from the open ones.
func (c *checker) take(text string) {
	if c.open[text]--; c.open[text] < 0 {
		c.report("%s does not say, or not as often as listed: %q", c.page, text)
	}
}

func (c *checker) checkPromise(promise Promise) {
	if len(promise.Says) == 0 {
		c.report("%s: a promise says nothing", c.page)
		return
	}
	for _, text := range promise.Says {
		c.take(text)
	}
	if len(promise.Tests)+len(promise.Checks) == 0 {
		c.report("%s: %q has no evidence", c.page, promise.Says[0])
	}
	for _, test := range promise.Tests {
		if problem := c.tests.Problem(test); problem != "" {
			c.report("%s: %q: %s", c.page, promise.Says[0], problem)
		}
	}
	for _, check := range promise.Checks {
		if _, known := c.checks[check]; !known {
			c.report("%s: %q: the simulator has no check %q", c.page, promise.Says[0], check)
		}
	}
}
