package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// validGraph returns a small graph without violations; each case below breaks one rule
// and expects its name.
func validGraph() Graph {
	g := Graph{}
	for path, imports := range map[string][]string{
		"shared/event":                           {"time", own("shared/fault")},
		"shared/fault":                           {"errors"},
		"shared/queue":                           {"context", own("shared/event")},
		"shared/planning/solver":                 {"k8s.io/api/core/v1", own("shared/catalog")},
		"shared/catalog":                         {"sort"},
		"shared/queue/batcher":                   {own("shared/fault")},
		"shared/queue/sqsqueue":                  {own("shared/queue"), "github.com/aws/aws-sdk-go-v2/service/sqs"},
		"shared/cloud/ec2cloud":                  {"github.com/aws/aws-sdk-go-v2/service/ec2"},
		"shared/cluster/kubecluster":             {"k8s.io/client-go/kubernetes"},
		"shared/queue/memqueue":                  {own("shared/queue"), "math/rand/v2"},
		"shared/host":                            {own("shared/queue")},
		"services/launcher":                      {own("shared/host"), own("shared/queue")},
		"services/launcher/cmd/joist-launcher":   {own("services/launcher"), own("shared/cloud/ec2cloud")},
		"services/lifecycle":                     {own("shared/host")},
		"services/lifecycle/cmd/joist-lifecycle": {own("services/lifecycle"), own("shared/cluster/kubecluster")},
		"services/planner":                       {own("shared/planning/solver")},
		"services/watcher":                       {own("shared/host")},
		"services/interruption":                  {own("shared/host")},
		"services/cli":                           {own("services/planner"), own("services/launcher")},
		"services/cli/cmd/joist":                 {own("services/cli")},
		"services/cli/cmd/joist-demo":            {own("services/cli/internal/demo")},
		"services/cli/internal/demo":             {own("services/planner")},
		"shared/planning/planvalidator":          {"k8s.io/api/core/v1"},
		"integration/environment/testbed":        {own("integration/environment/fakeaws")},
		"integration/lint/readme":                {own("integration/environment/helm")},
	} {
		g[own(path)] = Package{Path: own(path), Imports: imports}
	}
	g["k8s.io/client-go/kubernetes"] = Package{Path: "k8s.io/client-go/kubernetes", Dependency: true}
	g["example.com/wrapper"] = Package{Path: "example.com/wrapper", Dependency: true, Imports: []string{"github.com/aws/aws-sdk-go-v2/service/ec2"}}
	g["github.com/google/cel-go/cel"] = Package{Path: "github.com/google/cel-go/cel", Dependency: true, Imports: []string{"text/template"}}
	return g
}

func own(path string) string { return Module + "/" + path }

func TestCorrectImportsPass(t *testing.T) {
	for _, violation := range Check(validGraph(), Table()) {
		t.Error(violation)
	}
}

