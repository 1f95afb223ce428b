package rights_test

import (
	"slices"
)

// The kinds of attacks, in the order of the page.
const (
	byOthers    = "EC2 calls by services other than the launcher"
	machines    = "Instances and templates of other owners"
	otherCalls  = "Other EC2 calls by the launcher"
	takeover    = "Taking over resources by tags"
	birth       = "Wrong tags on creation"
	passing     = "Passing roles"
	profiling   = "Instance profiles and IAM"
	queueing    = "Commands from unauthorised senders"
	deadReading = "Reading and deleting messages"
	bussing     = "Forged facts"
	storing     = "Documents in S3"
	reading     = "Reading other data"
	trusting    = "Assuming roles"
	sharing     = "Roles of shared functions"
)

type attack struct {
	kind string
	call
}

func attacks() []attack {
	return slices.Concat(attacksByOthers(), attacksOnMachines(), attacksByOtherCalls(), takeovers(), attacksAtBirth(),
		attacksByRole(), attacksOnProfiles(), attacksOnQueues(), attacksOnContents(), attacksOnBus(), attacksOnDocuments(), attacksByReading(), attacksOnTrust(), attacksOnSharing())
}

// under gives calls their kind.
func under(kind string, calls ...call) []attack {
	out := make([]attack, 0, len(calls))
	for _, c := range calls {
		out = append(out, attack{kind, c})
	}
	return out
}

// thinkers are the services that never change anything in EC2.
func thinkers() []string {
	return slices.DeleteFunc(services(), func(s string) bool { return s == "launcher" })
}

// attacksByOthers are the launcher's own calls, all proper, by somebody else.
func attacksByOthers() []attack {
	var out []call
	for _, who := range thinkers() {
		for _, c := range []call{
			{name: "launches instances", models: "CreateFleet", needs: launch{tags: launched(cluster), template: owned(cluster)}.needs()},
			{name: "makes a launch template", models: "CreateLaunchTemplate", needs: makeTemplate(owned(cluster))},
			{name: "deletes a launch template", models: "DeleteLaunchTemplate", needs: one(do("ec2:DeleteLaunchTemplate", ec2("launch-template"), carries(owned(cluster))))},
			{name: "terminates an instance", models: "TerminateInstances", needs: one(do("ec2:TerminateInstances", ec2("instance"), carries(launched(cluster))))},
			{name: "names an instance", models: "CreateTags", needs: retag(launched(cluster), tags("karpenter.sh/nodeclaim", "web-1"))},
		} {
			c.name, c.who, c.apart = who+" "+c.name, who, true
			out = append(out, c)
		}
	}
	return under(byOthers, out...)
}

