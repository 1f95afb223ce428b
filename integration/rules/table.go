package rules

// The rooms of shared. Every directory of shared stands in exactly one list.
var (
	// contract is what all services agree on.
	contract = []string{"event", "fault"}
	// rooms are the inner rooms: values to values, and ports in our own words.
	rooms = []string{
		"scheduling", "launchspec", "karpenter", "catalog", "eventpattern", "userdata", "manifest", "podspec", "scenario",
		"queue", "blob", "cloud", "cluster", "lease", "outbox", "convoy", "budget", "policy", "drift", "topology",
	}
	// hosts run handlers, tell how it went, and open what mains wire.
	hosts = []string{"host", "telemetry", "settings", "parts"}
	// adapters speak to one technology each.
	adapters = []string{"sqsqueue", "s3blob", "ec2cloud", "awspricing", "arczonalshift", "ssmparameters", "ekscluster", "iamprofile", "eventbus", "kubecluster", "stsrole"}
	// connections are what the adapters of AWS share.
	connections = []string{"awsfault", "awshttp"}
	// models are the seeded stand-ins for those technologies.
	models = []string{"memqueue", "memblob", "memcloud", "memcluster"}
	// worlds are models of what acts on those models.
	worlds = []string{"memworkload"}
	// conformance holds the suites that ports, readers and cards are proved with.
	conformance = []string{"queuetest", "blobtest", "cloudtest", "clustertest", "noticetest", "cardtest"}
)

// services are the deployables; each is a module.
var services = []string{"watcher", "catalog", "planner", "disruption", "interruption", "launcher", "lifecycle", "cli"}

const (
	ec2SDK      = "github.com/aws/aws-sdk-go-v2/service/ec2/..."
	clientGo    = "k8s.io/client-go/..."
	controllers = "sigs.k8s.io/controller-runtime/..."
)

// below turns names into patterns under a directory of this repository.
func below(dir string, names ...[]string) []string {
	var patterns []string
	for _, list := range names {
		for _, name := range list {
			patterns = append(patterns, "./"+dir+"/"+name+"/...")
		}
	}
	return patterns
}

