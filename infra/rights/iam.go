package rights

import "github.com/joist-autoscaler/joist/shared/karpenter"

// regionTag is a tag that Karpenter's IAM policy requires on instance profiles.
const regionTag = "topology.kubernetes.io/region"

// passRoleStatement allows passing the nodes' roles to EC2 only. In China EC2 has both names,
// as in Karpenter's policy.
func (s Scope) passRoleStatement() Statement {
	to := []string{"ec2.amazonaws.com"}
	if s.Partition == "aws-cn" {
		to = append(to, "ec2.amazonaws.com.cn")
	}
	return allow("PassNodeRole", []string{"iam:PassRole"}, s.nodeRoleARNs(), newCondition("StringEquals", "iam:PassedToService", to...))
}

// profileStatements returns the launcher's permissions on instance profiles below the
// cluster's path, by their tags. Reading is allowed for all names, because IAM would deny
// reading a profile that does not exist.
func (s Scope) profileStatements() []Statement {
	if !s.Profiles {
		return nil
	}
	below := []string{s.iamARN("instance-profile/karpenter/" + s.Region + "/" + s.Plan.Cluster + "/*")}
	owned := s.profileTags("aws:ResourceTag/")
	wanted := allOf(s.profileTags("aws:RequestTag/"), newCondition("StringEquals", "aws:RequestTag/"+karpenter.EKSClusterNameTagKey, s.Plan.Cluster))
	return []Statement{
		allow("MakeProfile", []string{"iam:CreateInstanceProfile"}, below, wanted),
		allow("TagProfile", []string{"iam:TagInstanceProfile"}, below, owned, wanted),
		allow("FillProfile", []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"}, below, owned),
		allow("ReadProfiles", []string{"iam:GetInstanceProfile", "iam:ListInstanceProfiles"}, []string{s.iamARN("instance-profile/*")}),
	}
}

func (s Scope) profileTags(of string) Condition {
	return allOf(
		newCondition("StringEquals", of+s.clusterTag(), "owned"),
		newCondition("StringEquals", of+regionTag, s.Region),
		newCondition("StringLike", of+karpenter.NodeClassTagKey, "?*"),
	)
}

// NodePolicies returns the ARNs of the nodes' AWS managed policies. PullOnly is narrower than
// the ReadOnly policy of older guides.
func (s Scope) NodePolicies() []string {
	var out []string
	for _, name := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"} {
		out = append(out, "arn:"+s.Partition+":iam::aws:policy/"+name)
	}
	return out
}