func attacksOnMachines() []attack {
	var out []call
	for _, kind := range []struct{ resource, action, does string }{
		{"instance", "ec2:TerminateInstances", "terminates an instance"}, {"launch-template", "ec2:DeleteLaunchTemplate", "deletes a launch template"},
	} {
		add := func(what string, has map[string]string, arn string) {
			out = append(out, call{name: "launcher " + kind.does + " " + what, who: "launcher", models: kind.action[4:],
				needs: one(do(kind.action, arn, carries(has)))})
		}
		arn := ec2(kind.resource)
		add("of the other cluster", owned(beside), arn)
		add("without tags", nil, arn)
		add("of a managed node group, with the cluster's tag alone", tags("kubernetes.io/cluster/"+cluster, "owned"), arn)
		add("shared between clusters", with(owned(cluster), "kubernetes.io/cluster/"+cluster, "shared"), arn)
		add("with a NodePool's tag alone", tags("karpenter.sh/nodepool", "web"), arn)
		add("of the other cluster, tagged for ours as well", with(owned(beside), "kubernetes.io/cluster/"+cluster, "owned"), arn)
		add("with our cluster's name tag alone", tags("eks:eks-cluster-name", cluster, "karpenter.sh/nodepool", "web"), arn)
		add("of a cluster whose name starts with ours", owned(cluster+"-2"), arn)
		add("of the other cluster, created before v1", with(owned(beside), "eks:eks-cluster-name", "-"), arn)
		add("of another account, tagged as ours", owned(cluster), elsewhere(arn, account, foreign))
	}
	for _, c := range []struct {
		name string
		l    launch
	}{
		{"the other cluster's template", launch{tags: launched(cluster), template: owned(beside)}},
		{"a template without tags", launch{tags: launched(cluster)}},
		{"a template tagged for both clusters, with the other's name", launch{tags: launched(cluster), template: with(owned(beside), "kubernetes.io/cluster/"+cluster, "owned")}},
		{"the other cluster's template, created before v1", launch{tags: launched(cluster), template: with(owned(beside), "eks:eks-cluster-name", "-")}},
		{"a template without a NodePool", launch{tags: launched(cluster), template: with(owned(cluster), "karpenter.sh/nodepool", "-")}},
		{"a template of another account", launch{tags: launched(cluster), template: owned(cluster), templateARN: elsewhere(ec2("launch-template"), account, foreign)}},
		{"its own template in another region", launch{tags: launched(cluster), template: owned(cluster), region: away}},
	} {
		out = append(out, call{name: "launcher launches from " + c.name, who: "launcher", models: "CreateFleet", needs: c.l.needs()})
	}
	for _, c := range []struct {
		name string
		has  map[string]string
	}{
		{"without tags", nil}, {"of the other cluster", owned(beside)}, {"shared with the other cluster alone", tags("kubernetes.io/cluster/"+beside, "shared")},
		{"whose tag of the cluster has another value", tags("kubernetes.io/cluster/"+cluster, "backup")},
	} {
		for _, action := range []string{"CreateFleet", "RunInstances"} {
			out = append(out, call{name: "launcher copies a snapshot " + c.name + " with " + action, who: "launcher", models: action, needs: one(do("ec2:"+action, ec2("snapshot"), carries(c.has)))})
		}
	}
	return under(machines, append(out,
		call{name: "launcher terminates a tagged instance of another region", who: "launcher", models: "TerminateInstances",
			needs: one(do("ec2:TerminateInstances", elsewhere(ec2("instance"), region, away), carries(launched(cluster)), key("aws:RequestedRegion", away)))},
		call{name: "the other cluster's launcher terminates our instance", who: "neighbour/launcher", models: "TerminateInstances",
			needs: one(do("ec2:TerminateInstances", ec2("instance"), carries(launched(cluster))))},
		call{name: "the other cluster's launcher launches from our template", who: "neighbour/launcher", models: "CreateFleet",
			needs: launch{tags: launched(beside), template: owned(cluster), node: role("KarpenterNodeRole-" + beside)}.needs()},
		call{name: "the other cluster's launcher deletes our template", who: "neighbour/launcher", models: "DeleteLaunchTemplate",
			needs: one(do("ec2:DeleteLaunchTemplate", ec2("launch-template"), carries(owned(cluster))))},
	)...)
}

// attacksByOtherCalls are what a launcher that is broken into would like to do to its
// own cluster's machines, and to what they run in.
func attacksByOtherCalls() []attack {
	var out []call
	for _, c := range []struct{ action, kind string }{
		{"StopInstances", "instance"}, {"RebootInstances", "instance"}, {"ModifyInstanceAttribute", "instance"}, {"ModifyInstanceMetadataOptions", "instance"},
		{"AssociateIamInstanceProfile", "instance"}, {"ReplaceIamInstanceProfileAssociation", "instance"}, {"GetPasswordData", "instance"},
		{"GetConsoleOutput", "instance"}, {"DescribeInstanceAttribute", "instance"}, {"CreateImage", "instance"}, {"CreateSnapshot", "volume"},
		{"AttachVolume", "volume"}, {"DeleteVolume", "volume"}, {"DeleteNetworkInterface", "network-interface"}, {"DeleteTags", "instance"},
		{"CreateLaunchTemplateVersion", "launch-template"}, {"ModifyLaunchTemplate", "launch-template"}, {"DeleteFleets", "fleet"}, {"ModifyFleet", "fleet"},
		{"RequestSpotInstances", "spot-instances-request"}, {"AuthorizeSecurityGroupIngress", "security-group"}, {"DeleteSecurityGroup", "security-group"},
		{"ModifyImageAttribute", "image"}, {"CancelCapacityReservation", "capacity-reservation"}, {"DeletePlacementGroup", "placement-group"}, {"DeleteSubnet", "subnet"},
	} {
		out = append(out, call{name: "launcher calls " + c.action + " on its own " + c.kind, who: "launcher", models: c.action,
			needs: one(do("ec2:"+c.action, ec2(c.kind), carries(launched(cluster)), asks(nil)))})
	}
	return under(otherCalls, append(out,
		call{name: "launcher runs a command on its own instance", who: "launcher", models: "SSM SendCommand", needs: one(do("ssm:SendCommand", ec2("instance"), carries(launched(cluster))))},
		call{name: "launcher opens a session on its own instance", who: "launcher", models: "SSM StartSession", needs: one(do("ssm:StartSession", ec2("instance"), carries(launched(cluster))))},
		call{name: "launcher installs an SSH key on its own instance", who: "launcher", models: "EC2 Instance Connect", needs: one(do("ec2-instance-connect:SendSSHPublicKey", ec2("instance"), carries(launched(cluster))))},
	)...)
}