func patterns(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// Table lists every import rule.
func Table() []Rule {
	table := []Rule{
		{
			Name:     "the contract stands alone",
			Packages: below("shared", contract),
			Forbid:   patterns([]string{outside, "./..."}),
			Except:   below("shared", contract),
			Reach:    Direct,
			Reason:   "event and fault are what services of different versions agree on; a dependency there would be everybody's",
			Mend:     "move what needs the library into the package that uses the contract, or write the few lines with the standard library",
		},
		{
			Name:     "inner rooms know no technology",
			Packages: below("shared", rooms),
			Forbid:   []string{"github.com/aws/...", clientGo, controllers},
			Reach:    Transitive,
			Home:     "shared/ec2cloud",
			Reason:   "what thinks must run anywhere and be replayed: in the simulator, in explain, on a laptop without credentials",
			Mend:     "say it in our own words (queue, blob, cloud, cluster) and translate in the adapter",
		},
		{
			Name:     "inner rooms import no outer room",
			Packages: below("shared", contract, rooms),
			Forbid:   patterns(below("shared", hosts, adapters, connections, models, worlds, conformance), []string{"./services/...", "./integration/...", "./infra/..."}),
			Reach:    Transitive,
			Reason:   "imports point inwards; otherwise a change in an adapter could change a decision",
			Mend:     "take the value or a small interface as an argument, and let main pass it in",
		},
		{
			Name:     "inner rooms have no dice",
			Packages: below("shared", contract, rooms),
			Unless:   suites(),
			Forbid:   []string{"math/rand", "math/rand/v2", "crypto/rand"},
			Reach:    Direct,
			Reason:   "same bytes in, same plan out: ids and choices are derived from their inputs, never drawn",
			Mend:     "derive the value from the inputs (event.ID does so for ids)",
		},
		{
			Name:     "shared imports no service",
			Packages: []string{"./shared/..."},
			Forbid:   []string{"./services/...", "./integration/...", "./infra/..."},
			Reach:    Direct,
			Tests:    true,
			Reason:   "services depend on shared; the other way round would tie all of them together",
			Mend:     "move the shared idea into shared, or the test into integration",
		},
		{
			Name:     "inventory of client-go",
			Packages: below("services", []string{"launcher", "planner", "disruption", "catalog", "interruption"}),
			Forbid:   []string{clientGo, controllers, "./shared/kubecluster/..."},
			Reach:    Transitive,
			Home:     "shared/kubecluster",
			Reason:   "these services have no right in Kubernetes; a binary without a client cannot gain one by a mistake in a manifest",
			Mend:     "let watcher put the fact into the event, or lifecycle act on it",
		},
		{
			Name:     "inventory of the EC2 SDK",
			Packages: below("services", []string{"lifecycle", "watcher", "planner", "disruption"}),
			Forbid:   []string{ec2SDK, "./shared/ec2cloud/..."},
			Reach:    Transitive,
			Home:     "shared/ec2cloud",
			Reason:   "these services have no right in EC2; a binary without the SDK cannot call it with somebody else's role",
			Mend:     "send an event to launcher or catalog, which do call EC2",
		},
		{
			Name:     "one home for each technology",
			Packages: []string{"./shared/...", "./services/..."},
			Unless:   patterns(below("shared", adapters), []string{"./services/*/cmd/...", "./services/cli/..."}),
			Forbid:   []string{"github.com/aws/aws-sdk-go-v2/service/...", clientGo, controllers},
			Reach:    Direct,
			Home:     "shared/ec2cloud",
			Reason:   "a technology is wrapped once, and its oddities are tested once, by the port's conformance suite",
			Mend:     "call the port (queue, blob, cloud, cluster) and extend its adapter",
		},
		{
			Name:     "upstream Karpenter is a peer",
			Packages: []string{"./shared/...", "./services/...", "./infra/..."},
			Forbid:   []string{"sigs.k8s.io/karpenter/...", "github.com/aws/karpenter-provider-aws/..."},
			Reach:    Direct,
			Tests:    true,
			Reason:   "we compare ourselves with Karpenter; code that is compared with itself proves nothing, and its types pull in 863 packages",
			Mend:     "use shared/karpenter for the types, and put comparisons into integration",
		},
		{
			Name:     "the judge is nobody's friend",
			Packages: []string{"./integration/judge/..."},
			Forbid:   []string{"./...", "sigs.k8s.io/karpenter/...", "github.com/aws/..."},
			Except:   []string{"./integration/judge/..."},
			Reach:    Transitive,
			Reason:   "a judge that shares code with a planner shares its mistakes, and finds them right",
			Mend:     "say it again in the judge, with Kubernetes' own matching where there is some",
		},
		{
			Name:     "what reads the CDK's work knows no CDK",
			Packages: []string{"./infra/evaluator/...", "./infra/template/..."},
			Forbid:   []string{outside, "./..."},
			Except:   []string{"./infra/evaluator/...", "./infra/template/..."},
			Reach:    Transitive,
			Home:     "infra/stack",
			Reason:   "tests judge policies and templates without Node, and the fake AWS is made of both",
			Mend:     "put what synthesizes into infra/stack, and pass the template's text",
		},
	}
	table = append(table, apart("adapters do not import each other", adapters)...)
	table = append(table, apart("models do not import each other", models)...)
	for _, service := range services {
		table = append(table, neighbours(service))
	}
	return table
}

// suites are the packages of helpers for tests inside the inner rooms, such as
// queue/queuetest: they drive a port and may do what tests do.
func suites() []string {
	var all []string
	for _, room := range append(append([]string{}, contract...), rooms...) {
		all = append(all, "./shared/"+room+"/*test/...")
	}
	return all
}

// apart forbids each package of a list all the others, and the other list too:
// neither an adapter nor a model leans on its siblings.
func apart(name string, list []string) []Rule {
	var table []Rule
	for _, one := range list {
		table = append(table, Rule{
			Name:     name,
			Packages: below("shared", []string{one}),
			Forbid:   below("shared", adapters, models),
			Except:   below("shared", []string{one}),
			Reach:    Direct,
			Reason:   "each can be replaced, tested and read alone",
			Mend:     "let main wire the two, or move the common idea into the port's package",
		})
	}
	return table
}

// neighbours forbids a service all the others. The cli is free: its demo wires
// the whole of Joist in one process.
func neighbours(service string) Rule {
	rule := Rule{
		Name:     "no service imports another",
		Packages: below("services", []string{service}),
		Forbid:   []string{"./services/...", "./integration/..."},
		Except:   below("services", []string{service}),
		Reach:    Direct,
		Tests:    true,
		Reason:   "services are deployed, scaled and permitted apart; they speak through events only",
		Mend:     "move the shared idea into shared, or send an event",
	}
	if service == "cli" {
		rule.Name = "the cli is nobody's test"
		rule.Forbid = []string{"./integration/..."}
		rule.Reason = "integration wires the cli's world and not the other way round"
	}
	return rule
}
