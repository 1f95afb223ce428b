// Package doctor finds problems of a cluster's installation, with a fix for each.
//
// Package facts reads the facts as far as permissions allow, and Examine is a function of
// them. A fact that was not read gives no finding: it is nil here, and the output lists it as
// skipped, with the missing permission.
package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Severity is the severity of a finding.
type Severity string

const (
	// Problem is something that does not work, or soon will not.
	Problem Severity = "problem"
	// Warning is something that works but needs attention.
	Warning Severity = "warning"
)

// Finding is one finding, as `joist doctor -o json` prints it.
type Finding struct {
	// Check is the name of the check, for programs. Names are added, never changed.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Subject is the object, such as queue/prod.
	Subject string `json:"subject"`
	// Message describes the problem and its effect.
	Message string `json:"message"`
	// Fix describes how to correct it.
	Fix string `json:"fix"`
}

// Skipped is a check that could not run.
type Skipped struct {
	// Subject names the object that was not read, such as Karpenter's Lease.
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	Fix     string `json:"fix,omitempty"`
}

// Facts are the facts about an installation. A nil pointer, map or slice was not read.
type Facts struct {
	Plan topology.Plan
	Now  time.Time

	// Queues are by name; a queue that does not exist is nil.
	Queues map[string]*Queue
	// Rules are the rules with a queue as their target, by the queue's name, and the rule of
	// the audit log, by the name of its log group.
	Rules map[string][]Rule
	// Functions are by service. A service that polls its queue has none.
	Functions map[string]*Function

	// Location is the account and region; zero if unknown.
	Location Location
	// Roles are the roles of the services.
	Roles []Role
	// Issuer is the cluster's OIDC issuer without its scheme.
	Issuer *string
	// SpotRole reports whether the service-linked role of EC2 Spot exists.
	SpotRole *bool
	// CertificateAuthority is the cluster's, base64, as EKS returns it; "" if unknown.
	CertificateAuthority string
	NodeRole             *NodeRole
	// Access is how nodes may join the cluster.
	Access *Access
	// SelfManaged is nil if EKS runs the control plane, or if that is unknown.
	SelfManaged *SelfManaged
	// Kubernetes is the version of the API server, such as v1.35.2; "" if unknown.
	Kubernetes string
	// Subnets and SecurityGroups are those with the discovery tag.
	Subnets, SecurityGroups []Tagged
	// Discovery is how the EC2NodeClasses use the discovery tag; nil if there are no classes, or if they were not read.
	Discovery *DiscoveryUse

	Lease       *Lease
	Deployments []Deployment
	// Accounts are the ServiceAccounts of Joist's Deployments.
	Accounts []Account
	// Profiles are the instance profiles that EC2NodeClasses name. HasRoleClasses reports that
	// some EC2NodeClasses name a role instead.
	Profiles       []Profile
	HasRoleClasses bool
	// Resources are the kinds that the API server serves, as group/version/plural.
	Resources []string

	// Snapshot and Catalogue are the times when they were last written; zero if never.
	Snapshot, Catalogue *time.Time
	// Skew is the time by which this machine's clock is ahead of AWS's.
	Skew *time.Duration
	// Tools are the programs that the guides use.
	Tools []Tool
	// Environ are environment variables of this shell, with their values.
	Environ map[string]string
}

// Queue is the configuration of a queue.
type Queue struct {
	Name, ARN             string
	Visibility, Retention time.Duration
	// Policy is the queue policy, or "".
	Policy string
	// DeadARN and MaxReceives are the redrive policy; empty without one.
	DeadARN     string
	MaxReceives int
	// Messages is the approximate number of messages, including those in flight.
	Messages int
}

// Rule is a rule with the queue as its target.
type Rule struct {
	Name, Bus, Pattern string
	Enabled            bool
	// DeadARN is the target's DLQ, or "".
	DeadARN, InputPath string
}

// NodeRole is the IAM role of nodes.
type NodeRole struct {
	Name, ARN string
	Missing   bool
	// Trust is the trust policy.
	Trust string
	// Policies are the names of the attached managed policies.
	Policies []string
}

// Access is the configuration of access to the cluster.
type Access struct {
	// Mode is the cluster's authentication mode.
	Mode string
	// Entry reports whether an access entry of type EC2_LINUX exists for the node role; nil if it
	// was not read.
	Entry *bool
	// AuthMap is the mapRoles of aws-auth; nil if it was not read, "" if it does not exist.
	AuthMap *string
}

// SelfManaged is the catalog's configuration for a control plane that EKS does not run.
type SelfManaged struct {
	// Function is the catalog's function, and Variables are its environment variables for this
	// cluster. Both are empty if the catalog is no function.
	Function  string
	Variables map[string]string
}

// Tagged is a subnet or a security group with the discovery tag.
type Tagged struct{ ID, VPC, Zone string }

// DiscoveryUse reports whether an EC2NodeClass selects its subnets, or its security groups, by the discovery
// tag alone.
type DiscoveryUse struct{ Subnets, SecurityGroups bool }

// Lease is Karpenter's Lease.
type Lease struct {
	Namespace, Holder string
	Renewed           time.Time
}

// Deployment is a Deployment of Joist or of Karpenter.
type Deployment struct {
	Namespace, Name string
	// Karpenter reports that it runs Karpenter's controller.
	Karpenter bool
	Replicas  int
	// Component is the service that it runs, from its label.
	Component string
	Images    []string
	// Environ are the environment variables of its containers with literal values. Flags of Karpenter are
	// here as the variables that they replace.
	Environ map[string]string
}

// SkipsElection reports whether it is Karpenter with leader election turned off. Karpenter then acts
// whether or not it holds its Lease.
func (d Deployment) SkipsElection() bool {
	off, err := strconv.ParseBool(d.Environ[settings.SingleReplica])
	return d.Karpenter && off && err == nil
}

// Tool is a program on this machine.
type Tool struct {
	Name string
	// Version is the version that the program prints; empty if it was not found.
	Version string
}

// Examine returns the findings: problems first, then by check and subject.
func Examine(f Facts) []Finding {
	var all []Finding
	for _, check := range []func(Facts) []Finding{
		checkQueues, checkRedrives, checkTimes, checkDeliveries, checkPolicies, checkFunctions, checkShared, checkAudit, checkDeadLetters,
		checkSpotRole, checkNodeRole, checkAccess, checkSelfManaged, checkDiscovery, checkPermissions, checkProfiles,
		CheckCluster, checkKarpenter, checkReplicas, checkKinds, checkAccounts, checkPodIdentity, checkTrusts, checkPlaceholders,
		checkDocuments, checkClock, checkTools,
	} {
		all = append(all, check(f)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}

func newProblem(check, subject, message, fix string) Finding {
	return Finding{check, Problem, subject, message, fix}
}

func newWarning(check, subject, message, fix string) Finding {
	return Finding{check, Warning, subject, message, fix}
}