// formalities are requests that EC2 would refuse by itself, and that IAM should not
// have to see refused: they are on no page, and count against nobody.
func formalities() []attack {
	empty := tags("", "x")
	return under(takeover,
		call{name: "launcher tags its own instance with an empty key", who: "launcher", models: "CreateTags", needs: retag(launched(cluster), empty)},
		call{name: "launcher tags its own claimed instance with an empty key", who: "launcher", models: "CreateTags", needs: retag(with(launched(cluster), "karpenter.sh/nodeclaim", "web-1"), empty)})
}

func takeovers() []attack {
	ours := launched(cluster)
	claimed := with(ours, "karpenter.sh/nodeclaim", "web-1")
	var out []call
	add := func(name string, has, gets map[string]string) {
		out = append(out, call{name: "launcher tags " + name, who: "launcher", models: "CreateTags", needs: retag(has, gets)})
	}
	add("the other cluster's instance as ours", launched(beside), owned(cluster))
	add("the other cluster's instance with our claim", launched(beside), tags("karpenter.sh/nodeclaim", "web-1"))
	add("the other cluster's instance with our name", launched(beside), tags("eks:eks-cluster-name", cluster))
	add("the other cluster's instance with a Name", launched(beside), tags("Name", "x"))
	add("an instance without tags as ours", nil, owned(cluster))
	add("an instance without tags with a claim", nil, tags("karpenter.sh/nodeclaim", "web-1"))
	add("a managed node group's instance with a NodePool", tags("kubernetes.io/cluster/"+cluster, "owned"), tags("karpenter.sh/nodepool", "web"))
	add("a managed node group's instance with a claim", tags("kubernetes.io/cluster/"+cluster, "owned"), tags("karpenter.sh/nodeclaim", "web-1"))
	old := with(launched(beside), "eks:eks-cluster-name", "-")
	add("the other cluster's instance created before v1 with a claim", old, tags("karpenter.sh/nodeclaim", "web-1"))
	add("the other cluster's claimed instance created before v1 with our name", with(old, "karpenter.sh/nodeclaim", "x"), tags("eks:eks-cluster-name", cluster))
	add("a managed node group's claimed instance with a Name", tags("kubernetes.io/cluster/"+cluster, "owned", "karpenter.sh/nodeclaim", "x"), tags("Name", "x"))
	add("a claimed instance tagged for both clusters, with a Name", with(launched(beside), "kubernetes.io/cluster/"+cluster, "owned", "karpenter.sh/nodeclaim", "x"), tags("Name", "x"))
	add("its own claimed instance with the other cluster's name", claimed, tags("eks:eks-cluster-name", beside))
	add("an instance tagged for both clusters, with a claim", with(launched(beside), "kubernetes.io/cluster/"+cluster, "owned"), tags("karpenter.sh/nodeclaim", "web-1"))
	add("an instance tagged for both clusters, with our name", with(launched(beside), "kubernetes.io/cluster/"+cluster, "owned"), tags("eks:eks-cluster-name", cluster))
	add("its own instance for the other cluster", ours, tags("kubernetes.io/cluster/"+beside, "owned"))
	add("its own instance with the other cluster's name", ours, tags("eks:eks-cluster-name", beside))
	add("its own instance with another NodePool", ours, tags("karpenter.sh/nodepool", "gpu"))
	add("its own instance with another node class", ours, tags("karpenter.k8s.aws/ec2nodeclass", "gpu"))
	add("its own instance with another intent", ours, tags("joist.sh/intent", "i-2"))
	add("its own claimed instance with another claim", claimed, tags("karpenter.sh/nodeclaim", "web-2"))
	add("its own claimed instance with another claim and a Name", claimed, tags("karpenter.sh/nodeclaim", "web-2", "Name", "web-2"))
	add("its own instance with a privileged tag", ours, tags("role", "administrator"))
	add("its own instance with a Name and a privileged tag", ours, tags("Name", "x", "role", "administrator"))
	add("the other cluster's instance without new tags", launched(beside), nil)
	for _, kind := range []string{"security-group", "subnet", "image", "volume", "network-interface", "snapshot", "capacity-reservation", "placement-group"} {
		out = append(out, call{name: "launcher tags a resource for discovery: " + kind, who: "launcher", models: "CreateTags",
			needs: one(do("ec2:CreateTags", ec2(kind), asks(tags("karpenter.sh/discovery", cluster))))})
	}
	for _, kind := range []string{"volume", "network-interface", "launch-template"} {
		out = append(out, call{name: "launcher tags a " + kind + " of the other cluster as ours", who: "launcher", models: "CreateTags",
			needs: one(do("ec2:CreateTags", ec2(kind), carries(owned(beside)), asks(owned(cluster))))})
	}
	return under(takeover, append(out,
		call{name: "launcher removes the tags of the other cluster's instance", who: "launcher", models: "DeleteTags", needs: one(do("ec2:DeleteTags", ec2("instance"), carries(launched(beside)), key("aws:TagKeys", "kubernetes.io/cluster/"+beside)))},
		call{name: "launcher removes the tags of its own instance, to hide it", who: "launcher", models: "DeleteTags", needs: one(do("ec2:DeleteTags", ec2("instance"), carries(ours), key("aws:TagKeys", "karpenter.sh/nodepool")))},
		call{name: "the other cluster's launcher tags our instance with a claim", who: "neighbour/launcher", models: "CreateTags", needs: retag(ours, tags("karpenter.sh/nodeclaim", "x-1"))},
	)...)
}

