package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/lint/repolint"
)

// example is a repository with pages, READMEs and a test.
var example = []repolint.File{
	{Path: "deploy/docs/README.md"}, {Path: "deploy/docs/a/page.md"}, {Path: "deploy/docs/figure.svg"}, {Path: "deploy/docs/b.md"},
	{Path: "infra/README.md"}, {Path: "infra/main.go"}, {Path: "tests/x_test.go", Text: "package x\n\nfunc TestX(t *testing.T) {}\n"},
}

func newExample() writer {
	s := settings{Repository: "https://example.com/r"}
	s.Extra.Outside = map[string]string{"install/cdk.md": "infra/README.md"}
	return newWriter(s, example)
}

func TestRewrite(t *testing.T) {
	for _, test := range []struct{ name, source, text, want string }{
		{"a page", "deploy/docs/a/page.md", "[b](../b.md#x) [here](#y) [w](https://example.org/z.md)", "[b](../b.md#x) [here](#y) [w](https://example.org/z.md)"},
		{"a figure", "deploy/docs/a/page.md", "![f](../figure.svg)", "![f](../figure.svg)"},
		{"a README that is a page", "deploy/docs/a/page.md", "[i](../../../infra/README.md#x)", "[i](../install/cdk.md#x)"},
		{"the folder of a README that is a page", "deploy/docs/b.md", "[i](../../infra)", "[i](install/cdk.md)"},
		{"a file on GitHub", "deploy/docs/b.md", "[m](../../infra/main.go)", "[m](https://example.com/r/blob/main/infra/main.go)"},
		{"a folder on GitHub", "deploy/docs/b.md", "[m](../../tests)", "[m](https://example.com/r/tree/main/tests)"},
		{"a page from a README", "infra/README.md", "[b](../deploy/docs/b.md) [f](../deploy/docs/figure.svg) [m](main.go)",
			"[b](../b.md) [f](../figure.svg) [m](https://example.com/r/blob/main/infra/main.go)"},
		{"a target that does not exist", "deploy/docs/b.md", "[n](../none.md)", "[n](../none.md)"},
		{"code", "deploy/docs/b.md", "```\n[m](../../infra/main.go)\n```", "```\n[m](../../infra/main.go)\n```"},
		{"a test", "deploy/docs/b.md", "<!-- run-by: TestX -->", "*Run by [`TestX`](https://example.com/r/blob/main/tests/x_test.go)*\n{: .run-by }\n"},
		{"items", "deploy/docs/b.md", "- a\n  b\n\n  ```sh\n  c\n  ```\n- d\n\n10. e\n    f\ng", "- a\n    b\n\n    ```sh\n    c\n    ```\n\n- d\n\n10. e\n    f\ng"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := newExample().rewrite(test.source, test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := newExample().rewrite("deploy/docs/b.md", "\n<!-- run-by: TestNone -->"); err == nil || !strings.Contains(err.Error(), "deploy/docs/b.md:2: the comment run-by names TestNone") {
		t.Errorf("an unknown test: %v", err)
	}
}

// The staged navigation has no optional page that does not exist, and no empty section.
func TestStage(t *testing.T) {
	root, into := t.TempDir(), t.TempDir()
	config := "repo_url: https://example.com/r\nextra:\n  outside: {install/cdk.md: infra/README.md}\n  optional: [later.md, b.md]\n" +
		"slug: !!python/object/apply:f {}\nnav:\n  - Home: README.md\n  - Soon:\n      - later.md\n  - B: b.md\n"
	for _, file := range append(example, repolint.File{Path: configFile, Text: config}) {
		if err := writeFile(filepath.Join(root, file.Path), file.Text); err != nil {
			t.Fatal(err)
		}
	}
	if err := stage(root, into, example); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(into, "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got); strings.Contains(text, "Soon") || !strings.Contains(text, "- B: b.md") || !strings.Contains(text, "!!python/object/apply:f") {
		t.Error(text)
	}
	for _, page := range []string{"README.md", "a/page.md", "figure.svg", "install/cdk.md"} {
		if _, err := os.Stat(filepath.Join(into, "pages", page)); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckLoads(t *testing.T) {
	for _, test := range []struct {
		element string
		loads   bool
	}{
		{`<script src="https://cdn.example.com/x.js">`, true}, {`<link rel="stylesheet" href=//fonts.example.com/x>`, true},
		{`<img alt="x" src='http://example.com/x.png'>`, true}, {`<a href="https://example.com">`, false}, {`<img src="../x.svg">`, false},
	} {
		folder := t.TempDir()
		if err := writeFile(filepath.Join(folder, "a", "x.html"), "<body>"+test.element); err != nil {
			t.Fatal(err)
		}
		if err := checkLoads(folder); (err != nil) != test.loads {
			t.Errorf("%s: %v", test.element, err)
		}
	}
	if err := checkLoads(t.TempDir()); err == nil {
		t.Error("a site without pages passes")
	}
}
