// Package settings reads the environment variables of the services, once, into one struct.
//
// Each variable is an entry of one table with its purpose, an example and an optional default. Error messages, --help
// and the documentation are generated from the table. The invariants: Karpenter's names and defaults are accepted
// unchanged, and all problems are reported at once, each with the name of its variable.
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Settings holds the parsed environment variables.
type Settings struct {
	Cluster event.Cluster
	Region  string
	// RoleARN is the role to assume for calls for the cluster, or "" for the process's own credentials.
	RoleARN string

	Bucket, Prefix, Bus string
	// QueueURL is the service's own queue.
	QueueURL, DeadLetterURL string
	// InterruptionQueue is the name of the queue of interruption events.
	InterruptionQueue                                  string
	PlannerURL, DisruptionURL, CatalogURL, LauncherURL string

	// Namespace is Joist's own. LeaseNamespace and LeaseName identify Karpenter's Lease.
	Namespace, LeaseNamespace, LeaseName string
	// Holder is the unique name of this replica. HasSingleReplica means that there is only one.
	Holder           string
	HasSingleReplica bool
	Kubeconfig       string

	BatchMax, BatchIdle time.Duration
	Scheduling          planning.Settings
	TemplateAge         time.Duration
	// DryRuns enables the validation of node classes with EC2 dry runs.
	DryRuns bool
	// These are the feature gates of those names. Scheduling.Gates holds the gates of planning.
	NodeRepair, TerminateFirstRepair, PodDeletionCostManagement bool
	// AWSFeatureGates are the gates of Karpenter's AWS provider.
	AWSFeatureGates AWSFeatureGates
	// LegacyNodeRepair repairs nodes as Karpenter 1.14 does, outside of disruption budgets.
	LegacyNodeRepair bool
	// Repair defines which nodes are unhealthy, and how many stop node repair.
	Repair repair.PolicySet
	// SecurityGroupRefreshInterval is the time for which the security groups of a node class are cached.
	SecurityGroupRefreshInterval time.Duration
	// DefaultConstraints are kube-scheduler's constraints for pods without topology spread constraints.
	DefaultConstraints []corev1.TopologySpreadConstraint
	// PoolDeletionApproval defines which NodePools are deleted only after approval.
	PoolDeletionApproval PoolDeletionApproval
	// Rebalance is the reaction to EC2's rebalance recommendations: ignore, cordon or replace.
	Rebalance string
	// IsolatedVPC means that AWS is reached through VPC endpoints only. ZonalShift enables avoiding zones during a
	// zonal shift.
	IsolatedVPC, ZonalShift bool
	// Endpoint, CABundle, KubernetesVersion and ServiceCIDR are what nodes need to join; empty means the value from
	// EKS. IsSelfManaged means that EKS does not run the control plane.
	Endpoint, CABundle, KubernetesVersion, ServiceCIDR string
	IsSelfManaged                                      bool
	// MaxPerIntent and MaxPerMinute are the launcher's safety limits on instances. EC2Share is its share of EC2's
	// documented request rates, above 1 if AWS has raised those of the account.
	MaxPerIntent, MaxPerMinute int
	EC2Share                   float64

	LogLevel                slog.Level
	MetricsPort, HealthPort int
	// Profiling serves profiles on MetricsPort.
	Profiling bool
	Tracing   Tracing
	// CloudWatch is where metrics for CloudWatch are written: "stdout", which functions always use, or
	// tcp://host:port. Empty disables them.
	CloudWatch string
	// Lambda is set if the process runs under Lambda.
	Lambda string
	// Warnings are the values that have no effect, each with its variable and the reason.
	Warnings []string
}

// Read parses every variable of one cluster. Those in required must be set. It ignores Clusters, which ReadClusters
// handles.
func Read(lookup func(name string) (string, bool), required ...string) (Settings, error) {
	var s Settings
	var problems []error
	for _, v := range Variables {
		text, by := v.lookUpValue(lookup)
		if text == "" {
			if slices.Contains(required, v.Name) {
				problems = append(problems, fmt.Errorf("%s is not set: it is %s, for example %s=%s", v.Name, v.Purpose, v.Name, v.Example))
			}
			text = v.Default
		}
		if text == "" {
			continue
		}
		if err := v.set(&s, text); err != nil {
			problem := fmt.Errorf("%s=%q %w: it is %s, for example %s=%s", by, text, err, v.Purpose, by, v.Example)
			if v.IgnoresWrong {
				s.Warnings = append(s.Warnings, problem.Error())
			} else {
				problems = append(problems, problem)
			}
		}
	}
	s.warnOfNoEffect(lookup)
	s.setRepairPolicies()
	if s.BatchIdle > s.BatchMax {
		problems = append(problems, fmt.Errorf("%s is %s, longer than %s, which is %s", BatchIdle, s.BatchIdle, BatchMax, s.BatchMax))
	}
	if err := s.Tracing.check(); err != nil {
		problems = append(problems, err)
	}
	if err := s.checkGates(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return s, fault.E("reading the environment", fault.Invalid, errors.Join(problems...))
	}
	return s, nil
}

// lookUpValue tries all names of the variable and returns its value and the name that was set. An empty value counts
// as not set.
func (v Variable) lookUpValue(lookup func(string) (string, bool)) (text, by string) {
	for _, name := range append([]string{v.Name}, v.Aliases...) {
		if text, ok := lookup(name); ok && text != "" {
			return text, name
		}
	}
	return "", v.Name
}
