package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// nodePolicies are what nodes need (A038); of the last two one is enough.
var nodePolicies = []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonSSMManagedInstanceCore"}

// registries let nodes pull images; Karpenter's v1 has the second.
var registries = []string{"AmazonEC2ContainerRegistryReadOnly", "AmazonEC2ContainerRegistryPullOnly"}

// spotRole finds that spot instances cannot be launched (A029).
func spotRole(f Facts) []Finding {
	if f.SpotRole == nil || *f.SpotRole {
		return nil
	}
	return []Finding{problem("spot-role", "role/AWSServiceRoleForEC2Spot", "the account has no service-linked role for EC2 Spot: every launch of a spot instance is refused",
		"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")}
}

// nodeRole finds that nodes cannot be what they are to be (A037, A038, A041).
func nodeRole(f Facts) []Finding {
	r := f.NodeRole
	if r == nil {
		return nil
	}
	subject := "role/" + r.Name
	if r.Missing {
		return []Finding{problem("node-role-missing", subject, "there is no such role, which EC2NodeClasses name by default: nodes cannot be launched", deploy+", or name another with --node-role")}
	}
	var all []Finding
	ec2, err := allows(r.Trust, "ec2.amazonaws.com", "sts:AssumeRole")
	if !ec2 && err == nil {
		ec2, err = allows(r.Trust, "ec2.amazonaws.com.cn", "sts:AssumeRole")
	}
	if !ec2 || err != nil {
		all = append(all, problem("node-role-trust", subject, "its trust policy does not let EC2 assume it: instances come up without credentials and never join", "let ec2.amazonaws.com assume the role"))
	}
	var lacking []string
	for _, name := range nodePolicies {
		if !slices.Contains(r.Policies, name) {
			lacking = append(lacking, name)
		}
	}
	if !slices.ContainsFunc(registries, func(name string) bool { return slices.Contains(r.Policies, name) }) {
		lacking = append(lacking, registries[0])
	}
	if len(lacking) > 0 {
		all = append(all, problem("node-role-policies", subject, "it lacks "+strings.Join(lacking, ", ")+": nodes may not join, or have no pods",
			"aws iam attach-role-policy for each, unless another policy of the role says the same"))
	}
	return all
}

// access finds that nodes are not let into the cluster (A027).
func access(f Facts) []Finding {
	a := f.Access
	if a == nil || f.NodeRole == nil || f.NodeRole.Missing {
		return nil
	}
	byEntry := a.Entry != nil && *a.Entry && a.Mode != "CONFIG_MAP"
	byMap := a.AuthMap != nil && a.Mode != "API" && strings.Contains(*a.AuthMap, ":role/"+f.NodeRole.Name)
	// One that was not looked at may be the one that lets them in.
	unknown := a.Entry == nil && a.Mode != "CONFIG_MAP" || a.AuthMap == nil && a.Mode != "API"
	if byEntry || byMap || unknown {
		return nil
	}
	fix := fmt.Sprintf("aws eks create-access-entry --cluster-name %s --principal-arn %s --type EC2_LINUX", f.Plan.Cluster, f.NodeRole.ARN)
	if a.Mode == "CONFIG_MAP" {
		fix = fmt.Sprintf("eksctl create iamidentitymapping --cluster %s --arn %s --username 'system:node:{{EC2PrivateDNSName}}' --group system:bootstrappers --group system:nodes", f.Plan.Cluster, f.NodeRole.ARN)
	}
	return []Finding{problem("node-access", "role/"+f.NodeRole.Name, "neither an access entry nor aws-auth lets nodes of this role into the cluster: they run, cost money and never join", fix)}
}

// discovery finds the discovery tag on nothing, or on too much (A035, A052).
func discovery(f Facts) []Finding {
	var all []Finding
	tag := "karpenter.sh/discovery=" + f.Plan.Cluster
	missing := func(what string) Finding {
		return problem("discovery-missing", what, "none has the tag "+tag+": EC2NodeClasses that select by it find nothing, and no node is launched",
			"tag them: aws ec2 create-tags --resources <id> --tags Key=karpenter.sh/discovery,Value="+f.Plan.Cluster)
	}
	if f.Subnets != nil && len(f.Subnets) == 0 {
		all = append(all, missing("subnets"))
	}
	if f.SecurityGroups != nil && len(f.SecurityGroups) == 0 {
		all = append(all, missing("security groups"))
	}
	if len(f.SecurityGroups) > 1 {
		all = append(all, warning("discovery-twice", "security groups", ids(f.SecurityGroups)+" all have the tag "+tag+": nodes get all of them, and the load balancer controller refuses nodes with two of the cluster's",
			"leave the tag on one of them: aws ec2 delete-tags"))
	}
	vpcs := map[string]bool{}
	for _, one := range slices.Concat(f.Subnets, f.SecurityGroups) {
		if one.VPC != "" {
			vpcs[one.VPC] = true
		}
	}
	if len(vpcs) > 1 {
		all = append(all, problem("discovery-vpcs", "discovery tag", "what has the tag "+tag+" is in several VPCs: launches that pair a subnet with a group of another VPC are refused",
			"leave the tag on those of the cluster's VPC: "+ids(slices.Concat(f.Subnets, f.SecurityGroups))))
	}
	return all
}

func ids(list []Tagged) string {
	var names []string
	for _, one := range list {
		names = append(names, one.ID)
	}
	return strings.Join(names, ", ")
}
