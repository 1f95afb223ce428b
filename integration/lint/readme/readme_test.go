package readme_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/lint/readme"
	"github.com/joist-autoscaler/joist/integration/lint/repolint"
)

const root = "../../.."

var load = sync.OnceValues(func() (readme.Repository, error) {
	files, err := repolint.Files(root)
	if err != nil {
		return readme.Repository{}, err
	}
	return readme.Load(root, files)
})

func repository(t *testing.T) readme.Repository {
	t.Helper()
	r, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every command on a page could work.
func TestPages(t *testing.T) {
	files, err := repolint.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	r, commands := repository(t), map[string]int{}
	for _, file := range files {
		if !strings.HasSuffix(file.Path, ".md") || strings.Contains(file.Path, "/testdata/") {
			continue
		}
		snippets, unlabelled := readme.Snippets(file.Text, readme.Begins())
		for _, u := range unlabelled {
			t.Errorf("%s:%d: %q stands in a block without a language: say sh, or console where answers follow", file.Path, u.Line, u.Text)
		}
		for _, s := range snippets {
			found, err := readme.Parse(s.Text)
			if err != nil {
				t.Errorf("%s:%d: %v", file.Path, s.Line, err)
			}
			for _, c := range found {
				commands[file.Path]++
				if err := r.Check(c, path.Dir(file.Path), s.Inline); err != nil {
					t.Errorf("%s:%d: %s: %v", file.Path, s.Line, strings.Join(c.Args, " "), err)
				}
			}
		}
	}
	// A parser that finds no commands would accept every page.
	for page, least := range map[string]int{"README.md": 8, "infra/README.md": 8, "deploy/README.md": 4, "deploy/quickstart/README.md": 8,
		"deploy/charts/joist/README.md": 2, "deploy/charts/joist-crd/README.md": 2, "CONTRIBUTING.md": 6, "deploy/docs/runbooks/denied.md": 3} {
		if commands[page] < least {
			t.Errorf("%s has %d commands, and at least %d were there", page, commands[page], least)
		}
	}
}

// executedPages are the pages on which a comment above each block of commands names the tests that run it.
var executedPages = []string{"deploy/docs/getting-started.md"}

// Every block of commands of the first steps is run by a test.
func TestFirstStepsAreExecuted(t *testing.T) {
	r := repository(t)
	for _, page := range executedPages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found, problems := readme.RunBy(string(text))
		for _, problem := range problems {
			t.Errorf("%s: %s", page, problem)
		}
		if len(found) < 5 {
			t.Errorf("%s has %d blocks of commands, and at least 5 were there", page, len(found))
		}
		for _, block := range found {
			for _, name := range block.Tests {
				if !slices.ContainsFunc(slices.Collect(maps.Values(r.Tests)), func(tests []string) bool { return slices.Contains(tests, name) }) {
					t.Errorf("%s: no test is called %s", page, name)
				}
			}
		}
	}
}

func TestRunBy(t *testing.T) {
	const page = "<!-- run-by: TestA, TestB -->\n```sh\nmake a\n```\n\n```sh\nmake b\n```\n\n```yaml\nx: y\n```\n"
	blocks, problems := readme.RunBy(page)
	if diff := cmp.Diff([]readme.Block{{Tests: []string{"TestA", "TestB"}, Text: "make a\n"}}, blocks); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"line 7: no comment run-by above the block names a test"}, problems); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSnippets(t *testing.T) {
	const page = "Run `make test`, see `make` and `go.mod`.\n\n```sh\nmake demo # plays\n\nmake build\n```\n```console\n$ joist version\njoist 1\n```\n" +
		"```\nmake lint\nmade\n```\n\n    joist queues\n\n    prose\n```yaml\nmake: x\n```\n"
	snippets, unlabelled := readme.Snippets(page, readme.Begins())
	want := []readme.Snippet{{Line: 1, Text: "make test", Inline: true}, {Line: 4, Text: "make demo # plays\n\nmake build\n"}, {Line: 9, Text: "joist version"}, {Line: 17, Text: "joist queues"}}
	if diff := cmp.Diff(want, snippets); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(unlabelled) != 1 || unlabelled[0].Line != 13 {
		t.Errorf("%v", unlabelled)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want []readme.Command
	}{
		{`a "b c" 'd' e\.f "g\.h" # i`, []readme.Command{{Args: []string{"a", "b c", "d", "e.f", `g\.h`}}}},
		{"(cd x && A=1 b)\nc", []readme.Command{{Args: []string{"cd", "."}, Dir: "x"}, {Args: []string{"b"}, Dir: "x", Set: map[string]string{"A": "1"}}, {Args: []string{"c"}}}},
		{"cd x; cd y\na | b", []readme.Command{{Args: []string{"cd", "."}, Dir: "x"}, {Args: []string{"cd", "."}, Dir: "x/y"}, {Args: []string{"a"}, Dir: "x/y"}, {Args: []string{"b"}, Dir: "x/y"}}},
		{"for f in 1 2; do a < $f.yaml | b -f -; done", []readme.Command{{Args: []string{"a"}, Reads: []string{"${f}.yaml"}}, {Args: []string{"b", "-f", "-"}}}},
		{`eval "$(a b)"`, []readme.Command{{Args: []string{"eval", "$(a b)"}}, {Args: []string{"a", "b"}}}},
		{`x=$(cd y && a)
b "$(cd z; c)"
d`, []readme.Command{{Args: []string{"cd", "."}, Dir: "y"}, {Args: []string{"a"}, Dir: "y"}, {Args: []string{"b", "$(cd z; c)"}}, {Args: []string{"cd", "."}, Dir: "z"}, {Args: []string{"c"}, Dir: "z"}, {Args: []string{"d"}}}},
		{"a <(cd y; b)\nc", []readme.Command{{Args: []string{"a", "<(cd y; b)"}}, {Args: []string{"cd", "."}, Dir: "y"}, {Args: []string{"b"}, Dir: "y"}, {Args: []string{"c"}}}},
		{"export A=b", []readme.Command{{Args: []string{"export"}}}},
	} {
		got, err := readme.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if len(got[i].Set) == 0 {
				got[i].Set = nil
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.text, diff)
		}
	}
	if _, err := readme.Parse("a && ("); err == nil {
		t.Error("half a command was read")
	}
}

