// Package settings reads the environment variables of the services, once, into
// one struct.
//
// A variable is an entry of one table that says what it is for, gives an
// example, and has a default or none; errors, --help and documentation are made
// of it. The invariants: names and defaults that Karpenter has are accepted as
// they are; and every problem is reported at once, each naming its variable.
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Settings is what the environment says.
type Settings struct {
	Cluster event.Cluster
	Region  string
	// RoleARN is the role to take for what is done for the cluster, or "" for the
	// process's own.
	RoleARN string

	Bucket, Prefix, Bus string
	// QueueURL is the service's own queue.
	QueueURL, DeadLetterURL string
	// InterruptionQueue is the name of the queue of interruption events.
	InterruptionQueue                                  string
	PlannerURL, DisruptionURL, CatalogURL, LauncherURL string

	// Namespace is Joist's own, LeaseNamespace that of Karpenter's Lease, which has
	// the name LeaseName.
	Namespace, LeaseNamespace, LeaseName string
	// Holder tells replicas apart, and Alone says that there is one.
	Holder           string
	HasSingleReplica bool
	Kubeconfig       string

	BatchMax, BatchIdle time.Duration
	Scheduling          planning.Settings
	TemplateAge         time.Duration
	// DryRuns says that node classes are tried with dry runs.
	DryRuns bool
	// NodeRepair is the gate of that name; Repair says which nodes are sick, and how
	// many may be before none is repaired.
	NodeRepair bool
	Repair     NodeRepairSettings
	// PoolDeletionApproval is which NodePools are deleted only when somebody says so.
	PoolDeletionApproval PoolDeletionApproval
	// Rebalance is what becomes of nodes that EC2 recommends to rebalance: ignore,
	// cordon or replace.
	Rebalance string
	// IsolatedVPC says that AWS is reached through VPC endpoints only; ZonalShift
	// that zones are avoided while a zonal shift is in force.
	IsolatedVPC, ZonalShift bool
	// Endpoint, CABundle, KubernetesVersion and ServiceCIDR are what nodes need in order
	// to join; empty is what EKS names. NoEKS says that EKS does not know the cluster.
	Endpoint, CABundle, KubernetesVersion, ServiceCIDR string
	IsSelfManaged                                      bool
	// MaxPerIntent and MaxPerMinute stop the launcher from starting more instances
	// at once than anybody means; EC2Share is its part of EC2's request rates.
	MaxPerIntent, MaxPerMinute int
	EC2Share                   float64

	LogLevel                slog.Level
	MetricsPort, HealthPort int
	// Traces says that spans are exported.
	Traces bool
	// CloudWatch is where metrics are written for CloudWatch: "stdout", as a function
	// always does, or tcp://host:port; empty is nowhere.
	CloudWatch string
	// Lambda is set where the process runs under Lambda.
	Lambda string
}

// Read looks up every variable. Those in required must be set. Clusters is not for
// one cluster, and left to Each.
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
			problems = append(problems, fmt.Errorf("%s=%q %w: it is %s, for example %s=%s", by, text, err, v.Purpose, by, v.Example))
		}
	}
	if s.BatchIdle > s.BatchMax {
		problems = append(problems, fmt.Errorf("%s is %s, longer than %s, which is %s", BatchIdle, s.BatchIdle, BatchMax, s.BatchMax))
	}
	if len(problems) > 0 {
		return s, fault.E("reading the environment", fault.Invalid, errors.Join(problems...))
	}
	return s, nil
}

// lookUpValue looks under all names of the variable. Empty is not set.
func (v Variable) lookUpValue(lookup func(string) (string, bool)) (text, by string) {
	for _, name := range append([]string{v.Name}, v.Aliases...) {
		if text, ok := lookup(name); ok && text != "" {
			return text, name
		}
	}
	return "", v.Name
}
