package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/lint/namedtests"
)

// Each statement of the pages is listed, and each promise has evidence that exists.
func TestEveryPromiseHasEvidence(t *testing.T) {
	pages, statements, checks, err := load()
	if err != nil {
		t.Fatal(err)
	}
	tests := namedtests.New(root)
	for _, page := range pages {
		for _, problem := range checkPage(page, statements[page.Path], tests, checks) {
			t.Error(problem)
		}
	}
}

// The page is what the data generates.
func TestPageIsGenerated(t *testing.T) {
	pages, statements, checks, err := load()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(renderPage(pages, statements, checks)), string(got)); diff != "" {
		t.Errorf("%s is out of date (try: make generate); -generated +committed:\n%s", pagePath, diff)
	}
}

func TestReadStatements(t *testing.T) {
	got := readSentences([]byte(`# Title

Pods become *pending*. The [watcher](watcher.md) sends
a batch ("x. y").

![a picture. It shows nothing](a.svg)

` + "```sh\nmake demo # It runs.\n```" + `

## Steps

1. **A heading.** It keeps ` + "`a b`" + `: ` + "`c`" + ` is **bold.** It ends?
   Yes

| first | row |
|---|---|
| lost | sent [again](a.md) |

<!-- It is hidden. -->
<!-- figures: written by make figures -->
It costs $1.
<!-- figures: end -->
`))
	want := []Sentence{
		{"Title", "Pods become pending."},
		{"Title", `The watcher sends a batch ("x. y").`},
		{"Steps", "It keeps `a b`: `c` is bold."},
		{"Steps", "It ends?"},
		{"Steps", "Yes"},
		{"Steps", "lost | sent again"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

func TestCheckReportsEachProblem(t *testing.T) {
	repository := t.TempDir()
	if err := os.WriteFile(filepath.Join(repository, "one_test.go"), []byte("package one\n\nfunc TestThere(t *testing.T) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	statements := []Sentence{{"Steps", "It launches."}, {"Steps", "EC2 is slow."}}
	checks := map[string][]string{"no intent is launched twice": {"token-random"}, "pods run": nil}
	for _, c := range []struct {
		name   string
		change func(p *Page)
		want   string // Part of the problem; empty for none.
	}{
		{"complete", func(*Page) {}, ""},
		{"a check alone", func(p *Page) { p.Promises[0].Tests = nil }, ""},
		{"without evidence", func(p *Page) { p.Promises[0].Tests, p.Promises[0].Checks = nil, nil }, `"It launches." has no evidence`},
		{"a test that does not exist", func(p *Page) { p.Promises[0].Tests = []string{". TestGone"} }, ". has no test TestGone"},
		{"a check that no bug breaks", func(p *Page) { p.Promises[0].Checks = []string{"pods run"} }, ""},
		{"a check that does not exist", func(p *Page) { p.Promises[0].Checks = []string{"pods walk"} }, `the simulator has no check "pods walk"`},
		{"a promise that says nothing", func(p *Page) { p.Promises = append(p.Promises, Promise{}) }, "a promise says nothing"},
		{"a statement that is not listed", func(p *Page) { p.Background = nil }, `no evidence is listed for "EC2 is slow." (under "Steps")`},
		{"a statement that is listed twice", func(p *Page) { p.Background = append(p.Background, "It launches.") }, `not as often as listed: "It launches."`},
		{"a statement of another page", func(p *Page) { p.Background = append(p.Background, "It scales.") }, `page.md does not say, or not as often as listed: "It scales."`},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := Page{
				Path:       "page.md",
				Promises:   []Promise{{Says: []string{"It launches."}, Tests: []string{". TestThere"}, Checks: []string{"no intent is launched twice"}}},
				Background: []string{"EC2 is slow."},
			}
			c.change(&page)
			got := checkPage(page, statements, namedtests.New(repository), checks)
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("problems = %q, want one with %q", got, c.want)
			}
		})
	}
}
