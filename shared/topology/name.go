package topology

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Cluster is the input of a plan.
type Cluster struct {
	// Name is the name of the EKS cluster: 1 to 100 letters, digits, hyphens and underscores, beginning with a letter
	// or digit (https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html).
	Name string
	// Prefix is the prefix of resource names; empty means Name.
	Prefix string
	// Functions is the prefix of the names of functions that several clusters share; empty if the cluster has its own
	// functions.
	Functions string
	// InterruptionQueue is the name of an existing queue, such as Karpenter's.
	InterruptionQueue string
}

func (c Cluster) namePrefix() string { return cmp.Or(c.Prefix, c.Name) }

// maxPrefixLength is the maximum length of the prefix: the name of an archive has at most 48 characters and ends in
// "-joist" (https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_CreateArchive.html); roles, functions,
// rules and schedules may have 64.
const maxPrefixLength = 42

var (
	clusterName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
	queueName   = regexp.MustCompile(`^[0-9A-Za-z_-]{1,80}$`)
)

// validate rejects names that AWS would reject during a deployment.
func (c Cluster) validate() error {
	invalid := func(remedy, format string, args ...any) error {
		return fault.F("naming the resources of the cluster", fault.Invalid, format, args...).WithHint("%s", remedy)
	}
	switch {
	case c.Name == "":
		return invalid("give the name of the EKS cluster, as in clusterName=prod", "the cluster has no name")
	case !clusterName.MatchString(c.Name):
		return invalid("give the name as `aws eks list-clusters` prints it",
			"%q is not the name of an EKS cluster (1 to 100 alphanumeric characters, hyphens and underscores, beginning with an alphanumeric one)", c.Name)
	case !clusterName.MatchString(c.namePrefix()):
		return invalid("use letters, digits, hyphens and underscores", "invalid prefix %q of queue and function names", c.namePrefix())
	case len(c.namePrefix()) > maxPrefixLength:
		return invalid(fmt.Sprintf("set namePrefix to a shorter one of at most %d characters", maxPrefixLength),
			"the prefix %q is too long: with %d characters, an archive's name with %q exceeds 48", c.namePrefix(), len(c.namePrefix()), "-joist")
	case strings.HasSuffix(c.InterruptionQueue, ".fifo"):
		return invalid("make a standard queue", "the queue %q is FIFO, which EventBridge's rules and the interruption service do not use", c.InterruptionQueue)
	case c.InterruptionQueue != "" && !queueName.MatchString(c.InterruptionQueue):
		return invalid("give the queue's name, neither its URL nor its ARN", "%q is not the name of an SQS queue", c.InterruptionQueue)
	}
	if c.InterruptionQueue == "" && len(c.Name) > 80 {
		return invalid("name a queue yourself (interruptionQueue)", "the cluster's name has %d characters, and a queue of that name could have 80", len(c.Name))
	}
	return c.checkFunctions()
}
