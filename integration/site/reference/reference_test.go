package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesAreCurrent fails if the code has changed since the pages were written.
func TestPagesAreCurrent(t *testing.T) {
	pages, err := renderPages()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date (-want +got); try: cd integration && go generate ./site/reference\n%s", path, diff)
		}
	}
}

func TestPagesHaveEverything(t *testing.T) {
	pages, err := renderPages()
	if err != nil {
		t.Fatal(err)
	}
	for path, wants := range map[string][]string{
		"deploy/docs/cli.md": {"## joist\n", "## joist dead list\n", "```sh\njoist plan ", "--price-limit"},
		"deploy/docs/names.md": {
			"| `joist.sh/consolidation-min-saving` | the minimum saving of a consolidation", "| `karpenter.sh/do-not-disrupt` | \"true\" on a Pod", "| `karpenter.sh/termination` |",
			"| `karpenter.k8s.aws/instance-family` | c7gn of c7gn.large |", "| `ConsistentStateFound` |", "| `DriftHalted` | Warning, Joist's own |", "| `SpotInterrupted` | Warning |",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(string(pages[path]), want) {
				t.Errorf("%s has no %q", path, want)
			}
		}
	}
	for _, name := range set {
		if !strings.Contains(string(pages["deploy/docs/names.md"]), "| `"+name+"` |") {
			t.Errorf("no annotation is called %s", name)
		}
	}
}

func TestAdaptSection(t *testing.T) {
	const given = "## joist x\n\nDoes x\n\n### Synopsis\n\nDoes x well.\n\n```\njoist x [flags]\n```\n\n### Examples\n\n```\n  joist x -f a\n  joist x\n```\n\n### Options\n\n```\n  -f, --file\n```\n\n### SEE ALSO\n\n* [joist](joist.md)\n"
	const want = "## joist x\n\nDoes x\n\nDoes x well.\n\n```text\njoist x [flags]\n```\n\nExamples:\n\n```sh\njoist x -f a\njoist x\n```\n\nOptions:\n\n```text\n  -f, --file\n```\n\n"
	if diff := cmp.Diff(want, adaptSection(given)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
