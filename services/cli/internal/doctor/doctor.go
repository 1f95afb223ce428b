// Package doctor says what is wrong with a cluster's installation, and how to mend it.
//
// The idea: looking and judging are apart. Facts are values, gathered by package gather
// as far as rights reach; Examine is a function of them. What was not looked at is never
// judged: a nil fact gives no finding, and is listed as unseen instead, with the right
// that was lacking.
package doctor

import (
	"cmp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Severity says how bad a finding is.
type Severity string

const (
	// Problem is what does not work, or will not.
	Problem Severity = "problem"
	// Warning is what works, and what a person may want to know.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong, as `joist doctor -o json` prints it.
type Finding struct {
	// Check names the check, for programs; the list is append-only.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Subject is what it is about, such as queue/prod.
	Subject string `json:"subject"`
	// What is wrong, and what comes of it.
	What string `json:"what"`
	// Fix says how to mend it.
	Fix string `json:"fix"`
}

// Skipped is something that could not be looked at.
type Skipped struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Fix  string `json:"fix,omitempty"`
}

// Facts are what is known of an installation. A nil pointer, and a nil map or slice, is
// what was not looked at.
type Facts struct {
	Plan topology.Plan
	Now  time.Time

	// Queues are by name; one that does not exist has a nil value.
	Queues map[string]*Queue
	// Rules are those that have a queue as their target, by the queue's name, and the one
	// that is to write the audit log, by the name of its log group.
	Rules map[string][]Rule
	// Functions are by service. One that polls its queue has none.
	Functions map[string]*Function

	// Place is where all of it is; zero when that is not known.
	Place Place
	// Roles are the services'.
	Roles []Role
	// Issuer is the cluster's OIDC issuer without its scheme.
	Issuer *string
	// SpotRole says whether the service-linked role of EC2 Spot exists.
	SpotRole *bool
	NodeRole *NodeRole
	// Access is how nodes are let into the cluster.
	Access *Access
	// SelfManaged is nil where EKS runs the control plane, or where that is not known.
	SelfManaged *SelfManaged
	// Kubernetes is the version of the API server, such as v1.35.2; "" where it is not known.
	Kubernetes string
	// Subnets and SecurityGroups are those with the discovery tag.
	Subnets, SecurityGroups []Tagged

	Lease       *Lease
	Deployments []Deployment
	// Accounts are the ServiceAccounts of Joist's Deployments.
	Accounts []Account
	// Profiles are those that EC2NodeClasses name, and ByRole says that some name a role
	// instead.
	Profiles []Profile
	ByRole   bool
	// Resources are the kinds that the API server serves, as group/version/plural.
	Resources []string

	// Snapshot and Catalogue are when they were last written; zero if never.
	Snapshot, Catalogue *time.Time
	// Skew is how far this machine's clock is ahead of AWS's.
	Skew *time.Duration
	// Tools are the programs that people use beside Joist.
	Tools []Tool
	// Environ are variables that the seeds' commands use, with their values.
	Environ map[string]string
}

// Queue is what SQS says of a queue.
type Queue struct {
	Name, ARN             string
	Visibility, Retention time.Duration
	// Policy is the access policy as it is, or "".
	Policy string
	// DeadARN and MaxReceives are the redrive policy; empty without one.
	DeadARN     string
	MaxReceives int
	// Messages is how many it holds, in flight or not, as SQS counts: approximately.
	Messages int
}

// Rule is a rule with the queue as its target.
type Rule struct {
	Name, Bus, Pattern string
	Enabled            bool
	// DeadARN is the target's dead-letter queue, or "".
	DeadARN, InputPath string
}

// NodeRole is the role of nodes.
type NodeRole struct {
	Name, ARN string
	Missing   bool
	// Trust is the trust policy.
	Trust string
	// Policies are the names of the managed policies that are attached.
	Policies []string
}

// Access is who may join the cluster.
type Access struct {
	// Mode is the cluster's authentication mode.
	Mode string
	// Entry says whether there is an access entry of type EC2_LINUX for the nodes' role;
	// nil when that was not looked at.
	Entry *bool
	// AuthMap is the mapRoles of aws-auth; nil when it was not looked at, "" when there is
	// none.
	AuthMap *string
}

// SelfManaged is what the catalog is told of a control plane that EKS does not run.
type SelfManaged struct {
	// Function is the catalog's, and Variables are its environment for this cluster; empty
	// where the catalog is no function.
	Function  string
	Variables map[string]string
}

// Tagged is a subnet or a security group with the discovery tag.
type Tagged struct{ ID, VPC, Zone string }

// Lease is Karpenter's.
type Lease struct {
	Namespace, Holder string
	Renewed           time.Time
}

// Deployment is one of Joist's or of Karpenter's.
type Deployment struct {
	Namespace, Name string
	// Karpenter says that it runs Karpenter's controller.
	Karpenter bool
	Replicas  int
	// Component is the service that it runs, by its label.
	Component string
	Images    []string
	// Environ are the variables of its containers that are written out.
	Environ map[string]string
}

// Tool is a program on this machine.
type Tool struct {
	Name string
	// Version is what it says of itself; empty if it was not found.
	Version string
}

// Examine judges facts. Problems come first, and findings of one kind by subject.
func Examine(f Facts) []Finding {
	var all []Finding
	for _, check := range []func(Facts) []Finding{
		checkQueues, checkRedrives, checkTimes, checkDeliveries, checkPolicies, checkFunctions, checkShared, checkAudit, checkDeadLetters,
		spotRole, nodeRole, access, selfManaged, discovery, checkRights, checkProfiles,
		incumbent, replicas, checkKinds, checkAccounts, checkPodIdentity, checkTrusts, checkUnset,
		checkDocuments, checkClock, checkTools,
	} {
		all = append(all, check(f)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}

func newProblem(check, subject, what, fix string) Finding {
	return Finding{check, Problem, subject, what, fix}
}

func newWarning(check, subject, what, fix string) Finding {
	return Finding{check, Warning, subject, what, fix}
}
