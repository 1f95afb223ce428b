package doctor

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Need is what a role must be allowed: each action on each resource.
type Need struct {
	Actions, Resources []string
	// Context are keys of conditions that only this need has, beside those of Base.
	Context map[string][]string
}

// Card is what the services' cards say of AWS, to be asked of IAM: one resource for each
// kind of right, with the tags that a service gives it. Rights that a cluster may do
// without are not in it.
type Card struct {
	Plan  topology.Plan
	Place Place
	// Bucket and Prefix are where documents lie.
	Bucket, Prefix string
	// NodeRole is the ARN of the role of nodes.
	NodeRole string
	// Profiles says that node classes name a role, so that the launcher keeps their
	// instance profiles.
	Profiles bool
	// Functions are those of the services, by service. One that takes the cluster's role
	// works on the queue with its own.
	Functions map[string]*Function
	// NoEKS says that the catalog never calls EKS.
	NoEKS bool
}

// Base are the conditions' keys of every request of a service, as IAM would see them:
// the simulator knows only what it is told.
func (c Card) Base(service string) map[string][]string {
	base := map[string][]string{
		"aws:RequestedRegion": {c.Place.Region}, "aws:ResourceAccount": {c.Place.Account}, "aws:SecureTransport": {"true"},
		"iam:PassedToService": {"ec2.amazonaws.com"},
	}
	if types := says(service); len(types) > 0 {
		base["events:source"], base["events:detail-type"] = []string{"joist/" + service}, types
	}
	return base
}

// Needs are those of a service, or of the scheduler.
func (c Card) Needs(service string) []Need {
	switch service {
	case topology.Scheduler:
		var to []string
		for _, q := range c.Plan.Queues {
			if slices.ContainsFunc(c.Plan.Ticks, func(t topology.Tick) bool { return t.Service == q.Service }) {
				to = append(to, c.Place.arn("sqs", q.Name), c.Place.arn("sqs", q.Dead))
			}
		}
		return []Need{{Actions: []string{"sqs:SendMessage"}, Resources: to}}
	case "catalog":
		return slices.Concat(c.messages(service), c.documents(service), c.reading())
	case "interruption":
		return append(c.messages(service), Need{Actions: []string{"ec2:DescribeInstanceStatus", "ec2:DescribeInstances"}, Resources: []string{"*"}})
	case "launcher":
		return slices.Concat(c.messages(service), c.documents(service), c.launching(), c.profiles())
	}
	return slices.Concat(c.messages(service), c.documents(service))
}

// messages is hearing and saying.
func (c Card) messages(service string) []Need {
	var out []Need
	if own, ok := c.Plan.Queue(service); ok {
		if !c.Functions[service].apart() {
			out = append(out, c.work(own))
		}
		out = append(out, Need{Actions: []string{"sqs:SendMessage"}, Resources: []string{c.Place.arn("sqs", own.Dead)}})
	}
	for _, q := range c.Plan.Queues {
		if slices.Contains(q.Senders, service) {
			out = append(out, Need{Actions: []string{"sqs:SendMessage"}, Resources: []string{c.Place.arn("sqs", q.Name)}})
		}
	}
	if len(says(service)) > 0 {
		out = append(out, Need{Actions: []string{"events:PutEvents"}, Resources: []string{c.Place.arn("events", "event-bus/"+c.Plan.Bus)}})
	}
	return out
}

// work is what it takes to work on a queue.
func (c Card) work(q topology.Queue, more ...string) Need {
	return Need{Actions: append([]string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}, more...), Resources: []string{c.Place.arn("sqs", q.Name)}}
}

// Taking are the needs of the role that a service's function has where it takes the
// cluster's; none where it does not.
func (c Card) Taking(service string) []Need {
	fn := c.Functions[service]
	own, ok := c.Plan.Queue(service)
	if !ok || !fn.takesRole() {
		return nil
	}
	return []Need{c.work(own, "sqs:GetQueueAttributes"), {Actions: []string{"sts:AssumeRole"}, Resources: []string{fn.Shared.Role}}}
}

// says are the types of facts that a service says.
func says(service string) []string {
	var types []string
	for i := range event.Specs {
		if spec := &event.Specs[i]; spec.Fact() && slices.Contains(spec.Producers, service) {
			types = append(types, string(spec.Type))
		}
	}
	return types
}

