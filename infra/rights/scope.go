package rights

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Scope has the names of one cluster's resources. They may have placeholders of a template,
// except the cluster's name, which is part of condition keys.
type Scope struct {
	// Partition is AWS's: aws, aws-cn or aws-us-gov.
	Partition, Account, Region string
	// Plan names queues, bus, rules and schedules.
	Plan topology.Plan
	// Bucket has the cluster's documents below Prefix; an empty prefix is the whole bucket.
	Bucket, Prefix string
	// NodeRole is the ARN of the nodes' role, which is passed to EC2.
	NodeRole string
	// WindowsNodeRole is the ARN of the role of Windows nodes, if they have another one.
	WindowsNodeRole string
	// Profiles is set if node classes name a role, so that the launcher creates instance
	// profiles. Otherwise no service reads or writes IAM.
	Profiles bool
	// ZonalShift allows the catalog to read zonal shifts.
	ZonalShift bool
	// RebootForRepair allows the launcher to reboot the cluster's instances.
	RebootForRepair bool
	// NodeTags are the keys that spec.tags of EC2NodeClasses may use in addition to Joist's
	// own, with * and ? as wildcards. With "*", a compromised launcher could also add another
	// cluster's tag.
	NodeTags []string
	// Parameters are the names of SSM parameters in ssmParameter terms, in addition to AWS's,
	// with wildcards.
	Parameters []string
	// Snapshots are the ids of snapshots that block devices may use although they lack the
	// cluster's tag, with wildcards.
	Snapshots []string
	// Replayers are the ARNs of roles that may send messages back to the queues.
	Replayers []string
	// Roles and Functions are the names of services' roles and functions that differ from
	// <prefix>-joist-<service>.
	Roles, Functions map[string]string
}

// Validate rejects a scope whose policies would be wrong or too broad. Errors are
// fault.Invalid with a hint.
func (s Scope) Validate() error {
	invalid := func(remedy, text string) error {
		return fault.E("writing the policies of cluster "+s.Plan.Cluster, fault.Invalid, errors.New(text)).WithHint("%s", remedy)
	}
	for _, must := range []struct{ name, value string }{
		{"partition", s.Partition}, {"account", s.Account}, {"region", s.Region}, {"cluster", s.Plan.Cluster},
		{"bus", s.Plan.Bus}, {"bucket", s.Bucket}, {"node role", s.NodeRole},
	} {
		if must.value == "" {
			return invalid("set it", "the "+must.name+" has no name")
		}
		if strings.ContainsAny(must.value, "*?") {
			return invalid("write it out", "the "+must.name+" "+must.value+" has a wildcard, which would match several")
		}
	}
	if strings.ContainsAny(s.Prefix, "*?") {
		return invalid("write it out", "the prefix "+s.Prefix+" has a wildcard, which would match several")
	}
	if !slices.Contains([]string{"aws", "aws-cn", "aws-us-gov"}, s.Partition) {
		return invalid("use one of aws, aws-cn and aws-us-gov", "the partition "+s.Partition+" is not supported")
	}
	for _, role := range s.Replayers {
		if role == "*" || !strings.HasPrefix(role, "arn:") {
			return invalid("give the ARN of the role: arn:aws:iam::111122223333:role/on-call", "the replayer "+role+" is not an ARN")
		}
	}
	return nil
}

// resourceARN returns an ARN in the cluster's account and region.
func (s Scope) resourceARN(service, resource string) string {
	return strings.Join([]string{"arn", s.Partition, service, s.Region, s.Account, resource}, ":")
}

// iamARN returns an ARN of IAM, which has no region.
func (s Scope) iamARN(resource string) string {
	return strings.Join([]string{"arn", s.Partition, "iam", "", s.Account, resource}, ":")
}

// serviceName returns <prefix>-joist-<service>, or the other name in names.
func (s Scope) serviceName(names map[string]string, service string) string {
	if name := names[service]; name != "" {
		return name
	}
	return s.Plan.Prefix + "-joist-" + service
}

// Role returns the ARN of a service's role.
func (s Scope) Role(service string) string {
	return s.iamARN("role/" + s.serviceName(s.Roles, service))
}

// functionName returns the name of a service's function, and of its role if it is shared.
func (s Scope) functionName(service string) string {
	return cmp.Or(s.Functions[service], s.Plan.FunctionName(service))
}

// functionARN returns the ARN of a service's function.
func (s Scope) functionARN(service string) string {
	return s.resourceARN("lambda", "function:"+s.functionName(service))
}

// nodeRoleARNs returns the ARNs of the roles that nodes have.
func (s Scope) nodeRoleARNs() []string {
	if s.WindowsNodeRole == "" {
		return []string{s.NodeRole}
	}
	return []string{s.NodeRole, s.WindowsNodeRole}
}

func (s Scope) clusterARN() string { return s.resourceARN("eks", "cluster/"+s.Plan.Cluster) }

func (s Scope) busARN() string { return s.resourceARN("events", "event-bus/"+s.Plan.Bus) }

// ruleARN returns a rule's ARN, which does not name the default bus.
func (s Scope) ruleARN(r topology.Rule) string {
	if r.Bus == topology.DefaultBus {
		return s.resourceARN("events", "rule/"+r.Name)
	}
	return s.resourceARN("events", "rule/"+r.Bus+"/"+r.Name)
}

// objectARN returns the ARN pattern of the objects in a folder.
func (s Scope) objectARN(folder string) string {
	return s.bucketARN() + "/" + strings.TrimPrefix(strings.Trim(s.Prefix, "/")+"/", "/") + folder
}

func (s Scope) bucketARN() string { return "arn:" + s.Partition + ":s3:::" + s.Bucket }

func (s Scope) inRegion() Condition {
	return newCondition("StringEquals", "aws:RequestedRegion", s.Region)
}
