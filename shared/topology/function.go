package topology

import (
	"cmp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// maxFunctionPrefixLength is the maximum length of the prefix of function and role names, which have up to 64
// characters and may end in "-joist-interruption".
const maxFunctionPrefixLength = 45

// FunctionName returns the name of the function that runs a service for the cluster.
func (p Plan) FunctionName(service string) string {
	return cmp.Or(p.Functions, p.Prefix) + "-joist-" + service
}

// HasSharedFunctions reports whether other clusters use the same functions.
func (p Plan) HasSharedFunctions() bool { return p.Functions != "" }

// maxSessionLength is the maximum length of a role session name
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html).
const maxSessionLength = 64

// RoleSessionName returns the session name with which a shared function assumes a cluster's role: CloudTrail shows
// it, and the role trusts no other.
func RoleSessionName(service, cluster string) string {
	name := service + "@" + cluster
	return name[:min(len(name), maxSessionLength)]
}

// checkFunctions rejects a prefix of function names that AWS would reject, or that the cluster's own functions have.
func (c Cluster) checkFunctions() error {
	const op = "naming the functions that clusters share"
	switch {
	case c.Functions == "":
		return nil
	case !clusterName.MatchString(c.Functions):
		return fault.F(op, fault.Invalid, "invalid prefix %q of function names", c.Functions).WithHint("use letters, digits, hyphens and underscores")
	case len(c.Functions) > maxFunctionPrefixLength:
		return fault.F(op, fault.Invalid, "the prefix %q of function names is too long: it has %d characters", c.Functions, len(c.Functions)).
			WithHint("give the stack a name of at most %d characters", maxFunctionPrefixLength)
	case strings.EqualFold(c.Functions, c.namePrefix()): // IAM names are case-insensitive.
		return fault.F(op, fault.Invalid, "the roles of the shared functions have the same names as those of the cluster %s", c.Name).
			WithHint("give the stack a name that is not a cluster's name or prefix")
	}
	return nil
}