func TestEachRuleFindsItsViolation(t *testing.T) {
	for _, tt := range []struct {
		name    string
		subject string
		adds    string
		test    bool
		want    string // name of the rule, or "" if the import is permitted
	}{
		{"a library in the contract", "shared/event", "github.com/google/go-cmp/cmp", false, "event and fault use the standard library alone"},
		{"a port in the contract", "shared/fault", own("shared/queue"), false, "event and fault use the standard library alone"},
		{"a library in the contract's tests", "shared/event", "pgregory.net/rapid", true, ""},
		{"an SDK in a port", "shared/queue", "github.com/aws/aws-sdk-go-v2/aws", false, "decisions use no technology"},
		{"an SDK behind a library in a decision", "shared/catalog", "example.com/wrapper", false, "decisions use no technology"},
		{"client-go in a decision", "shared/planning/solver", "k8s.io/client-go/kubernetes", false, "decisions use no technology"},
		{"Kubernetes types in a decision", "shared/catalog", "k8s.io/apimachinery/pkg/api/resource", false, ""},
		{"the host in a decision", "shared/planning/solver", own("shared/host"), false, "decisions import no adapter, model or host"},
		{"a model in a port", "shared/queue", own("shared/queue/memqueue"), false, "decisions import no adapter, model or host"},
		{"a model in a port's tests", "shared/queue", own("shared/queue/memqueue"), true, ""},
		{"random numbers in a decision", "shared/planning/solver", "math/rand/v2", false, "decisions draw no random numbers"},
		{"cryptographic random numbers in the contract", "shared/event", "crypto/rand", false, "decisions draw no random numbers"},
		{"a service in shared", "shared/host", own("services/planner"), false, "shared imports no service"},
		{"a service in the tests of shared", "shared/host", own("services/planner"), true, "shared imports no service"},
		{"adapters together", "shared/queue/sqsqueue", own("shared/cloud/ec2cloud"), false, "adapters and models do not import each other"},
		{"models together", "shared/queue/memqueue", own("shared/blob/memblob"), false, "adapters and models do not import each other"},
		{"a higher layer", "shared/queue", own("shared/catalog"), false, "shared/queue imports only lower layers"},
		{"a lower layer", "shared/planning/solver", own("shared/queue"), false, ""},
		{"an adapter in a helper of its port", "shared/queue/batcher", own("shared/queue/sqsqueue"), false, "decisions import no adapter, model or host"},
		{"an SDK in a helper of a port", "shared/queue/batcher", "github.com/aws/aws-sdk-go-v2/service/sqs", false, "only adapters use an SDK"},
		{"an adapter in a model", "shared/queue/memqueue", own("shared/queue/sqsqueue"), false, "adapters and models do not import each other"},
		{"Kubernetes in the launcher", "services/launcher/cmd/joist-launcher", own("shared/cluster/kubecluster"), false, "only watcher, lifecycle and cli use client-go"},
		{"client-go in the planner", "services/planner", "k8s.io/client-go/kubernetes", false, "only watcher, lifecycle and cli use client-go"},
		{"EC2 in the lifecycle", "services/lifecycle/cmd/joist-lifecycle", own("shared/cloud/ec2cloud"), false, "only launcher, catalog, interruption and cli use the EC2 SDK"},
		{"EC2 in the watcher through a library", "services/watcher", "example.com/wrapper", false, "only launcher, catalog, interruption and cli use the EC2 SDK"},
		{"an SDK in a handler", "services/launcher", "github.com/aws/aws-sdk-go-v2/service/sqs", false, "only adapters use an SDK"},
		{"an SDK in a command", "services/launcher/cmd/joist-launcher", "github.com/aws/aws-sdk-go-v2/service/sqs", false, ""},
		{"Karpenter in a service", "services/planner", "sigs.k8s.io/karpenter/pkg/scheduling", false, "only integration imports upstream Karpenter"},
		{"Karpenter in a service's tests", "services/planner", "sigs.k8s.io/karpenter/pkg/scheduling", true, "only integration imports upstream Karpenter"},
		{"a service in another", "services/planner", own("services/launcher"), false, "no service imports another"},
		{"a service in another's tests", "services/planner", own("services/launcher"), true, "no service imports another"},
		{"a service in the cli", "services/cli", own("services/watcher"), false, ""},
		{"integration in the cli", "services/cli", own("integration/suites/sim"), false, "the cli imports no integration test"},
		{"the planner in the validator", "shared/planning/planvalidator", own("shared/planning/solver"), false, "the plan validator shares no code with the planner"},
		{"html/template in a function", "services/launcher/cmd/joist-launcher", "html/template", false, "deployed services import no template engine"},
		{"html/template in a handler", "services/launcher", "html/template", false, "deployed services import no template engine"},
		{"text/template in a handler", "services/launcher", "text/template", false, "deployed services import no template engine"},
		{"CEL in a function, which imports text/template", "services/launcher/cmd/joist-launcher", "github.com/google/cel-go/cel", false, ""},
		{"CEL in the interruption service", "services/interruption", "github.com/google/cel-go/cel", false, "interruption links no CEL"},
		{"html/template in the cli", "services/cli", "html/template", false, "the cli imports no html/template"},
		{"text/template in the cli, which cobra imports", "services/cli", "text/template", false, ""},
		{"an SDK in the demo", "services/cli/internal/demo", "example.com/wrapper", false, "the demo links no SDK"},
		{"client-go in the demo", "services/cli/cmd/joist-demo", "k8s.io/client-go/kubernetes", false, "the demo links no SDK"},
		{"an SDK in the cli", "services/cli", "example.com/wrapper", false, ""},
		{"a suite in the environment", "integration/environment/testbed", own("integration/suites/sim"), true, "the test environment imports no suite"},
		{"a suite in a repository check", "integration/lint/readme", own("integration/suites/charts"), false, "benchmarks and repository checks import no suite"},
		{"Karpenter in the validator", "shared/planning/planvalidator", "sigs.k8s.io/karpenter/pkg/scheduling", false, "the plan validator shares no code with the planner"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := validGraph()
			p := g[own(tt.subject)]
			if p.Path == "" {
				t.Fatalf("the graph has no %s", tt.subject)
			}
			if tt.test {
				p.TestImports = append(slices.Clone(p.TestImports), tt.adds)
			} else {
				p.Imports = append(slices.Clone(p.Imports), tt.adds)
			}
			g[p.Path] = p
			got := names(Check(g, Table()))
			if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("%s importing %s: got violations %q, want %q", tt.subject, tt.adds, got, tt.want)
			}
		})
	}
}

func names(violations []Violation) []string {
	var all []string
	for _, v := range violations {
		all = append(all, v.Rule.Name)
	}
	return all
}

func TestAViolationTellsTheWayAndTheRemedy(t *testing.T) {
	g := validGraph()
	g[own("services/watcher")] = Package{Path: own("services/watcher"), Imports: []string{"example.com/wrapper"}}
	message := fmt.Sprint(Check(g, Table()))
	for _, want := range []string{
		own("services/watcher") + " imports example.com/wrapper imports github.com/aws/aws-sdk-go-v2/service/ec2",
		"why:", "fix:",
	} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %q:\n%s", want, message)
		}
	}
}

