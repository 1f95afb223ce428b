// Package migrate lists the steps by which Joist takes over a cluster from Karpenter, and the way
// back, with the state of each.
//
// Package facts reads the facts, and Check is a function of them. A step whose facts could not be
// read is Unknown and names the missing permission; the other steps are still evaluated. Nothing
// here changes a cluster.
package migrate

import (
	"slices"
	"strings"
)

// StepState is the state of a step.
type StepState string

const (
	// Done is a step that needs no action.
	Done StepState = "done"
	// Ready is a step that can be taken now: Fix has its command.
	Ready StepState = "ready"
	// Blocked is a step that something prevents: Fix removes the cause.
	Blocked StepState = "blocked"
	// Unknown is a step whose facts could not be read.
	Unknown StepState = "unknown"
)

// MigrationStep is one step, as `joist migrate --check -o json` prints it.
type MigrationStep struct {
	// Step is the name of the step, for programs. Names are added, never changed.
	Step  string    `json:"step"`
	State StepState `json:"state"`
	// Detail describes the finding and its effect.
	Detail string `json:"detail"`
	// Fix is what to do; "" if the step is done.
	Fix string `json:"fix,omitempty"`
	// Objects are the objects that the step is about, such as nodeclaim/default-abcde.
	Objects []string `json:"objects,omitempty"`
}

// Active is the controller that acts on the cluster.
type Active string

// The controllers.
const (
	Karpenter Active = "karpenter"
	Joist     Active = "joist"
	Neither   Active = "none"
	// Both means that Karpenter acts without the Lease, which Joist holds.
	Both Active = "both"
	// Undetermined means that Karpenter's Lease could not be read.
	Undetermined Active = "unknown"
)

// MigrationReport is the result of Check.
type MigrationReport struct {
	Active Active `json:"active"`
	// KarpenterVersion is the version in the image of Karpenter's Deployment; "" without one.
	KarpenterVersion string `json:"karpenterVersion,omitempty"`
	// Takeover are the steps from Karpenter to Joist, in order. Return are those of the way back.
	Takeover []MigrationStep `json:"takeover"`
	Return   []MigrationStep `json:"return"`
	// NodePools are the NodePools with their nodes.
	NodePools []PoolAdoption `json:"nodePools"`
	// InstanceProfiles are those of the cluster in IAM; empty if they could not be read.
	InstanceProfiles []ProfileAdoption `json:"instanceProfiles"`
	// Assumptions are assumptions made because EKS or IAM could not be read.
	Assumptions []string `json:"assumptions"`
	// Plan is what Joist would do with today's pods and nodes; nil if the cluster could not be read.
	Plan *LivePlan `json:"plan"`
}

// Completed reports whether all steps of the takeover are done.
func (r MigrationReport) Completed() bool {
	return !slices.ContainsFunc(r.Takeover, func(s MigrationStep) bool { return s.State != Done })
}

// check evaluates one step.
type check struct {
	name string
	// needs are the facts that the step requires.
	needs []Fact
	run   func(MigrationFacts) MigrationStep
}

// Check evaluates all steps.
func Check(f MigrationFacts) MigrationReport {
	out := MigrationReport{Active: f.active(), KarpenterVersion: f.karpenterVersion(), NodePools: f.pools(), InstanceProfiles: f.profiles(), Assumptions: f.assumptions(), Plan: f.Plan}
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
	{"cluster", []Fact{Deployments}, checkCluster},
	{"karpenter-version", []Fact{Deployments}, checkVersion},
	{"crds", []Fact{CRDs}, checkCRDs},
	{"conversion-webhooks", []Fact{CRDs, Webhooks}, checkWebhooks},
	{"manifests", []Fact{NodePools, NodeClasses}, checkManifests},
	{"differences", []Fact{NodePools, NodeClaims}, describeDifferences},
	{planStep, []Fact{Today}, describePlan},
	{"settings", []Fact{Deployments}, checkSettings},
	{"nodes", []Fact{NodePools, NodeClasses, NodeClaims, ClusterCA}, checkNodes},
	{"finalizers", []Fact{NodeClaims, Nodes}, checkFinalizers},
	{"instance-tags", []Fact{NodeClaims}, checkTags},
	{"instance-profiles", []Fact{NodeClasses}, checkProfiles},
	{"aws-resources", []Fact{AWS}, checkAWS},
	{"interruption-queue", []Fact{Deployments}, checkQueue},
	{"joist-installed", []Fact{Deployments}, checkInstalled},
	{"lease-namespace", []Fact{Deployments, Leases}, checkLeaseNamespace},
}

func (c check) evaluate(f MigrationFacts) MigrationStep {
	step := MigrationStep{Step: c.name}
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

func done(detail string, objects ...string) MigrationStep {
	return MigrationStep{State: Done, Detail: detail, Objects: objects}
}

func ready(detail, fix string, objects ...string) MigrationStep {
	return MigrationStep{State: Ready, Detail: detail, Fix: fix, Objects: objects}
}

func blocked(detail, fix string, objects ...string) MigrationStep {
	return MigrationStep{State: Blocked, Detail: detail, Fix: fix, Objects: objects}
}
