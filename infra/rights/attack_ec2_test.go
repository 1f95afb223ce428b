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
	return slices.Concat(attacksByOthers(), attacksOnMachines(), attacksByOtherCalls(), attacksByTakeover(), attacksAtBirth(),
		attacksByRole(), attacksOnProfiles(), attacksOnQueues(), attacksOnContents(), attacksOnBus(), attacksOnDocuments(), attacksByReading(), attacksOnTrust(), attacksOnSharing())
}

// asPrincipal returns the calls as attacks of one kind.
func asPrincipal(kind string, calls ...call) []attack {
	out := make([]attack, 0, len(calls))
	for _, c := range calls {
		out = append(out, attack{kind, c})
	}
	return out
}

// pureServices returns the services that never change anything in EC2.
func pureServices() []string {
	return slices.DeleteFunc(services(), func(s string) bool { return s == "launcher" })
}

// attacksByOthers returns the launcher's own valid calls, made by other principals.
func attacksByOthers() []attack {
	var out []call
	for _, who := range pureServices() {
		for _, c := range []call{
			{name: "launches instances", models: "CreateFleet", needs: launch{tags: launchedTags(cluster), template: ownedTags(cluster)}.needs()},
			{name: "makes a launch template", models: "CreateLaunchTemplate", needs: makeTemplate(ownedTags(cluster))},
			{name: "deletes a launch template", models: "DeleteLaunchTemplate", needs: singleCall(newCall("ec2:DeleteLaunchTemplate", ec2("launch-template"), resourceTags(ownedTags(cluster))))},
			{name: "terminates an instance", models: "TerminateInstances", needs: singleCall(newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(launchedTags(cluster))))},
			{name: "names an instance", models: "CreateTags", needs: changeTags(launchedTags(cluster), tags("karpenter.sh/nodeclaim", "web-1"))},
		} {
			c.name, c.who, c.apart = who+" "+c.name, who, true
			out = append(out, c)
		}
	}
	return asPrincipal(byOthers, out...)
}

