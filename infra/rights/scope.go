package rights

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Scope is whose rights they are: the names of one cluster's parts. Any of them may
// hold placeholders that a template fills in, but the cluster's name, which stands in
// the keys of conditions.
type Scope struct {
	// Partition is AWS's: aws, aws-cn or aws-us-gov.
	Partition, Account, Region string
	// Plan names queues, bus, rules and schedules.
	Plan topology.Plan
	// Bucket has the cluster's documents, below Prefix; an empty one means all of it.
	Bucket, Prefix string
	// NodeRole is the ARN of the role that nodes have: the one that is passed to EC2.
	NodeRole string
	// Profiles says that node classes name a role, so that the launcher makes instance
	// profiles. Without it IAM is read and written by nobody.
	Profiles bool
	// ZonalShift lets the catalog ask which zones are to be kept away from.
	ZonalShift bool
	// NodeTags are the keys of spec.tags that EC2NodeClasses may use, beside Joist's own,
	// with * and ? as wildcards. "*" lets them use any: then a launcher that is broken
	// into could put another cluster's tag beside its own's.
	NodeTags []string
	// Parameters are the names of SSM parameters that ssmParameter terms of node classes
	// name, beside those of AWS: "/images/ours", with wildcards.
	Parameters []string
	// Snapshots are the ids of the snapshots that block devices of node classes may name
	// although they do not carry the cluster's tag: "snap-0123", with wildcards.
	Snapshots []string
	// Replayers are the ARNs of people's roles that may put messages back into the
	// queues.
	Replayers []string
	// Roles and Functions are the names of services' roles and functions where those are
	// not <prefix>-joist-<service>.
	Roles, Functions map[string]string
}

// Validate refuses a scope with which rights would be wrong or too wide. Errors are
// fault.Invalid and say how to mend it.
func (s Scope) Validate() error {
	invalid := func(remedy, text string) error {
		return fault.E("writing the rights of cluster "+s.Plan.Cluster, fault.Invalid, errors.New(text)).WithHint("%s", remedy)
	}
	for _, must := range []struct{ name, value string }{
		{"partition", s.Partition}, {"account", s.Account}, {"region", s.Region}, {"cluster", s.Plan.Cluster},
		{"bus", s.Plan.Bus}, {"bucket", s.Bucket}, {"node role", s.NodeRole},
	} {
		if must.value == "" {
			return invalid("name it", "the "+must.name+" has no name")
		}
		if strings.ContainsAny(must.value, "*?") {
			return invalid("write it out", "the "+must.name+" "+must.value+" is a pattern, and would be many")
		}
	}
	if strings.ContainsAny(s.Prefix, "*?") {
		return invalid("write it out", "the prefix "+s.Prefix+" is a pattern, and would be many")
	}
	if !slices.Contains([]string{"aws", "aws-cn", "aws-us-gov"}, s.Partition) {
		return invalid("use one of aws, aws-cn and aws-us-gov", "the partition "+s.Partition+" is not known")
	}
	for _, who := range s.Replayers {
		if who == "*" || !strings.HasPrefix(who, "arn:") {
			return invalid("give the ARN of the role: arn:aws:iam::111122223333:role/on-call", "whoever is "+who+" would put messages into queues")
		}
	}
	return nil
}

// resourceARN is one of the cluster's account and region.
func (s Scope) resourceARN(service, resource string) string {
	return strings.Join([]string{"arn", s.Partition, service, s.Region, s.Account, resource}, ":")
}

// iamARN is one of IAM, which knows no regions.
func (s Scope) iamARN(resource string) string {
	return strings.Join([]string{"arn", s.Partition, "iam", "", s.Account, resource}, ":")
}

// serviceName is <prefix>-joist-<service>, unless another name was given.
func (s Scope) serviceName(names map[string]string, service string) string {
	if name := names[service]; name != "" {
		return name
	}
	return s.Plan.Prefix + "-joist-" + service
}

// Role is the ARN of a service's role.
func (s Scope) Role(service string) string {
	return s.iamARN("role/" + s.serviceName(s.Roles, service))
}

// functionName is what a service's function is called, and its role where clusters share
// it.
func (s Scope) functionName(service string) string {
	return cmp.Or(s.Functions[service], s.Plan.Function(service))
}

// functionARN is the ARN of a service's function.
func (s Scope) functionARN(service string) string {
	return s.resourceARN("lambda", "function:"+s.functionName(service))
}

func (s Scope) clusterARN() string { return s.resourceARN("eks", "cluster/"+s.Plan.Cluster) }

func (s Scope) busARN() string { return s.resourceARN("events", "event-bus/"+s.Plan.Bus) }

// ruleARN is a rule's ARN; those of the account's own bus do not name it.
func (s Scope) ruleARN(r topology.Rule) string {
	if r.Bus == topology.DefaultBus {
		return s.resourceARN("events", "rule/"+r.Name)
	}
	return s.resourceARN("events", "rule/"+r.Bus+"/"+r.Name)
}

// objectARN are the objects of the bucket below a folder.
func (s Scope) objectARN(folder string) string {
	return s.bucketARN() + "/" + strings.TrimPrefix(strings.Trim(s.Prefix, "/")+"/", "/") + folder
}

func (s Scope) bucketARN() string { return "arn:" + s.Partition + ":s3:::" + s.Bucket }

func (s Scope) inRegion() Condition {
	return newCondition("StringEquals", "aws:RequestedRegion", s.Region)
}
