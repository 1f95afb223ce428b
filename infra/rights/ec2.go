package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// ec2ARNs returns ARN patterns of EC2 resources in an account. Created resources are in the
// cluster's account. Subnets, security groups, reservations and placement groups may be
// shared by any account, and images and snapshots have no account in their ARNs.
func (s Scope) ec2ARNs(account string, kinds ...string) []string {
	out := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		out = append(out, "arn:"+s.Partition+":ec2:"+s.Region+":"+account+":"+kind+"/*")
	}
	return out
}

func (s Scope) clusterTag() string { return karpenter.ClusterTagPrefix + s.Plan.Cluster }

// ownedCondition requires that an existing resource has the cluster's tag and a NodePool's
// tag. The tag eks:eks-cluster-name may be missing on instances of Karpenter before v1, but
// must not name another cluster.
func (s Scope) ownedCondition() Condition {
	return allOf(
		newCondition("StringEquals", "aws:ResourceTag/"+s.clusterTag(), "owned"),
		newCondition("StringLike", "aws:ResourceTag/"+karpenter.NodePoolTagKey, "*"),
		newCondition("StringEqualsIfExists", "aws:ResourceTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster),
	)
}

// requestedTagsCondition requires that a new resource gets all three tags, and only allowed
// keys. The NodePool's tag may have any value, because it is empty in dry runs.
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

// launchStatements returns the launcher's permissions to change EC2: six actions, and reboots with RebootForRepair.
func (s Scope) launchStatements() []Statement {
	made := s.ec2ARNs(s.Account, "fleet", "instance", "volume", "network-interface", "spot-instances-request")
	templates := s.ec2ARNs(s.Account, "launch-template")
	launches := []string{"ec2:CreateFleet", "ec2:RunInstances"}
	out := []Statement{
		allow("LaunchWith", launches, slices.Concat(
			s.ec2ARNs("", "image"), s.ec2ARNs("*", "subnet", "security-group", "capacity-reservation", "placement-group"))),
		// A launch does not create the template, so the condition is on its existing tags.
		allow("LaunchByOwnTemplate", launches, templates, s.ownedCondition()),
		allow("LaunchWithTags", launches, made, s.requestedTagsCondition()),
		allow("MakeTemplateWithTags", []string{"ec2:CreateLaunchTemplate"}, templates, s.requestedTagsCondition()),
		allow("TagAtBirth", []string{"ec2:CreateTags"}, slices.Concat(made, templates), s.requestedTagsCondition(),
			newCondition("StringEquals", "ec2:CreateAction", "RunInstances", "CreateFleet", "CreateLaunchTemplate")),
		s.nameStatement("NameNodes", []string{karpenter.NameTagKey, karpenter.EKSClusterNameTagKey, karpenter.NodeClaimTagKey},
			newCondition("Null", "aws:ResourceTag/"+karpenter.NodeClaimTagKey, "true")),
		// The NodeClaim's tag is written once; the other two may be written later.
		s.nameStatement("NameNodesLater", []string{karpenter.NameTagKey, karpenter.EKSClusterNameTagKey}),
		allow("EndOwn", []string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, append(s.ec2ARNs(s.Account, "instance"), templates...), s.ownedCondition()),
	}
	if s.RebootForRepair {
		out = append(out, allow("RebootOwn", []string{"ec2:RebootInstances"}, s.ec2ARNs(s.Account, "instance"), s.ownedCondition()))
	}
	return append(out, s.snapshotStatements(launches)...)
}

// snapshotStatements allows launches with snapshots that a node class names; snapshots of an
// image need no permission. A new instance can read the snapshot, so it must have the
// cluster's tag or be listed.
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

// nameStatement allows adding these tags to the cluster's instances after their launch, and
// no others. ForAllValues is true for an empty set of keys, so Null excludes it.
func (s Scope) nameStatement(sid string, keys []string, more ...Condition) Statement {
	return allow(sid, []string{"ec2:CreateTags"}, s.ec2ARNs(s.Account, "instance"), append(more, s.ownedCondition(),
		newCondition("ForAllValues:StringEquals", "aws:TagKeys", keys...), newCondition("Null", "aws:TagKeys", "false"),
		newCondition("StringEqualsIfExists", "aws:RequestTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster))...)
}

// describeStatement allows describing actions, which have no resources.
func (s Scope) describeStatement(actions ...string) Statement {
	return allow("Look", actions, []string{"*"}, s.inRegion())
}
