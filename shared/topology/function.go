package topology

import (
	"cmp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// maxFunctionPrefixLength is the length of the longest beginning of the names of functions, and
// of their roles: those have 64 characters, and "-joist-interruption" at their end.
const maxFunctionPrefixLength = 45

// FunctionName is the name of the function that does a service's work for the cluster.
func (p Plan) FunctionName(service string) string {
	return cmp.Or(p.Functions, p.Prefix) + "-joist-" + service
}

// HasSharedFunctions reports whether the cluster's functions are other clusters', too.
func (p Plan) HasSharedFunctions() bool { return p.Functions != "" }

// maxSessionLength is how long the name of a session of a role may be
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html).
const maxSessionLength = 64

// RoleSessionName is what a function that several clusters share calls itself when it takes a
// cluster's role: CloudTrail shows it, and the role trusts no other.
func RoleSessionName(service, cluster string) string {
	name := service + "@" + cluster
	return name[:min(len(name), maxSessionLength)]
}

// checkFunctions refuses names of functions that AWS would, and those that are the
// cluster's own already.
func (c Cluster) checkFunctions() error {
	const op = "naming the functions that clusters share"
	switch {
	case c.Functions == "":
		return nil
	case !clusterName.MatchString(c.Functions):
		return fault.F(op, fault.Invalid, "%q cannot begin the names of functions", c.Functions).WithHint("use letters, digits, hyphens and underscores")
	case len(c.Functions) > maxFunctionPrefixLength:
		return fault.F(op, fault.Invalid, "names of functions that begin with %q are too long: it has %d characters", c.Functions, len(c.Functions)).
			WithHint("give the stack a name of at most %d characters", maxFunctionPrefixLength)
	case strings.EqualFold(c.Functions, c.namePrefix()): // To IAM names are the same in capitals and small letters.
		return fault.F(op, fault.Invalid, "the roles of the shared functions would have the names of those of the cluster %s", c.Name).
			WithHint("give the stack a name that no cluster has, nor its prefix")
	}
	return nil
}
