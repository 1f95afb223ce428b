package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// ec2 are ARNs of EC2: with the account's own number for what is made, and any
// account's for what a launch may use, since subnets, security groups, reservations
// and placement groups can be shared between accounts, and images and snapshots have
// no account.
func (s Scope) ec2(account string, kinds ...string) []string {
	out := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		out = append(out, "arn:"+s.Partition+":ec2:"+s.Region+":"+account+":"+kind+"/*")
	}
	return out
}

func (s Scope) clusterTag() string { return karpenter.ClusterTagPrefix + s.Plan.Cluster }

// ours is a condition on what exists: it carries the cluster's tag and a NodePool's.
// The third tag may be missing, on what Karpenter before v1 has launched, and may not
// be another's: what carries two clusters' tags is the one's alone that it names.
func (s Scope) ours() Condition {
	return both(
		is("StringEquals", "aws:ResourceTag/"+s.clusterTag(), "owned"),
		is("StringLike", "aws:ResourceTag/"+karpenter.NodePoolTagKey, "*"),
		is("StringEqualsIfExists", "aws:ResourceTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster),
	)
}

// toBeOurs is a condition on what is asked for: it will carry all three, and no key
// that nobody has foreseen. A dry run has the NodePool's tag without a value, so
// that "*", which an empty value meets too, is as narrow as can be.
func (s Scope) toBeOurs() Condition {
	out := both(
		is("StringEquals", "aws:RequestTag/"+s.clusterTag(), "owned"),
		is("StringEquals", "aws:RequestTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster),
		is("StringLike", "aws:RequestTag/"+karpenter.NodePoolTagKey, "*"),
	)
	if slices.Contains(s.NodeTags, "*") {
		return out
	}
	return both(out, is("ForAllValues:StringLike", "aws:TagKeys", append([]string{
		s.clusterTag(), karpenter.EKSClusterNameTagKey, karpenter.NodePoolTagKey, karpenter.NodeClassTagKey, launchspec.IntentTag, karpenter.NameTagKey,
	}, s.NodeTags...)...))
}

// launch is what the launcher may change in EC2 (and narrower): six actions.
func (s Scope) launch() []Statement {
	made := s.ec2(s.Account, "fleet", "instance", "volume", "network-interface", "spot-instances-request")
	templates := s.ec2(s.Account, "launch-template")
	launches := []string{"ec2:CreateFleet", "ec2:RunInstances"}
	return append([]Statement{
		allow("LaunchWith", launches, slices.Concat(
			s.ec2("", "image"), s.ec2("*", "subnet", "security-group", "capacity-reservation", "placement-group"))),
		// Launching by a template makes none, so that tags which are asked for say nothing
		// of it.
		allow("LaunchByOwnTemplate", launches, templates, s.ours()),
		allow("LaunchWithTags", launches, made, s.toBeOurs()),
		allow("MakeTemplateWithTags", []string{"ec2:CreateLaunchTemplate"}, templates, s.toBeOurs()),
		allow("TagAtBirth", []string{"ec2:CreateTags"}, slices.Concat(made, templates), s.toBeOurs(),
			is("StringEquals", "ec2:CreateAction", "RunInstances", "CreateFleet", "CreateLaunchTemplate")),
		s.name("NameNodes", []string{karpenter.NameTagKey, karpenter.EKSClusterNameTagKey, karpenter.NodeClaimTagKey},
			is("Null", "aws:ResourceTag/"+karpenter.NodeClaimTagKey, "true")),
		// Whose claim an instance is is written once: later the other two may follow.
		s.name("NameNodesLater", []string{karpenter.NameTagKey, karpenter.EKSClusterNameTagKey}),
		allow("EndOwn", []string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, append(s.ec2(s.Account, "instance"), templates...), s.ours()),
	}, s.snapshots(launches)...)
}

// snapshots are those that a launch may copy into a volume because a node class names
// them; those of an image need no right. The new instance reads what is in them, so
// they carry the cluster's tag or are listed.
func (s Scope) snapshots(launches []string) []Statement {
	out := []Statement{allow("LaunchWithSnapshots", launches, s.ec2("", "snapshot"), is("StringEquals", "aws:ResourceTag/"+s.clusterTag(), "owned", "shared"))}
	if len(s.Snapshots) > 0 {
		var listed []string
		for _, id := range s.Snapshots {
			listed = append(listed, "arn:"+s.Partition+":ec2:"+s.Region+"::snapshot/"+id)
		}
		out = append(out, allow("LaunchWithListedSnapshots", launches, listed))
	}
	return out
}

// name lets the cluster's instances be given these tags after their launch, and no
// others. ForAllValues is true of no keys at all, hence Null.
func (s Scope) name(sid string, keys []string, more ...Condition) Statement {
	return allow(sid, []string{"ec2:CreateTags"}, s.ec2(s.Account, "instance"), append(more, s.ours(),
		is("ForAllValues:StringEquals", "aws:TagKeys", keys...), is("Null", "aws:TagKeys", "false"),
		is("StringEqualsIfExists", "aws:RequestTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster))...)
}

// look is a right to describe what EC2 has, which knows no resources.
func (s Scope) look(actions ...string) Statement {
	return allow("Look", actions, []string{"*"}, s.inRegion())
}
