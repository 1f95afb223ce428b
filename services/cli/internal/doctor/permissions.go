package doctor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Permission is a set of actions that a role needs on each of some resources.
type Permission struct {
	Actions, Resources []string
	// Context are condition keys for this permission only, in addition to BaseContext.
	Context map[string][]string
}

// PermissionSet describes the AWS permissions of the services' cards, for IAM's policy
// simulator: one resource of each kind, with the tags that a service sets. It omits
// permissions of optional features.
type PermissionSet struct {
	Plan     topology.Plan
	Location Location
	// Bucket and Prefix are the location of the documents.
	Bucket, Prefix string
	// NodeRole is the ARN of the node role.
	NodeRole string
	// Profiles reports that EC2NodeClasses name a role, so that the launcher manages instance
	// profiles.
	Profiles bool
	// Functions are those of the services, by service. A function that assumes the cluster's
	// role reads the queue with its own.
	Functions map[string]*Function
	// NoEKS reports that the catalog never calls EKS.
	NoEKS bool
	// Reboots reports that node repair reboots nodes.
	Reboots bool
}

// RebootsNodes reports whether lifecycle has the gate RebootForRepair. Values that are not literal are unknown.
func (f Facts) RebootsNodes() bool {
	for _, d := range f.Deployments {
		for gate := range strings.SplitSeq(d.Environ[settings.AWSGates], ",") {
			name, value, _ := strings.Cut(gate, "=")
			if on, err := strconv.ParseBool(strings.TrimSpace(value)); err == nil && on && d.Component == "lifecycle" && strings.TrimSpace(name) == "RebootForRepair" {
				return true
			}
		}
	}
	return false
}

// BaseContext returns the condition keys of every request of a service. IAM's simulator knows
// no others.
func (c PermissionSet) BaseContext(service string) map[string][]string {
	base := map[string][]string{
		"aws:RequestedRegion": {c.Location.Region}, "aws:ResourceAccount": {c.Location.Account}, "aws:SecureTransport": {"true"},
		"iam:PassedToService": {"ec2.amazonaws.com"},
	}
	if types := publishedTypes(service); len(types) > 0 {
		base["events:source"], base["events:detail-type"] = []string{"joist/" + service}, types
	}
	return base
}

// ServicePermissions returns the permissions of a service or of the scheduler.
func (c PermissionSet) ServicePermissions(service string) []Permission {
	switch service {
	case topology.Scheduler:
		var to []string
		for _, q := range c.Plan.Queues {
			if slices.ContainsFunc(c.Plan.Ticks, func(t topology.Tick) bool { return t.Service == q.Service }) {
				to = append(to, c.Location.resourceARN("sqs", q.Name), c.Location.resourceARN("sqs", q.Dead))
			}
		}
		return []Permission{{Actions: []string{"sqs:SendMessage"}, Resources: to}}
	case "catalog":
		return slices.Concat(c.messagePermissions(service), c.documentPermissions(service), c.catalogPermissions())
	case "interruption":
		return append(c.messagePermissions(service), Permission{Actions: []string{"ec2:DescribeInstanceStatus", "ec2:DescribeInstances"}, Resources: []string{"*"}})
	case "launcher":
		return slices.Concat(c.messagePermissions(service), c.documentPermissions(service), c.launchPermissions(), c.profilePermissions())
	}
	return slices.Concat(c.messagePermissions(service), c.documentPermissions(service))
}

// messagePermissions returns the permissions for queues and the bus.
func (c PermissionSet) messagePermissions(service string) []Permission {
	var out []Permission
	if own, ok := c.Plan.Queue(service); ok {
		if !c.Functions[service].usesOtherRole() {
			out = append(out, c.queuePermission(own))
		}
		out = append(out, Permission{Actions: []string{"sqs:SendMessage"}, Resources: []string{c.Location.resourceARN("sqs", own.Dead)}})
	}
	for _, q := range c.Plan.Queues {
		if slices.Contains(q.Senders, service) {
			out = append(out, Permission{Actions: []string{"sqs:SendMessage"}, Resources: []string{c.Location.resourceARN("sqs", q.Name)}})
		}
	}
	if len(publishedTypes(service)) > 0 {
		out = append(out, Permission{Actions: []string{"events:PutEvents"}, Resources: []string{c.Location.resourceARN("events", "event-bus/"+c.Plan.Bus)}})
	}
	return out
}

// queuePermission returns the permission to consume a queue.
func (c PermissionSet) queuePermission(q topology.Queue, more ...string) Permission {
	return Permission{Actions: append([]string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}, more...), Resources: []string{c.Location.resourceARN("sqs", q.Name)}}
}

// AssumingPermissions returns the permissions of a function's own role, if the function
// assumes the cluster's role.
func (c PermissionSet) AssumingPermissions(service string) []Permission {
	fn := c.Functions[service]
	own, ok := c.Plan.Queue(service)
	if !ok || !fn.takesRole() {
		return nil
	}
	return []Permission{c.queuePermission(own, "sqs:GetQueueAttributes"), {Actions: []string{"sts:AssumeRole"}, Resources: []string{fn.Shared.Role}}}
}

// publishedTypes returns the types of facts that a service publishes.
func publishedTypes(service string) []string {
	var types []string
	for i := range event.Specs {
		if spec := &event.Specs[i]; spec.IsFact() && slices.Contains(spec.Producers, service) {
			types = append(types, string(spec.Type))
		}
	}
	return types
}

