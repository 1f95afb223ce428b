package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/integration/lint/namedtests"
)

const introduction = `# Evidence

This page lists what [README.md](../../README.md) and [design.md](design.md) promise, and what fails if Joist breaks a promise: %d statements.
%d further statements only explain something and promise nothing.

- A **test** is listed with its folder. ` + "`make test` and `make prove`" + ` run all of them.
- A **check** is an invariant of the simulator. Each seed of ` + "`make sim`" + ` and each crash point of ` + "`make crash`" + ` verifies all of them. The planted
  bugs in brackets show that the check can fail: ` + "`make planted`" + ` adds each to the source, and the check must find it.
  [Planted bugs](planted-bugs.md) has how many seeds each needs.

The page is generated from [integration/lint/evidence](../../integration/lint/evidence). ` + "`make rules`" + ` fails if one of the two pages says something that is not
listed here, or if a listed test or check does not exist.
`

// renderPage returns the page as Markdown. Promises are in the order of the page that makes them.
func renderPage(pages []Page, statements map[string][]Sentence, checks map[string][]string) []byte {
	promises, background := 0, 0
	for _, page := range pages {
		for _, promise := range page.Promises {
			promises += len(promise.Says)
		}
		background += len(page.Background)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, introduction, promises, background)
	for _, page := range pages {
		fmt.Fprintf(&out, "\n## %s\n", page.Path)
		headings := map[string]string{}
		for _, s := range statements[page.Path] {
			headings[s.Text] = s.Heading
		}
		last := ""
		for _, promise := range page.Promises {
			if heading := headings[promise.Says[0]]; heading != last {
				fmt.Fprintf(&out, "\n### %s\n\n| promise | what fails if it is broken |\n|---|---|\n", heading)
				last = heading
			}
			fmt.Fprintf(&out, "| %s | %s |\n", escapeCell(strings.Join(promise.Says, "<br>")), escapeCell(listEvidence(promise, checks)))
		}
	}
	return out.Bytes()
}

// listEvidence lists the tests, and then the checks with the bugs that break them.
func listEvidence(promise Promise, checks map[string][]string) string {
	var parts []string
	if len(promise.Tests) > 0 {
		parts = append(parts, namedtests.List(promise.Tests))
	}
	for _, check := range promise.Checks {
		text := "check “" + check + "”"
		if len(checks[check]) > 0 {
			text += " (" + strings.Join(checks[check], ", ") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// escapeCell escapes what would end a cell of a Markdown table.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