func TestEveryRuleExplainsItself(t *testing.T) {
	for _, rule := range Table() {
		if rule.Name == "" || rule.Reason == "" || rule.Fix == "" || len(rule.Packages) == 0 || len(rule.Forbid) == 0 {
			t.Errorf("incomplete rule: %+v", rule)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"k8s.io/client-go/...", "k8s.io/client-go", true},
		{"k8s.io/client-go/...", "k8s.io/client-go/rest", true},
		{"k8s.io/client-go/...", "k8s.io/client-gopher", false},
		{"time", "time", true},
		{"time", "time/tzdata", false},
		{"./shared/event/...", own("shared/event"), true},
		{"./shared/event/...", own("shared/queue/eventbus"), false},
		{"./shared/queue/*test/...", own("shared/queue/queuetest"), true},
		{"./shared/queue/*test/...", own("shared/queue"), false},
		{"./services/*/cmd/...", own("services/launcher/cmd/joist-launcher"), true},
		{"./services/*/cmd/...", own("services/launcher/internal/cmd"), false},
		{outside, "fmt", false},
		{outside, own("shared/event"), false},
		{outside, "k8s.io/api", true},
	} {
		if got := match(tt.pattern, tt.path); got != tt.want {
			t.Errorf("match(%q, %q) = %t, want %t", tt.pattern, tt.path, got, tt.want)
		}
	}
}

func TestClocksAreFound(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		want         int
	}{
		{"a call", "package p\nimport \"time\"\nvar t = time.Now()", 1},
		{"a value", "package p\nimport \"time\"\nvar clock = time.Now", 1},
		{"another name", "package p\nimport clock \"time\"\nvar t = clock.Now()", 1},
		{"a dot import", "package p\nimport . \"time\"\nvar t = Now()", 1},
		{"two uses", "package p\nimport \"time\"\nfunc f() { time.Sleep(1); <-time.After(1) }", 2},
		{"a duration", "package p\nimport \"time\"\nconst d = 3 * time.Second", 0},
		{"another Now", "package p\ntype c struct{ Now int }\nvar time c\nvar t = time.Now", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := write(t, tt.source)
			g := Graph{own("shared/queue"): {Path: own("shared/queue"), Files: []string{file}}}
			got, err := CheckCalls(g, Bans())
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != tt.want {
				t.Errorf("got %d findings, want %d: %q", len(got), tt.want, got)
			}
		})
	}
}

func TestMainsThatDoMoreAreFound(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		want         int
	}{
		{"wiring", "package main\nfunc main() {}\ntype wire struct{}\nfunc (wire) Close() {}\n", 0},
		{"an exported type", "package main\ntype Wire struct{}\n", 1},
		{"an exported function", "package main\nfunc Run() {}\n", 1},
		{"an exported constant", "package main\nconst Limit = 1\n", 1},
		{"too long", "package main\n" + strings.Repeat("\n", mainLinesMax), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := CheckMain(write(t, tt.source))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != tt.want {
				t.Errorf("got %d findings, want %d: %q", len(got), tt.want, got)
			}
		})
	}
}

func TestAbsences(t *testing.T) {
	client := Absence{"services/launcher", "k8s.io/client-go", "no rights"}
	cdk := Absence{"services/launcher", "github.com/aws/aws-cdk-go/", "no CDK"}
	for _, tt := range []struct {
		name    string
		absence Absence
		require string
		want    bool
	}{
		{"the module", client, "k8s.io/client-go", true},
		{"a neighbour", client, "k8s.io/api", false},
		{"below a prefix", cdk, "github.com/aws/aws-cdk-go/awscdk/v2", true},
		{"next to a prefix", cdk, "github.com/aws/aws-sdk-go-v2", false},
	} {
		if _, got := tt.absence.Judge([]string{tt.require}); got != tt.want {
			t.Errorf("%s: broken = %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestALoadedModuleWithAHoleIsAnError loads a module with an import that cannot be
// resolved.
func TestALoadedModuleWithAHoleIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module " + Module + "/shared\n\ngo 1.26.0\n",
		"p.go":   "package shared\n\nimport _ \"" + Module + "/shared/absent\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(dir, false, ""); err == nil {
		t.Error("a graph with a missing package was accepted")
	}
}

// TestALoadedModuleIsJudgedUnderEveryTag checks that build tags hide no import.
func TestALoadedModuleIsJudgedUnderEveryTag(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module " + Module + "/shared\n\ngo 1.26.0\n",
		"queue/queue.go":  "package queue\n",
		"queue/tagged.go": "//go:build never\n\npackage queue\n\nimport _ \"crypto/rand\"\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := Load(dir, false, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := names(Check(g, Table())); !slices.Contains(got, "decisions draw no random numbers") {
		t.Errorf("got violations %q", got)
	}
}

func write(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "source.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