func attacksOnMachines() []attack {
	var out []call
	for _, kind := range []struct{ resource, action, does string }{
		{"instance", "ec2:TerminateInstances", "terminates an instance"}, {"instance", "ec2:RebootInstances", "reboots an instance"}, {"launch-template", "ec2:DeleteLaunchTemplate", "deletes a launch template"},
	} {
		add := func(what string, has map[string]string, arn string) {
			out = append(out, call{name: "launcher " + kind.does + " " + what, who: "launcher", models: kind.action[4:],
				needs: singleCall(newCall(kind.action, arn, resourceTags(has)))})
		}
		arn := ec2(kind.resource)
		add("of the other cluster", ownedTags(beside), arn)
		add("without tags", nil, arn)
		add("of a managed node group, with the cluster's tag alone", tags("kubernetes.io/cluster/"+cluster, "owned"), arn)
		add("shared between clusters", mergeTags(ownedTags(cluster), "kubernetes.io/cluster/"+cluster, "shared"), arn)
		add("with a NodePool's tag alone", tags("karpenter.sh/nodepool", "web"), arn)
		add("of the other cluster, tagged for ours as well", mergeTags(ownedTags(beside), "kubernetes.io/cluster/"+cluster, "owned"), arn)
		add("with our cluster's name tag alone", tags("eks:eks-cluster-name", cluster, "karpenter.sh/nodepool", "web"), arn)
		add("of a cluster whose name starts with ours", ownedTags(cluster+"-2"), arn)
		add("of the other cluster, created before v1", mergeTags(ownedTags(beside), "eks:eks-cluster-name", "-"), arn)
		add("of another account, tagged as ours", ownedTags(cluster), otherARN(arn, account, foreign))
	}
	for _, c := range []struct {
		name string
		l    launch
	}{
		{"the other cluster's template", launch{tags: launchedTags(cluster), template: ownedTags(beside)}},
		{"a template without tags", launch{tags: launchedTags(cluster)}},
		{"a template tagged for both clusters, with the other's name", launch{tags: launchedTags(cluster), template: mergeTags(ownedTags(beside), "kubernetes.io/cluster/"+cluster, "owned")}},
		{"the other cluster's template, created before v1", launch{tags: launchedTags(cluster), template: mergeTags(ownedTags(beside), "eks:eks-cluster-name", "-")}},
		{"a template without a NodePool", launch{tags: launchedTags(cluster), template: mergeTags(ownedTags(cluster), "karpenter.sh/nodepool", "-")}},
		{"a template of another account", launch{tags: launchedTags(cluster), template: ownedTags(cluster), templateARN: otherARN(ec2("launch-template"), account, foreign)}},
		{"its own template in another region", launch{tags: launchedTags(cluster), template: ownedTags(cluster), region: away}},
	} {
		out = append(out, call{name: "launcher launches from " + c.name, who: "launcher", models: "CreateFleet", needs: c.l.needs()})
	}
	for _, c := range []struct {
		name string
		has  map[string]string
	}{
		{"without tags", nil}, {"of the other cluster", ownedTags(beside)}, {"shared with the other cluster alone", tags("kubernetes.io/cluster/"+beside, "shared")},
		{"whose tag of the cluster has another value", tags("kubernetes.io/cluster/"+cluster, "backup")},
	} {
		for _, action := range []string{"CreateFleet", "RunInstances"} {
			out = append(out, call{name: "launcher copies a snapshot " + c.name + " with " + action, who: "launcher", models: action, needs: singleCall(newCall("ec2:"+action, ec2("snapshot"), resourceTags(c.has)))})
		}
	}
	return asPrincipal(machines, append(out,
		call{name: "launcher terminates a tagged instance of another region", who: "launcher", models: "TerminateInstances",
			needs: singleCall(newCall("ec2:TerminateInstances", otherARN(ec2("instance"), region, away), resourceTags(launchedTags(cluster)), key("aws:RequestedRegion", away)))},
		call{name: "launcher reboots a tagged instance of another region", who: "launcher", models: "RebootInstances",
			needs: singleCall(newCall("ec2:RebootInstances", otherARN(ec2("instance"), region, away), resourceTags(launchedTags(cluster)), key("aws:RequestedRegion", away)))},
		call{name: "the other cluster's launcher reboots our instance", who: "neighbour/launcher", models: "RebootInstances",
			needs: singleCall(newCall("ec2:RebootInstances", ec2("instance"), resourceTags(launchedTags(cluster))))},
		call{name: "the other cluster's launcher terminates our instance", who: "neighbour/launcher", models: "TerminateInstances",
			needs: singleCall(newCall("ec2:TerminateInstances", ec2("instance"), resourceTags(launchedTags(cluster))))},
		call{name: "the other cluster's launcher launches from our template", who: "neighbour/launcher", models: "CreateFleet",
			needs: launch{tags: launchedTags(beside), template: ownedTags(cluster), node: role("KarpenterNodeRole-" + beside)}.needs()},
		call{name: "the other cluster's launcher deletes our template", who: "neighbour/launcher", models: "DeleteLaunchTemplate",
			needs: singleCall(newCall("ec2:DeleteLaunchTemplate", ec2("launch-template"), resourceTags(ownedTags(cluster))))},
	)...)
}

// attacksByOtherCalls returns calls with which a compromised launcher would attack its
// own cluster's instances and their environment.
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
			needs: singleCall(newCall("ec2:"+c.action, ec2(c.kind), resourceTags(launchedTags(cluster)), requestTags(nil)))})
	}
	return asPrincipal(otherCalls, append(out,
		call{name: "launcher runs a command on its own instance", who: "launcher", models: "SSM SendCommand", needs: singleCall(newCall("ssm:SendCommand", ec2("instance"), resourceTags(launchedTags(cluster))))},
		call{name: "launcher opens a session on its own instance", who: "launcher", models: "SSM StartSession", needs: singleCall(newCall("ssm:StartSession", ec2("instance"), resourceTags(launchedTags(cluster))))},
		call{name: "launcher installs an SSH key on its own instance", who: "launcher", models: "EC2 Instance Connect", needs: singleCall(newCall("ec2-instance-connect:SendSSHPublicKey", ec2("instance"), resourceTags(launchedTags(cluster))))},
	)...)
}

// preparatoryCalls returns requests that EC2 itself would reject, so IAM need not deny
// them. They are not on the page and not counted.
func preparatoryCalls() []attack {
	empty := tags("", "x")
	return asPrincipal(takeover,
		call{name: "launcher tags its own instance with an empty key", who: "launcher", models: "CreateTags", needs: changeTags(launchedTags(cluster), empty)},
		call{name: "launcher tags its own claimed instance with an empty key", who: "launcher", models: "CreateTags", needs: changeTags(mergeTags(launchedTags(cluster), "karpenter.sh/nodeclaim", "web-1"), empty)})
}

