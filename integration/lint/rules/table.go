package rules

import "slices"

// layers are the folders of shared, from the lowest. A package may import its own folder
// and lower ones.
var layers = []string{
	"fault", "event", // What services of different versions must agree on.
	"aws", "karpenter", "topology",
	"queue", "blob", "cloud", "cluster", // Ports, each with adapters, an in-memory model and a conformance suite.
	"catalog", "manifest", "planning", "launchspec", "scenario",
	"host", // Runs handlers.
}

// The packages of shared, by directory.
var (
	contract = below("shared", "event", "fault")
	models   = []string{"./shared/*/mem*/..."}
	suites   = []string{"./shared/*/*test/...", "./shared/*/*/*test/..."}
	// adapters wrap one technology each. They are below their ports, with models, suites
	// and helpers that use no technology.
	adapters = []string{
		"./shared/queue/*/...", "./shared/blob/*/...", "./shared/cloud/*/...", "./shared/cluster/*/...",
		"!./shared/*/mem*/...", "!./shared/*/*test/...", "!./shared/*/*/*test/...",
		"!./shared/queue/batcher/...", "!./shared/queue/eventpattern/...", "!./shared/cluster/lease/...", "!./shared/cluster/outbox/...",
	}
	// decisions are the packages with decisions: pure functions and ports.
	decisions = slices.Concat(
		below("shared", slices.DeleteFunc(slices.Clone(layers), func(layer string) bool { return layer == "aws" || layer == "host" })...),
		except(adapters), except(models), except(suites))
)

// services are the deployed services; each is a module.
var services = []string{"watcher", "catalog", "planner", "disruption", "interruption", "launcher", "lifecycle", "cli"}

const (
	ec2SDK      = "github.com/aws/aws-sdk-go-v2/service/ec2/..."
	clientGo    = "k8s.io/client-go/..."
	celGo       = "github.com/google/cel-go/..."
	kubeCEL     = "k8s.io/apiserver/pkg/cel/..."
	controllers = "sigs.k8s.io/controller-runtime/..."
)

// below returns the patterns of names under a directory of this repository.
func below(dir string, names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "./"+dir+"/"+name+"/...")
	}
	return out
}

// except negates patterns.
func except(patterns []string) []string {
	var out []string
	for _, pattern := range patterns {
		if rest, negative := cutNegation(pattern); negative {
			out = append(out, rest)
		} else {
			out = append(out, "!"+pattern)
		}
	}
	return out
}

