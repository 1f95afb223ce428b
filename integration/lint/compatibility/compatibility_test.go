package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every test and every source file that the table lists exists, and no entry is incomplete.
func TestTableIsTrue(t *testing.T) {
	areas, sources := loadTable(t)
	for _, problem := range checkAreas(areas, sources, root) {
		t.Error(problem)
	}
}

// The page is what the data generates.
func TestPageIsGenerated(t *testing.T) {
	areas, sources := loadTable(t)
	got, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(renderPage(areas, sources)), string(got)); diff != "" {
		t.Errorf("%s is out of date (try: make generate); -generated +committed:\n%s", pagePath, diff)
	}
}

func loadTable(t *testing.T) ([]Area, []Source) {
	t.Helper()
	areas, err := readAreas(data)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := findSources()
	if err != nil {
		t.Fatal(err)
	}
	return areas, sources
}

func TestCheckReportsEachProblem(t *testing.T) {
	repository := t.TempDir()
	writeFile(t, filepath.Join(repository, "services", "one", "one_test.go"), "package one\n\nfunc TestThere(t *testing.T) {}\n\nfunc (s suite) TestMethod() {}\n\nfunc helper() {}\n")
	upstream := t.TempDir()
	writeFile(t, filepath.Join(upstream, "pkg", "queue.go"), "package queue\n")
	sources := []Source{{Name: "core", Version: "v1", Dir: upstream}}
	for _, c := range []struct {
		name   string
		change func(b *Behaviour)
		want   string // Part of the problem; empty for none.
	}{
		{"complete", func(*Behaviour) {}, ""},
		{"without tests", func(b *Behaviour) { b.Tests = nil }, ""},
		{"a page of the documentation", func(b *Behaviour) { b.Home = []string{"docs Metrics"} }, ""},
		{"no text", func(b *Behaviour) { b.Text = "" }, "no behaviour"},
		{"no home", func(b *Behaviour) { b.Home = nil }, "no home"},
		{"a home that does not exist", func(b *Behaviour) { b.Home = []string{"core pkg/gone.go"} }, "pkg/gone.go does not exist in v1"},
		{"a home without its module", func(b *Behaviour) { b.Home = []string{"pkg/queue.go"} }, `home "pkg/queue.go" is not`},
		{"a page without a title", func(b *Behaviour) { b.Home = []string{"docs"} }, `home "docs" is not`},
		{"no status", func(b *Behaviour) { b.Status = "" }, `unknown status ""`},
		{"another status", func(b *Behaviour) { b.Status = "similar" }, `unknown status "similar"`},
		{"different without a reason", func(b *Behaviour) { b.Status = "different" }, "is different and has no note"},
		{"absent without a reason", func(b *Behaviour) { b.Status = "absent" }, "is absent and has no note"},
		{"different with a reason", func(b *Behaviour) { b.Status, b.Note = "different", "It costs less." }, ""},
		{"a test that does not exist", func(b *Behaviour) { b.Tests = []string{"services/one TestGone"} }, "services/one has no test TestGone"},
		{"a method", func(b *Behaviour) { b.Tests = []string{"services/one TestMethod"} }, "services/one has no test TestMethod"},
		{"a test of another folder", func(b *Behaviour) { b.Tests = []string{"services TestThere"} }, "services has no test TestThere"},
		{"a folder alone", func(b *Behaviour) { b.Tests = []string{"services/one"} }, `test "services/one" is not`},
		{"a helper", func(b *Behaviour) { b.Tests = []string{"services/one helper"} }, `test "services/one helper" is not`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Behaviour{Text: "It evicts pods.", Home: []string{"core pkg/queue.go"}, Status: "same", Tests: []string{"services/one TestThere"}}
			c.change(&b)
			got := checkAreas([]Area{{Title: "Termination", Behaviours: []Behaviour{b}}}, sources, repository)
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadAreasRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a misspelt field": "area: A\nbehaviours:\n- behavior: It evicts pods.\n",
		"no area":          "",
		"a list":           "- behaviour: It evicts pods.\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "a.yaml"), text)
			if areas, err := readAreas(dir); err == nil {
				t.Errorf("read %+v", areas)
			}
		})
	}
	t.Run("an empty folder", func(t *testing.T) {
		if _, err := readAreas(t.TempDir()); err == nil {
			t.Error("no error")
		}
	})
}

func TestRenderPage(t *testing.T) {
	page := string(renderPage([]Area{{Title: "Termination", Behaviours: []Behaviour{
		{
			Text: "Pods are evicted | in order.", Home: []string{"core pkg/queue.go", "docs Disruption"}, Status: "different", Note: "Large pods go first.",
			Tests: []string{"services/one TestA", "services/one TestB", "shared TestC"},
		},
		{Text: "Nodes go.", Home: []string{"core pkg/queue.go"}, Status: "same", Note: "Soon."},
	}}}, []Source{{Name: "core", Version: "v1.2.3", URL: "https://example.com/"}}))
	for _, want := range []string{
		"Karpenter v1.2.3", "2 behaviours", "of which 1 are the same, 1 differ and 0 are absent", "\n## Termination\n",
		"| Pods are evicted \\| in order. | [core pkg/queue.go], Disruption | **different**: Large pods go first. | services/one `TestA`, `TestB`; shared `TestC` |\n",
		"| Nodes go. | [core pkg/queue.go] | same. Soon. | none |\n",
		"\n\n[core pkg/queue.go]: https://example.com/pkg/queue.go\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