// documentKeys are the documents that each service reads and writes. Before a service writes a
// document, it checks whether it exists.
var documentKeys = map[string]struct{ reads, writes []string }{
	"watcher":    {[]string{catalog.Kind + "/latest"}, []string{planning.BatchKind + "/x", planning.SnapshotKind + "/x", planning.NodesKind + "/x"}},
	"planner":    {[]string{planning.BatchKind + "/x", planning.NodesKind + "/x", catalog.Kind + "/x"}, []string{launchspec.Kind + "/x", planning.PlanKind + "/x"}},
	"disruption": {[]string{planning.SnapshotKind + "/x", planning.NodesKind + "/x", catalog.Kind + "/x"}, []string{launchspec.Kind + "/x", planning.PlanKind + "/x"}},
	"catalog":    {nil, []string{catalog.Kind + "/x", event.InventoryKind + "/x", "markets/x"}},
	"lifecycle":  {[]string{launchspec.Kind + "/x", event.InventoryKind + "/x", planning.PlanKind + "/x"}, nil},
	"launcher":   {[]string{launchspec.Kind + "/x"}, nil},
}

// documentPermissions returns the permissions for the bucket.
func (c PermissionSet) documentPermissions(service string) []Permission {
	f := documentKeys[service]
	bucket := "arn:" + c.Location.Partition + ":s3:::" + c.Bucket
	objects := func(names []string) []string {
		var out []string
		for _, name := range names {
			out = append(out, bucket+"/"+c.Prefix+"/"+name)
		}
		return out
	}
	return []Permission{
		{Actions: []string{"s3:GetObject"}, Resources: objects(slices.Concat(f.reads, f.writes))},
		{Actions: []string{"s3:PutObject"}, Resources: objects(f.writes)},
		{Actions: []string{"s3:ListBucket"}, Resources: []string{bucket}},
	}
}

// catalogPermissions returns the catalog's own permissions.
func (c PermissionSet) catalogPermissions() []Permission {
	out := []Permission{
		{Actions: []string{
			"ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
			"ec2:DescribeInstances", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets", "pricing:GetProducts",
		}, Resources: []string{"*"}},
		{Actions: []string{"ssm:GetParameter"}, Resources: []string{"arn:" + c.Location.Partition + ":ssm:" + c.Location.Region + "::parameter/aws/service/x"}},
	}
	if !c.NoEKS {
		out = append(out, Permission{Actions: []string{"eks:DescribeCluster"}, Resources: []string{c.Location.resourceARN("eks", "cluster/"+c.Plan.Cluster)}})
	}
	return out
}

// launchPermissions returns the launcher's permissions in EC2, for resources with the
// cluster's tags.
func (c PermissionSet) launchPermissions() []Permission {
	owned := map[string]string{
		karpenter.ClusterTagPrefix + c.Plan.Cluster: "owned", karpenter.NodePoolTagKey: "x", karpenter.EKSClusterNameTagKey: c.Plan.Cluster,
	}
	launched := tagContext(owned, owned)
	launched["ec2:CreateAction"] = []string{"RunInstances"}
	named := tagContext(owned, map[string]string{karpenter.NameTagKey: "x"})
	ec2 := func(kinds ...string) []string {
		var out []string
		for _, kind := range kinds {
			out = append(out, c.Location.resourceARN("ec2", kind+"/*"))
		}
		return out
	}
	var reboots []Permission
	if c.Reboots {
		reboots = []Permission{{Actions: []string{"ec2:RebootInstances"}, Resources: ec2("instance"), Context: launched}}
	}
	return append(reboots, []Permission{
		{Actions: []string{"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"}, Resources: []string{"*"}},
		{Actions: []string{"ec2:CreateFleet"}, Resources: ec2("fleet", "instance", "launch-template"), Context: launched},
		{Actions: []string{"ec2:RunInstances"}, Resources: ec2("instance", "volume", "network-interface", "launch-template", "subnet", "security-group"), Context: launched},
		{Actions: []string{"ec2:CreateTags"}, Resources: ec2("instance"), Context: launched},
		{Actions: []string{"ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate"}, Resources: ec2("launch-template"), Context: launched},
		{Actions: []string{"ec2:TerminateInstances"}, Resources: ec2("instance"), Context: launched},
		{Actions: []string{"ec2:CreateTags"}, Resources: ec2("instance"), Context: named},
		{Actions: []string{"iam:PassRole"}, Resources: []string{c.NodeRole}},
	}...)
}

// profilePermissions returns the launcher's permissions for instance profiles.
func (c PermissionSet) profilePermissions() []Permission {
	if !c.Profiles {
		return nil
	}
	tags := map[string]string{
		karpenter.ClusterTagPrefix + c.Plan.Cluster: "owned", karpenter.EKSClusterNameTagKey: c.Plan.Cluster, karpenter.NodeClassTagKey: "x",
		"topology.kubernetes.io/region": c.Location.Region,
	}
	return []Permission{{
		Actions: []string{
			"iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:GetInstanceProfile", "iam:ListInstanceProfiles",
			"iam:RemoveRoleFromInstanceProfile", "iam:TagInstanceProfile",
		},
		Resources: []string{c.Location.iamARN("instance-profile/karpenter/" + c.Location.Region + "/" + c.Plan.Cluster + "/x/x")}, Context: tagContext(tags, tags),
	}}
}

// tagContext returns the condition keys for a resource with tags and a request that sets tags.
func tagContext(has, asks map[string]string) map[string][]string {
	out := map[string][]string{}
	for key, value := range has {
		out["aws:ResourceTag/"+key] = []string{value}
	}
	for key, value := range asks {
		out["aws:RequestTag/"+key] = []string{value}
		out["aws:TagKeys"] = append(out["aws:TagKeys"], key)
	}
	slices.Sort(out["aws:TagKeys"])
	return out
}