// Commands that cannot work are reported, and others are not.
func TestChecksBite(t *testing.T) {
	r := repository(t)
	for _, test := range []struct{ text, says string }{
		{"make test", ""}, {"make demo ARGS='--seed 7'", ""}, {"make tests", "no target tests"}, {"make demo ARG=1", "no variable ARG"},
		{"joist dead show ID -o json", ""}, {"joist replay --queue SERVICE --cluster NAME", ""}, {"joist plan -f deploy/quickstart --region eu-west-1", ""},
		{"joist plan -f", "needs a value"}, {"joist deed list", `unknown command "deed"`}, {"joist dead lists", `unknown command "lists"`}, {"joist queues --clusters x", "unknown flag --clusters"},
		{"helm upgrade --install joist deploy/charts/joist --set settings.clusterName=x", ""}, {`helm template joist deploy/charts/joist --set watcher.serviceAccount.annotations."eks\.amazonaws\.com/role-arn"=x`, ""},
		{"helm upgrade --install joist deploy/charts/joist --set settings.cluster=x", "no value settings.cluster"}, {"helm upgrade joist deploy/chart", "no chart deploy/chart"},
		{"helm upgrade joist deploy/charts/joist --atomics", "unknown flag"}, {"helm rollback joist", ""}, {"helm history joist", "not known here"},
		{"helm upgrade --install joist oci://ghcr.io/joist-autoscaler/charts/joist --version 0.1.0 --set settings.cluster=x", "no value settings.cluster"}, {"helm test joist --namespace joist", ""},
		{"helm upgrade --install joist oci://ghcr.io/joist-autoscaler/charts/joists", "no chart oci://ghcr.io"},
		{"kubectl apply -f deploy/quickstart", ""}, {"kubectl get nodeclaims -w", ""}, {"kubectl apply -f deploy/quickstart/none.yaml", "no deploy/quickstart/none.yaml"},
		{"kubectl apply -f deploy/charts/joist/values.yaml", "no manifest"}, {"kubectl get nodeclaimes", "no kind nodeclaimes"}, {"kubectl explode pod", "not known here"}, {"kubectl delete pod --kindly", "unknown flag"},
		{"go test ./integration/lint/readme -run TestChecksBite", ""}, {"go test ./integration/... -run '^TestChecksBite$'", ""}, {"go test ./integration/lint/readme -run TestNobody", "is called TestNobody"},
		{"go test -run TestChecksBite", "no package that they are in"}, {"go test -bench . integration/lint/readme", "no package that they are in"}, {"go test ./integration/lint/readme -bench Nobody", "is called Nobody"},
		{"go test ./integration/lint/readme -bench ChecksBite", "is called ChecksBite"}, {"go test ./shared/... -run TestNone -bench .", "is called TestNone"}, {"go test ./shared/... -run '^$' -bench=.", ""},
		{"go run ./services/none", "no package ./services/none"}, {"go install github.com/google/ko@latest", "has no version"}, {"go get x", "not known here"},
		{"cd infra && npx aws-cdk@2.1148.1 deploy --context clusterName=x", ""}, {"cd infra && npx aws-cdk@2.1148.1 deploy --context cluster=x", "no key of the context cluster"},
		{"npx cdk-assets@4.7.3 publish --path x", ""}, {"npx cdk-assets@4.7.3 push", "cdk-assets push is not known here"}, {"npx aws-cdk@2.1148.1 deploy", "no cdk.json"}, {"cd infra && npx aws-cdk@1.0.0 deploy", "something else"}, {"cd infra && npx aws-cdk@2.1148.1 deploi", "not known here"},
		{`aws cloudformation describe-stacks --query "Stacks[0].Outputs[?OutputKey=='HelmCommand'].OutputValue"`, ""}, {`aws cloudformation describe-stacks --query "Outputs[?OutputKey=='Helm']"`, "no output of the stack Helm"},
		{"aws ec2 list-instances", "no command of AWS's ec2 list-instances"},
		{"ko build ./services/watcher/cmd/joist-watcher", ""}, {"ko build ./services/watcher/cmd/watcher", "no ./services/watcher/cmd/watcher/main.go"},
		{"envsubst < deploy/quickstart/$file.yaml", ""}, {"envsubst < deploy/$file.yml", "no deploy/${file}.yml"}, {"cd nowhere", "there is no ."},
		{"terraform -chdir=deploy/terraform/examples/terraform-aws-eks apply", ""}, {"terraform -chdir=deploy/terraforms init", "no deploy/terraforms/*.tf"}, {"terraform graph", "terraform graph is not known here"},
		{"kubectl get pods -A", ""}, {"pulumi up", "nothing checks pulumi"},
	} {
		commands, err := readme.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range commands {
			if err := r.Check(c, ".", false); err != nil {
				said = append(said, err.Error())
			}
		}
		if got := strings.Join(said, "; "); (test.says == "") != (got == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q does not say %q", test.text, got, test.says)
		}
	}
}