// folders are the documents that a service reads, and those that it writes. Who writes
// one looks first whether it is there.
var folders = map[string]struct{ reads, writes []string }{
	"watcher":    {[]string{catalog.Kind + "/latest"}, []string{planning.BatchKind + "/x", planning.SnapshotKind + "/x"}},
	"planner":    {[]string{planning.BatchKind + "/x", catalog.Kind + "/x"}, []string{launchspec.Kind + "/x", planning.PlanKind + "/x"}},
	"disruption": {[]string{planning.SnapshotKind + "/x", catalog.Kind + "/x"}, []string{launchspec.Kind + "/x", planning.PlanKind + "/x"}},
	"catalog":    {nil, []string{catalog.Kind + "/x", event.InventoryKind + "/x", "markets/x"}},
	"lifecycle":  {[]string{launchspec.Kind + "/x", event.InventoryKind + "/x", planning.PlanKind + "/x"}, nil},
	"launcher":   {[]string{launchspec.Kind + "/x"}, nil},
}

// documents is what a service does in the bucket.
func (c Card) documents(service string) []Need {
	f := folders[service]
	bucket := "arn:" + c.Place.Partition + ":s3:::" + c.Bucket
	objects := func(names []string) []string {
		var out []string
		for _, name := range names {
			out = append(out, bucket+"/"+c.Prefix+"/"+name)
		}
		return out
	}
	return []Need{
		{Actions: []string{"s3:GetObject"}, Resources: objects(slices.Concat(f.reads, f.writes))},
		{Actions: []string{"s3:PutObject"}, Resources: objects(f.writes)},
		{Actions: []string{"s3:ListBucket"}, Resources: []string{bucket}},
	}
}

// reading is the catalog's.
func (c Card) reading() []Need {
	out := []Need{
		{Actions: []string{
			"ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
			"ec2:DescribeInstances", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets", "pricing:GetProducts",
		}, Resources: []string{"*"}},
		{Actions: []string{"ssm:GetParameter"}, Resources: []string{"arn:" + c.Place.Partition + ":ssm:" + c.Place.Region + "::parameter/aws/service/x"}},
	}
	if !c.NoEKS {
		out = append(out, Need{Actions: []string{"eks:DescribeCluster"}, Resources: []string{c.Place.arn("eks", "cluster/"+c.Plan.Cluster)}})
	}
	return out
}

// launching is what the launcher does in EC2, of things that carry the cluster's tags.
func (c Card) launching() []Need {
	owned := map[string]string{
		karpenter.ClusterTagPrefix + c.Plan.Cluster: "owned", karpenter.NodePoolTagKey: "x", karpenter.EKSClusterNameTagKey: c.Plan.Cluster,
	}
	born := tagged(owned, owned)
	born["ec2:CreateAction"] = []string{"RunInstances"}
	named := tagged(owned, map[string]string{karpenter.NameTagKey: "x"})
	ec2 := func(kinds ...string) []string {
		var out []string
		for _, kind := range kinds {
			out = append(out, c.Place.arn("ec2", kind+"/*"))
		}
		return out
	}
	return []Need{
		{Actions: []string{"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"}, Resources: []string{"*"}},
		{Actions: []string{"ec2:CreateFleet"}, Resources: ec2("fleet", "instance", "launch-template"), Context: born},
		{Actions: []string{"ec2:RunInstances"}, Resources: ec2("instance", "volume", "network-interface", "launch-template", "subnet", "security-group"), Context: born},
		{Actions: []string{"ec2:CreateTags"}, Resources: ec2("instance"), Context: born},
		{Actions: []string{"ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate"}, Resources: ec2("launch-template"), Context: born},
		{Actions: []string{"ec2:TerminateInstances"}, Resources: ec2("instance"), Context: born},
		{Actions: []string{"ec2:CreateTags"}, Resources: ec2("instance"), Context: named},
		{Actions: []string{"iam:PassRole"}, Resources: []string{c.NodeRole}},
	}
}

// profiles is what the launcher does to instance profiles.
func (c Card) profiles() []Need {
	if !c.Profiles {
		return nil
	}
	tags := map[string]string{
		karpenter.ClusterTagPrefix + c.Plan.Cluster: "owned", karpenter.EKSClusterNameTagKey: c.Plan.Cluster, karpenter.NodeClassTagKey: "x",
		"topology.kubernetes.io/region": c.Place.Region,
	}
	return []Need{{
		Actions: []string{
			"iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:GetInstanceProfile", "iam:ListInstanceProfiles",
			"iam:RemoveRoleFromInstanceProfile", "iam:TagInstanceProfile",
		},
		Resources: []string{c.Place.iam("instance-profile/karpenter/" + c.Place.Region + "/" + c.Plan.Cluster + "/x/x")}, Context: tagged(tags, tags),
	}}
}

// tagged are the keys of conditions about something that has tags, and a request that
// sets some.
func tagged(has, asks map[string]string) map[string][]string {
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