func attacksByTakeover() []attack {
	ours := launchedTags(cluster)
	claimed := mergeTags(ours, "karpenter.sh/nodeclaim", "web-1")
	var out []call
	add := func(name string, has, gets map[string]string) {
		out = append(out, call{name: "launcher tags " + name, who: "launcher", models: "CreateTags", needs: changeTags(has, gets)})
	}
	add("the other cluster's instance as ours", launchedTags(beside), ownedTags(cluster))
	add("the other cluster's instance with our claim", launchedTags(beside), tags("karpenter.sh/nodeclaim", "web-1"))
	add("the other cluster's instance with our name", launchedTags(beside), tags("eks:eks-cluster-name", cluster))
	add("the other cluster's instance with a Name", launchedTags(beside), tags("Name", "x"))
	add("an instance without tags as ours", nil, ownedTags(cluster))
	add("an instance without tags with a claim", nil, tags("karpenter.sh/nodeclaim", "web-1"))
	add("a managed node group's instance with a NodePool", tags("kubernetes.io/cluster/"+cluster, "owned"), tags("karpenter.sh/nodepool", "web"))
	add("a managed node group's instance with a claim", tags("kubernetes.io/cluster/"+cluster, "owned"), tags("karpenter.sh/nodeclaim", "web-1"))
	old := mergeTags(launchedTags(beside), "eks:eks-cluster-name", "-")
	add("the other cluster's instance created before v1 with a claim", old, tags("karpenter.sh/nodeclaim", "web-1"))
	add("the other cluster's claimed instance created before v1 with our name", mergeTags(old, "karpenter.sh/nodeclaim", "x"), tags("eks:eks-cluster-name", cluster))
	add("a managed node group's claimed instance with a Name", tags("kubernetes.io/cluster/"+cluster, "owned", "karpenter.sh/nodeclaim", "x"), tags("Name", "x"))
	add("a claimed instance tagged for both clusters, with a Name", mergeTags(launchedTags(beside), "kubernetes.io/cluster/"+cluster, "owned", "karpenter.sh/nodeclaim", "x"), tags("Name", "x"))
	add("its own claimed instance with the other cluster's name", claimed, tags("eks:eks-cluster-name", beside))
	add("an instance tagged for both clusters, with a claim", mergeTags(launchedTags(beside), "kubernetes.io/cluster/"+cluster, "owned"), tags("karpenter.sh/nodeclaim", "web-1"))
	add("an instance tagged for both clusters, with our name", mergeTags(launchedTags(beside), "kubernetes.io/cluster/"+cluster, "owned"), tags("eks:eks-cluster-name", cluster))
	add("its own instance for the other cluster", ours, tags("kubernetes.io/cluster/"+beside, "owned"))
	add("its own instance with the other cluster's name", ours, tags("eks:eks-cluster-name", beside))
	add("its own instance with another NodePool", ours, tags("karpenter.sh/nodepool", "gpu"))
	add("its own instance with another node class", ours, tags("karpenter.k8s.aws/ec2nodeclass", "gpu"))
	add("its own instance with another intent", ours, tags("joist.sh/intent", "i-2"))
	add("its own claimed instance with another claim", claimed, tags("karpenter.sh/nodeclaim", "web-2"))
	add("its own claimed instance with another claim and a Name", claimed, tags("karpenter.sh/nodeclaim", "web-2", "Name", "web-2"))
	add("its own instance with a privileged tag", ours, tags("role", "administrator"))
	add("its own instance with a Name and a privileged tag", ours, tags("Name", "x", "role", "administrator"))
	add("the other cluster's instance without new tags", launchedTags(beside), nil)
	for _, kind := range []string{"security-group", "subnet", "image", "volume", "network-interface", "snapshot", "capacity-reservation", "placement-group"} {
		out = append(out, call{name: "launcher tags a resource for discovery: " + kind, who: "launcher", models: "CreateTags",
			needs: singleCall(newCall("ec2:CreateTags", ec2(kind), requestTags(tags("karpenter.sh/discovery", cluster))))})
	}
	for _, kind := range []string{"volume", "network-interface", "launch-template"} {
		out = append(out, call{name: "launcher tags a " + kind + " of the other cluster as ours", who: "launcher", models: "CreateTags",
			needs: singleCall(newCall("ec2:CreateTags", ec2(kind), resourceTags(ownedTags(beside)), requestTags(ownedTags(cluster))))})
	}
	return asPrincipal(takeover, append(out,
		call{name: "launcher removes the tags of the other cluster's instance", who: "launcher", models: "DeleteTags", needs: singleCall(newCall("ec2:DeleteTags", ec2("instance"), resourceTags(launchedTags(beside)), key("aws:TagKeys", "kubernetes.io/cluster/"+beside)))},
		call{name: "launcher removes the tags of its own instance, to hide it", who: "launcher", models: "DeleteTags", needs: singleCall(newCall("ec2:DeleteTags", ec2("instance"), resourceTags(ours), key("aws:TagKeys", "karpenter.sh/nodepool")))},
		call{name: "the other cluster's launcher tags our instance with a claim", who: "neighbour/launcher", models: "CreateTags", needs: changeTags(ours, tags("karpenter.sh/nodeclaim", "x-1"))},
	)...)
}

