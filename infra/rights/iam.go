package rights

import "github.com/joist-autoscaler/joist/shared/karpenter"

// regionTag is demanded by the IAM policies of this ecosystem.
const regionTag = "topology.kubernetes.io/region"

// passRoleStatement lets EC2 have the nodes' role, and nobody else have any. China's EC2 goes
// by both names, as upstream's policy has them.
func (s Scope) passRoleStatement() Statement {
	to := []string{"ec2.amazonaws.com"}
	if s.Partition == "aws-cn" {
		to = append(to, "ec2.amazonaws.com.cn")
	}
	return allow("PassNodeRole", []string{"iam:PassRole"}, []string{s.NodeRole}, newCondition("StringEquals", "iam:PassedToService", to...))
}

// profileStatements is what the launcher may do to instance profiles: to those
// below the cluster's path, by their tags. Reading is by name alone, because
// IAM knows no path of a profile that is not there, and would deny the question.
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

// NodePolicies are the ARNs of AWS's own policies that nodes have. The third is
// ContainerRegistryPullOnly where the seeds had ReadOnly: it is the narrower.
func (s Scope) NodePolicies() []string {
	var out []string
	for _, name := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"} {
		out = append(out, "arn:"+s.Partition+":iam::aws:policy/"+name)
	}
	return out
}
