package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// ec2ARNs are ARNs of EC2: with the account's own number for what is made, and any
// account's for what a launch may use, since subnets, security groups, reservations
// and placement groups can be shared between accounts, and images and snapshots have
// no account.
func (s Scope) ec2ARNs(account string, kinds ...string) []string {
	out := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		out = append(out, "arn:"+s.Partition+":ec2:"+s.Region+":"+account+":"+kind+"/*")
	}
	return out
}

func (s Scope) clusterTag() string { return karpenter.ClusterTagPrefix + s.Plan.Cluster }

// ownedCondition is a condition on what exists: it carries the cluster's tag and a NodePool's.
// The third tag may be missing, on what Karpenter before v1 has launched, and may not
// be another's: what carries two clusters' tags is the one's alone that it names.
func (s Scope) ownedCondition() Condition {
	return allOf(
		newCondition("StringEquals", "aws:ResourceTag/"+s.clusterTag(), "owned"),
		newCondition("StringLike", "aws:ResourceTag/"+karpenter.NodePoolTagKey, "*"),
		newCondition("StringEqualsIfExists", "aws:ResourceTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster),
	)
}

// requestedTagsCondition is a condition on what is asked for: it will carry all three, and no key
// that nobody has foreseen. A dry run has the NodePool's tag without a value, so
// that "*", which an empty value meets too, is as narrow as can be.
func (s Scope) requestedTagsCondition() Condition {
	out := allOf(
		newCondition("StringEquals", "aws:RequestTag/"+s.clusterTag(), "owned"),
		newCondition("StringEquals", "aws:RequestTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster),
		newCondition("StringLike", "aws:RequestTag/"+karpenter.NodePoolTagKey, "*"),
	)
	if slices.Contains(s.NodeTags, "*") {
		return out
	}
	return allOf(out, newCondition("ForAllValues:StringLike", "aws:TagKeys", append([]string{
		s.clusterTag(), karpenter.EKSClusterNameTagKey, karpenter.NodePoolTagKey, karpenter.NodeClassTagKey, launchspec.IntentTag, karpenter.NameTagKey,
	}, s.NodeTags...)...))
}

// launchStatements is what the launcher may change in EC2 (and narrower): six actions.
func (s Scope) launchStatements() []Statement {
	made := s.ec2ARNs(s.Account, "fleet", "instance", "volume", "network-interface", "spot-instances-request")
	templates := s.ec2ARNs(s.Account, "launch-template")
	launches := []string{"ec2:CreateFleet", "ec2:RunInstances"}
	return append([]Statement{
		allow("LaunchWith", launches, slices.Concat(
			s.ec2ARNs("", "image"), s.ec2ARNs("*", "subnet", "security-group", "capacity-reservation", "placement-group"))),
		// Launching by a template makes none, so that tags which are asked for say nothing
		// of it.
		allow("LaunchByOwnTemplate", launches, templates, s.ownedCondition()),
		allow("LaunchWithTags", launches, made, s.requestedTagsCondition()),
		allow("MakeTemplateWithTags", []string{"ec2:CreateLaunchTemplate"}, templates, s.requestedTagsCondition()),
		allow("TagAtBirth", []string{"ec2:CreateTags"}, slices.Concat(made, templates), s.requestedTagsCondition(),
			newCondition("StringEquals", "ec2:CreateAction", "RunInstances", "CreateFleet", "CreateLaunchTemplate")),
		s.nameStatement("NameNodes", []string{karpenter.NameTagKey, karpenter.EKSClusterNameTagKey, karpenter.NodeClaimTagKey},
			newCondition("Null", "aws:ResourceTag/"+karpenter.NodeClaimTagKey, "true")),
		// Whose claim an instance is is written once: later the other two may follow.
		s.nameStatement("NameNodesLater", []string{karpenter.NameTagKey, karpenter.EKSClusterNameTagKey}),
		allow("EndOwn", []string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, append(s.ec2ARNs(s.Account, "instance"), templates...), s.ownedCondition()),
	}, s.snapshotStatements(launches)...)
}

// snapshotStatements are those that a launch may copy into a volume because a node class names
// them; those of an image need no right. The new instance reads what is in them, so
// they carry the cluster's tag or are listed.
func (s Scope) snapshotStatements(launches []string) []Statement {
	out := []Statement{allow("LaunchWithSnapshots", launches, s.ec2ARNs("", "snapshot"), newCondition("StringEquals", "aws:ResourceTag/"+s.clusterTag(), "owned", "shared"))}
	if len(s.Snapshots) > 0 {
		var listed []string
		for _, id := range s.Snapshots {
			listed = append(listed, "arn:"+s.Partition+":ec2:"+s.Region+"::snapshot/"+id)
		}
		out = append(out, allow("LaunchWithListedSnapshots", launches, listed))
	}
	return out
}

// nameStatement lets the cluster's instances be given these tags after their launch, and no
// others. ForAllValues is true of no keys at all, hence Null.
func (s Scope) nameStatement(sid string, keys []string, more ...Condition) Statement {
	return allow(sid, []string{"ec2:CreateTags"}, s.ec2ARNs(s.Account, "instance"), append(more, s.ownedCondition(),
		newCondition("ForAllValues:StringEquals", "aws:TagKeys", keys...), newCondition("Null", "aws:TagKeys", "false"),
		newCondition("StringEqualsIfExists", "aws:RequestTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster))...)
}

// describeStatement is a right to describe what EC2 has, which knows no resources.
func (s Scope) describeStatement(actions ...string) Statement {
	return allow("Look", actions, []string{"*"}, s.inRegion())
}