// Table returns every import rule.
func Table() []Rule {
	table := []Rule{
		{
			Name:     "event and fault use the standard library alone",
			Packages: slices.Concat(contract, except(suites)),
			Forbid:   slices.Concat([]string{outside, "./..."}, except(contract)),
			Reach:    Direct,
			Reason:   "services of different versions agree on event and fault; each dependency there becomes a dependency of all of them",
			Fix:      "move what needs the library into the package that uses event, or write the few lines with the standard library",
		},
		{
			Name:     "decisions use no technology",
			Packages: decisions,
			Forbid:   []string{"github.com/aws/...", clientGo, controllers},
			Reach:    Transitive,
			Home:     "shared/cloud/ec2cloud",
			Reason:   "decisions run in the simulator, in explain and on a laptop without credentials, and are replayed",
			Fix:      "use a port (queue, blob, cloud, cluster) and put the call into its adapter",
		},
		{
			Name:     "decisions import no adapter, model or host",
			Packages: decisions,
			Forbid:   slices.Concat(adapters, models, suites, below("shared", "aws", "host"), []string{"./services/...", "./integration/...", "./infra/..."}),
			Reach:    Transitive,
			Reason:   "a change in an adapter must not change a decision",
			Fix:      "take the value or a small interface as an argument, and let main pass it in",
		},
		{
			Name:     "decisions draw no random numbers",
			Packages: decisions,
			Forbid:   []string{"math/rand", "math/rand/v2", "crypto/rand"},
			Reach:    Direct,
			Reason:   "the same input gives the same plan: ids and choices are derived from the input",
			Fix:      "derive the value from the input (event.DeriveID derives ids)",
		},
		{
			Name:     "shared imports no service",
			Packages: []string{"./shared/..."},
			Forbid:   []string{"./services/...", "./integration/...", "./infra/..."},
			Reach:    Direct,
			Tests:    true,
			Reason:   "services depend on shared; the other way round ties all of them together",
			Fix:      "move the common code into shared, or the test into integration",
		},
		{
			Name:     "only watcher, lifecycle and cli use client-go",
			Packages: below("services", "launcher", "planner", "disruption", "catalog", "interruption"),
			Forbid:   []string{clientGo, controllers, "./shared/cluster/kubecluster/..."},
			Reach:    Transitive,
			Home:     "shared/cluster/kubecluster",
			Reason:   "these services have no permission in Kubernetes; a binary without a client cannot use one that a mistake in a manifest grants",
			Fix:      "let watcher put the fact into the event, or lifecycle act on it",
		},
		{
			Name:     "only launcher, catalog, interruption and cli use the EC2 SDK",
			Packages: below("services", "lifecycle", "watcher", "planner", "disruption"),
			Forbid:   []string{ec2SDK, "./shared/cloud/ec2cloud/..."},
			Reach:    Transitive,
			Home:     "shared/cloud/ec2cloud",
			Reason:   "these services have no permission in EC2; a binary without the SDK cannot call it with the role of another service",
			Fix:      "send an event to launcher or catalog, which call EC2",
		},
		{
			Name:     "only adapters use an SDK",
			Packages: slices.Concat([]string{"./shared/...", "./services/...", "!./services/*/cmd/...", "!./services/cli/...", "!./shared/aws/..."}, except(adapters)),
			Forbid:   []string{"github.com/aws/aws-sdk-go-v2/service/...", clientGo, controllers},
			Reach:    Direct,
			Home:     "shared/cloud/ec2cloud",
			Reason:   "each technology is wrapped once, and the port's conformance suite tests its peculiarities once",
			Fix:      "call the port (queue, blob, cloud, cluster) and extend its adapter",
		},
		{
			Name:     "only integration imports upstream Karpenter",
			Packages: []string{"./shared/...", "./services/...", "./infra/..."},
			Forbid:   []string{"sigs.k8s.io/karpenter/...", "github.com/aws/karpenter-provider-aws/..."},
			Reach:    Direct,
			Tests:    true,
			Reason:   "Joist is compared with Karpenter; code that is compared with itself proves nothing, and its types link 863 packages",
			Fix:      "use shared/karpenter for the types, and put comparisons into integration",
		},
		{
			Name:     "deployed services import no template engine",
			Packages: []string{"./services/*/cmd/...", "./infra/cmd/joist-spotrole/...", "!./services/cli/..."},
			Forbid:   []string{"html/template", "text/template"},
			Trust:    []string{celGo, kubeCEL}, // Its prompts for language models are the only user of templates, and the linker removes them.
			Reach:    Transitive,
			Reason:   "templates call methods by name, so the linker keeps every exported method, and binaries are two to three times as large",
			Fix:      "write the text with fmt; if a library imports a template engine, add the build tag that removes it to .ci/flags",
		},
		{
			Name:     "interruption links no CEL",
			Packages: below("services", "interruption"),
			Forbid:   []string{celGo},
			Reach:    Transitive,
			Home:     "shared/catalog/expression",
			Reason:   "it neither plans nor launches, and CEL with its parser adds megabytes to a binary; the other services reach it through launchspec",
			Fix:      "move what evaluates expressions out of the packages that interruption uses",
		},
		{
			Name:     "the cli imports no html/template",
			Packages: []string{"./services/cli/cmd/..."},
			Forbid:   []string{"html/template"},
			Reach:    Transitive,
			Reason:   "its code keeps every exported method in the binary; cobra imports text/template, which the linker removes if no template is set",
			Fix:      "write the text with fmt, and set no template of cobra",
		},
		{
			Name:     "the demo links no SDK",
			Packages: []string{"./services/cli/cmd/joist-demo/..."},
			Forbid:   []string{"github.com/aws/...", clientGo, controllers, "google.golang.org/...", "go.opentelemetry.io/...", "github.com/prometheus/..."},
			Trust:    []string{celGo, kubeCEL}, // The planner evaluates expressions; CEL needs protocol buffers, but no gRPC.
			Reach:    Transitive,
			Home:     "shared/cloud/ec2cloud",
			Reason:   "make demo compiles everything that the demo links, in less than a minute on two cores with cold caches; the AWS SDK alone takes longer",
			Fix:      "import the port and its model (mem*), and move what needs the SDK out of the packages that the demo uses",
		},
		{
			Name:     "the plan validator shares no code with the planner",
			Packages: []string{"./shared/planning/planvalidator/..."},
			Forbid:   []string{"./...", "!./shared/planning/planvalidator/...", "sigs.k8s.io/karpenter/...", "github.com/aws/..."},
			Reach:    Transitive,
			Reason:   "a validator that shares code with the planner shares its mistakes",
			Fix:      "write it again in the validator, with Kubernetes' own matching where there is some",
		},
		{
			Name:     "the test environment imports no suite",
			Packages: []string{"./integration/environment/..."},
			Forbid:   []string{"./integration/suites/...", "./integration/bench/...", "./integration/lint/..."},
			Reach:    Direct,
			Tests:    true,
			Reason:   "suites and benchmarks run in the environment, so imports point one way",
			Fix:      "move the common code into integration/environment",
		},
		{
			Name:     "benchmarks and repository checks import no suite",
			Packages: []string{"./integration/bench/...", "./integration/lint/..."},
			Forbid:   []string{"./integration/suites/..."},
			Reach:    Direct,
			Tests:    true,
			Reason:   "what several of them need is part of the environment",
			Fix:      "move the common code into integration/environment",
		},
		{
			Name:     "the evaluator of policies and templates imports no CDK",
			Packages: []string{"./infra/evaluator/...", "./infra/template/..."},
			Forbid:   []string{outside, "./...", "!./infra/evaluator/...", "!./infra/template/..."},
			Reach:    Transitive,
			Home:     "infra/stack",
			Reason:   "tests evaluate policies and templates without Node, and the fake AWS is made of both",
			Fix:      "put what synthesizes into infra/stack, and pass the template's text",
		},
		{
			Name:     "adapters and models do not import each other",
			Packages: slices.Concat(adapters, models, []string{"!./shared/cluster/memworkload/..."}), // It uses memcluster.
			Forbid:   slices.Concat(adapters, models),
			Own:      true,
			Reach:    Direct,
			Reason:   "each can be replaced, tested and read alone",
			Fix:      "let main wire the two, or move the common code into the port's package",
		},
	}
	for i, layer := range layers[:len(layers)-1] {
		table = append(table, Rule{
			Name:     "shared/" + layer + " imports only lower layers",
			Packages: slices.Concat(below("shared", layer), except(models), except(suites)),
			Forbid:   below("shared", layers[i+1:]...),
			Reach:    Direct,
			Reason:   "imports point one way, so that a folder can be read with those below it alone",
			Fix:      "move the code to the higher folder, or take the value as an argument; integration/lint/rules/table.go lists the layers",
		})
	}
	for _, service := range services {
		table = append(table, otherServices(service))
	}
	return table
}

// otherServices forbids a service to import the others, except for the cli, whose demo
// runs all of Joist in one process.
func otherServices(service string) Rule {
	rule := Rule{
		Name:     "no service imports another",
		Packages: below("services", service),
		Forbid:   []string{"./services/...", "!./services/" + service + "/...", "./integration/..."},
		Reach:    Direct,
		Tests:    true,
		Reason:   "services are deployed, scaled and permitted apart; events are their only connection",
		Fix:      "move the common code into shared, or send an event",
	}
	if service == "cli" {
		rule.Name = "the cli imports no integration test"
		rule.Forbid = []string{"./integration/..."}
		rule.Reason = "integration tests use the cli and not the other way round"
	}
	return rule
}