func attacksAtBirth() []attack {
	var out []call
	ours := launchedTags(cluster)
	for _, c := range []struct {
		name string
		l    launch
	}{
		{"without tags", launch{}},
		{"without the cluster's tag", launch{tags: mergeTags(ours, "kubernetes.io/cluster/"+cluster, "-")}},
		{"without the cluster's name", launch{tags: mergeTags(ours, "eks:eks-cluster-name", "-")}},
		{"without a NodePool", launch{tags: mergeTags(ours, "karpenter.sh/nodepool", "-")}},
		{"shared between clusters", launch{tags: mergeTags(ours, "kubernetes.io/cluster/"+cluster, "shared")}},
		{"with the other cluster's tags", launch{tags: launchedTags(beside)}},
		{"with our tag and the other cluster's name", launch{tags: mergeTags(ours, "eks:eks-cluster-name", beside)}},
		{"with our name and the other cluster's tag", launch{tags: mergeTags(launchedTags(beside), "eks:eks-cluster-name", cluster)}},
		{"with both clusters' tags", launch{tags: mergeTags(ours, "kubernetes.io/cluster/"+beside, "owned")}},
		{"with a privileged tag", launch{tags: mergeTags(ours, "role", "administrator")}},
		{"with another team's cost tags", launch{tags: mergeTags(ours, "CostCenter", "another-team")}},
		{"with a tag of AWS Backup", launch{tags: mergeTags(ours, "backup", "daily")}},
		{"with an untagged volume", launch{tags: ours, bare: []string{"volume"}}},
		{"with an untagged interface", launch{tags: ours, bare: []string{"network-interface"}}},
		{"with an untagged fleet", launch{tags: ours, bare: []string{"fleet"}}},
		{"with an untagged spot request", launch{tags: ours, bare: []string{"spot-instances-request"}}},
		{"with every resource tagged but the instance", launch{tags: ours, bare: []string{"instance"}}},
	} {
		c.l.template = ownedTags(cluster)
		out = append(out, call{name: "launcher launches instances " + c.name, who: "launcher", models: "CreateFleet", needs: c.l.needs()})
	}
	for _, c := range []struct {
		name string
		tags map[string]string
	}{
		{"without tags", nil},
		{"for the other cluster", ownedTags(beside)},
		{"for both clusters", mergeTags(ownedTags(cluster), "kubernetes.io/cluster/"+beside, "owned")},
		{"with the other cluster's name", mergeTags(ownedTags(cluster), "eks:eks-cluster-name", beside)},
		{"with a privileged tag", mergeTags(ownedTags(cluster), "role", "administrator")},
	} {
		out = append(out, call{name: "launcher makes a template " + c.name, who: "launcher", models: "CreateLaunchTemplate", needs: makeTemplate(c.tags)})
	}
	for key := range ownedTags(cluster) {
		if key == "karpenter.k8s.aws/ec2nodeclass" {
			continue
		}
		out = append(out, call{name: "launcher makes a template with a missing tag: " + key, who: "launcher", models: "CreateLaunchTemplate", needs: makeTemplate(mergeTags(ownedTags(cluster), key, "-"))})
	}
	return sortAttacks(asPrincipal(birth, append(out,
		call{name: "launcher tags a volume that it may not create", who: "launcher", models: "CreateTags", needs: singleCall(newCall("ec2:CreateTags", ec2("volume"), requestTags(ownedTags(cluster)), key("ec2:CreateAction", "CreateVolume")))},
		call{name: "launcher retags the other cluster's instance after creation", who: "launcher", models: "CreateTags", needs: singleCall(newCall("ec2:CreateTags", ec2("instance"), resourceTags(launchedTags(beside)), requestTags(ownedTags(cluster))))},
	)...))
}