func attacksAtBirth() []attack {
	var out []call
	ours := launched(cluster)
	for _, c := range []struct {
		name string
		l    launch
	}{
		{"without tags", launch{}},
		{"without the cluster's tag", launch{tags: with(ours, "kubernetes.io/cluster/"+cluster, "-")}},
		{"without the cluster's name", launch{tags: with(ours, "eks:eks-cluster-name", "-")}},
		{"without a NodePool", launch{tags: with(ours, "karpenter.sh/nodepool", "-")}},
		{"shared between clusters", launch{tags: with(ours, "kubernetes.io/cluster/"+cluster, "shared")}},
		{"with the other cluster's tags", launch{tags: launched(beside)}},
		{"with our tag and the other cluster's name", launch{tags: with(ours, "eks:eks-cluster-name", beside)}},
		{"with our name and the other cluster's tag", launch{tags: with(launched(beside), "eks:eks-cluster-name", cluster)}},
		{"with both clusters' tags", launch{tags: with(ours, "kubernetes.io/cluster/"+beside, "owned")}},
		{"with a privileged tag", launch{tags: with(ours, "role", "administrator")}},
		{"with another team's cost tags", launch{tags: with(ours, "CostCenter", "another-team")}},
		{"with a tag of AWS Backup", launch{tags: with(ours, "backup", "daily")}},
		{"with an untagged volume", launch{tags: ours, bare: []string{"volume"}}},
		{"with an untagged interface", launch{tags: ours, bare: []string{"network-interface"}}},
		{"with an untagged fleet", launch{tags: ours, bare: []string{"fleet"}}},
		{"with an untagged spot request", launch{tags: ours, bare: []string{"spot-instances-request"}}},
		{"with every resource tagged but the instance", launch{tags: ours, bare: []string{"instance"}}},
	} {
		c.l.template = owned(cluster)
		out = append(out, call{name: "launcher launches instances " + c.name, who: "launcher", models: "CreateFleet", needs: c.l.needs()})
	}
	for _, c := range []struct {
		name string
		tags map[string]string
	}{
		{"without tags", nil},
		{"for the other cluster", owned(beside)},
		{"for both clusters", with(owned(cluster), "kubernetes.io/cluster/"+beside, "owned")},
		{"with the other cluster's name", with(owned(cluster), "eks:eks-cluster-name", beside)},
		{"with a privileged tag", with(owned(cluster), "role", "administrator")},
	} {
		out = append(out, call{name: "launcher makes a template " + c.name, who: "launcher", models: "CreateLaunchTemplate", needs: makeTemplate(c.tags)})
	}
	for key := range owned(cluster) {
		if key == "karpenter.k8s.aws/ec2nodeclass" {
			continue
		}
		out = append(out, call{name: "launcher makes a template with a missing tag: " + key, who: "launcher", models: "CreateLaunchTemplate", needs: makeTemplate(with(owned(cluster), key, "-"))})
	}
	return sorted(under(birth, append(out,
		call{name: "launcher tags a volume that it may not create", who: "launcher", models: "CreateTags", needs: one(do("ec2:CreateTags", ec2("volume"), asks(owned(cluster)), key("ec2:CreateAction", "CreateVolume")))},
		call{name: "launcher retags the other cluster's instance after creation", who: "launcher", models: "CreateTags", needs: one(do("ec2:CreateTags", ec2("instance"), carries(launched(beside)), asks(owned(cluster))))},
	)...))
}
