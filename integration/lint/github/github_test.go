package github

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"

	"github.com/joist-autoscaler/joist/integration/lint/readme"
	"github.com/joist-autoscaler/joist/integration/lint/repolint"
)

const root = "../../.."

// project lets actionlint find the repository's own actions.
func project(t *testing.T) *actionlint.Project {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := actionlint.NewProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func load(t *testing.T) ([]repolint.File, readme.Repository) {
	t.Helper()
	files, err := repolint.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := readme.Load(root, files)
	if err != nil {
		t.Fatal(err)
	}
	return files, repository
}

func TestRepository(t *testing.T) {
	files, repository := load(t)
	project := project(t)
	var names []string
	var dependabot string
	workflows := map[string]bool{}
	for _, file := range files {
		names = append(names, file.Path)
		text := []byte(file.Text)
		isWorkflow := path.Dir(file.Path) == ".github/workflows"
		if isWorkflow {
			workflows[path.Base(file.Path)] = true
			report(t, file.Path)(lintWorkflow(file.Path, text, project))
			report(t, file.Path)(findWideToken(text))
			report(t, file.Path)(findBrokenCommands(text, repository))
		}
		if isWorkflow || strings.HasPrefix(file.Path, ".github/actions/") {
			report(t, file.Path)(findUnpinned(text))
		}
		if file.Path == ".github/dependabot.yml" {
			dependabot = file.Text
		}
	}
	report(t, ".github/dependabot.yml")(findUnlisted([]byte(dependabot), names))
	for _, want := range []string{"pull-request.yaml", "nightly.yaml", "release.yaml"} {
		if !workflows[want] {
			t.Errorf("the workflow %s is missing", want)
		}
	}
}

func report(t *testing.T, file string) func(findings []string, err error) {
	return func(findings []string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, finding := range findings {
			t.Errorf("%s: %s", file, finding)
		}
	}
}

const workflow = `
on: push
permissions: {contents: read}
jobs:
  test:
    runs-on: ubuntu-24.04
    steps:
      - uses: ./.github/actions/setup
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with: {persist-credentials: false}
      - run: make ${{ matrix.target }}
        env: {REF: "${{ github.ref }}"}
    strategy:
      matrix: {target: [test, verify]}
`

func TestWorkflowChecks(t *testing.T) {
	project := project(t)
	_, repository := load(t)
	const pin = "@3d3c42e5aac5ba805825da76410c181273ba90b1"
	for _, tt := range []struct {
		name, old, new string
		want           string // part of the only finding; empty for none
	}{
		{"correct", "", "", ""},
		{"unknown key", "runs-on:", "run-on:", `"runs-on" section is missing`},
		{"unknown context", "github.ref }}", "github.reff }}", `property "reff" is not defined`},
		{"unknown event", "on: push", "on: pushed", `unknown Webhook event "pushed"`},
		{"untrusted text in a script", "make ${{ matrix.target }}", `echo ${{ github.event.head_commit.message }}`, "potentially untrusted"},
		{"input that the repository's action lacks", "actions/setup\n", "actions/setup\n        with: {go: 1.26}\n", `input "go" is not defined`},
		{"tag of an action", pin, "@v7", "is not pinned"},
		{"short commit", pin, "@3d3c42e", "is not pinned"},
		{"pin without version", "# v7.0.1", "", "is not pinned"},
		{"image", "actions/checkout" + pin, "docker://alpine:3", "is not pinned"},
		{"make target that does not exist", "[test, verify]", "[test, prof]", "make has no target prof"},
		{"package that does not exist", "make ${{ matrix.target }}", "go run ./integration/absent", "there is no package"},
		{"no permissions", "permissions: {contents: read}\n", "", "permissions of the workflow are missing"},
		{"all permissions", "{contents: read}", "write-all", "permissions of the workflow are missing"},
		{"wide permission", "{contents: read}", "{contents: write}", "every job may write contents"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := []byte(strings.Replace(workflow, tt.old, tt.new, 1))
			findings, err := lintWorkflow(".github/workflows/planted.yaml", text, project)
			if err != nil {
				t.Fatal(err)
			}
			findCommands := func(text []byte) ([]string, error) { return findBrokenCommands(text, repository) }
			for _, check := range []func([]byte) ([]string, error){findUnpinned, findWideToken, findCommands} {
				found, err := check(text)
				if err != nil {
					t.Fatal(err)
				}
				findings = append(findings, found...)
			}
			all := strings.Join(findings, "\n")
			if (tt.want == "") != (all == "") || !strings.Contains(all, tt.want) {
				t.Errorf("findings %q, want one with %q", findings, tt.want)
			}
		})
	}
}

func TestFindUnlisted(t *testing.T) {
	const config = `updates: [{package-ecosystem: gomod, directories: [/, /a]}, {package-ecosystem: npm, directories: [/a]}, {package-ecosystem: github-actions, directories: [/]}]`
	for _, tt := range []struct {
		name  string
		files []string
		want  int
	}{
		{"all listed", []string{"go.mod", "a/go.mod", "a/package.json", "b/testdata/go.mod", "b/x.go"}, 0},
		{"a new module", []string{"go.mod", "a/go.mod", "a/package.json", "a/b/go.mod"}, 1},
		{"another ecosystem", []string{"go.mod", "a/go.mod", "a/package.json", "a/requirements.txt"}, 1},
		{"a removed module", []string{"go.mod", "a/package.json"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			findings, err := findUnlisted([]byte(config), tt.files)
			if err != nil {
				t.Fatal(err)
			}
			if len(findings) != tt.want {
				t.Errorf("findings %q, want %d", findings, tt.want)
			}
		})
	}
}
