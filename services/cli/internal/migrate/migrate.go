// Package migrate lists the steps by which Joist takes over a cluster from Karpenter, and the way
// back, with the state of each.
//
// Package facts reads the facts, and Check is a function of them. A step whose facts could not be
// read is Unknown and names the missing permission; the other steps are still evaluated. Nothing
// here changes a cluster.
package migrate

import (
	"slices"
	"strconv"
	"strings"
)

// State is the state of a step.
type State string

const (
	// Done is a step that needs no action.
	Done State = "done"
	// Ready is a step that can be taken now: Fix has its command.
	Ready State = "ready"
	// Blocked is a step that something prevents: Fix removes the cause.
	Blocked State = "blocked"
	// Unknown is a step whose facts could not be read.
	Unknown State = "unknown"
)

// Step is one step, as `joist migrate --check -o json` prints it.
type Step struct {
	// Step is the name of the step, for programs. Names are added, never changed.
	Step  string `json:"step"`
	State State  `json:"state"`
	// Detail describes what was found and what it means.
	Detail string `json:"detail"`
	// Fix is what to do; "" if the step is done.
	Fix string `json:"fix,omitempty"`
	// Objects are the objects that the step is about, such as nodeclaim/default-abcde.
	Objects []string `json:"objects,omitempty"`
}

// Active is the controller that acts on the cluster.
type Active string

const (
	Karpenter Active = "karpenter"
	Joist     Active = "joist"
	Neither   Active = "none"
	// Undetermined means that Karpenter's Lease could not be read.
	Undetermined Active = "unknown"
)

// Report is the result of Check.
type Report struct {
	Active Active `json:"active"`
	// KarpenterVersion is the version in the image of Karpenter's Deployment; "" if there is none.
	KarpenterVersion string `json:"karpenterVersion,omitempty"`
	// Takeover are the steps from Karpenter to Joist, in order. Return are those of the way back.
	Takeover []Step `json:"takeover"`
	Return   []Step `json:"return"`
	// NodePools are the NodePools with their nodes.
	NodePools []Pool `json:"nodePools"`
}

// Completed reports whether all steps of the takeover are done.
func (r Report) Completed() bool {
	return !slices.ContainsFunc(r.Takeover, func(s Step) bool { return s.State != Done })
}

// check evaluates one step.
type check struct {
	name string
	// needs are the facts that the step requires.
	needs []Fact
	run   func(Facts) Step
}

// Check evaluates all steps.
func Check(f Facts) Report {
	out := Report{Active: f.active(), KarpenterVersion: f.karpenterVersion(), NodePools: f.pools()}
	for _, c := range takeover {
		out.Takeover = append(out.Takeover, c.evaluate(f))
	}
	out.Takeover = append(out.Takeover, switchStep(f, out.Takeover), activeStep(f))
	for _, c := range wayBack {
		out.Return = append(out.Return, c.evaluate(f))
	}
	return out
}

// takeover are the steps before Karpenter is stopped, in the order in which they are taken.
var takeover = []check{
	{"karpenter-version", []Fact{Deployments}, checkVersion},
	{"crds", []Fact{CRDs}, checkCRDs},
	{"conversion-webhooks", []Fact{CRDs, Webhooks}, checkWebhooks},
	{"manifests", []Fact{NodePools, NodeClasses}, checkManifests},
	{"nodes", []Fact{NodePools, NodeClasses, NodeClaims, ClusterCA}, checkNodes},
	{"finalizers", []Fact{NodeClaims, Nodes}, checkFinalizers},
	{"instance-tags", []Fact{NodeClaims}, checkTags},
	{"instance-profiles", []Fact{NodeClasses}, checkProfiles},
	{"aws-resources", []Fact{AWS}, checkAWS},
	{"interruption-queue", []Fact{Deployments}, checkQueue},
	{"joist-installed", []Fact{Deployments}, checkInstalled},
	{"lease-namespace", []Fact{Deployments, Leases}, checkLeaseNamespace},
}

func (c check) evaluate(f Facts) Step {
	step := Step{Step: c.name}
	if missing := f.missing(c.needs); len(missing) > 0 {
		var why, fixes []string
		for _, m := range missing {
			why, fixes = append(why, m.Subject+": "+m.Reason), append(fixes, m.Fix)
		}
		step.State, step.Detail, step.Fix = Unknown, "could not read "+strings.Join(why, "; "), strings.Join(slices.Compact(fixes), "; ")
		return step
	}
	step = c.run(f)
	step.Step = c.name
	return step
}

func done(detail string, objects ...string) Step {
	return Step{State: Done, Detail: detail, Objects: objects}
}

func ready(detail, fix string, objects ...string) Step {
	return Step{State: Ready, Detail: detail, Fix: fix, Objects: objects}
}

func blocked(detail, fix string, objects ...string) Step {
	return Step{State: Blocked, Detail: detail, Fix: fix, Objects: objects}
}

// formatCount formats a number of objects.
func formatCount(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
