package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// nodePolicies are the managed policies that nodes need, apart from one of registryPolicies.
var nodePolicies = []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonSSMManagedInstanceCore"}

// registryPolicies let nodes pull images; one of them is enough. Karpenter v1 uses the second.
var registryPolicies = []string{"AmazonEC2ContainerRegistryReadOnly", "AmazonEC2ContainerRegistryPullOnly"}

// checkSpotRole finds a missing service-linked role for EC2 Spot.
func checkSpotRole(f Facts) []Finding {
	if f.SpotRole == nil || *f.SpotRole {
		return nil
	}
	return []Finding{newProblem("spot-role-missing", "role/AWSServiceRoleForEC2Spot", "the account has no service-linked role for EC2 Spot: EC2 rejects every launch of a spot instance",
		"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")}
}

// checkNodeRole finds problems of the node role.
func checkNodeRole(f Facts) []Finding {
	r := f.NodeRole
	if r == nil {
		return nil
	}
	subject := "role/" + r.Name
	if r.Missing {
		return []Finding{newProblem("node-role-missing", subject, "the node role does not exist, and EC2NodeClasses use it by default: nodes cannot be launched", deployFix+", or give another role with --node-role")}
	}
	var all []Finding
	ec2, err := allowsService(r.Trust, "ec2.amazonaws.com", "sts:AssumeRole")
	if !ec2 && err == nil {
		ec2, err = allowsService(r.Trust, "ec2.amazonaws.com.cn", "sts:AssumeRole")
	}
	if !ec2 || err != nil {
		all = append(all, newProblem("node-role-trust", subject, "the trust policy does not let EC2 assume the role: instances have no credentials and never join the cluster", "allow ec2.amazonaws.com to assume the role (sts:AssumeRole)"))
	}
	if f.SelfManaged != nil {
		// Only EKS requires these policies.
		return all
	}
	var lacking []string
	for _, name := range nodePolicies {
		if !slices.Contains(r.Policies, name) {
			lacking = append(lacking, name)
		}
	}
	if !slices.ContainsFunc(registryPolicies, func(name string) bool { return slices.Contains(r.Policies, name) }) {
		lacking = append(lacking, registryPolicies[0])
	}
	if len(lacking) > 0 {
		// Another policy of the role, or the role of the CNI plugin, may grant the same.
		all = append(all, newWarning("node-role-policies", subject, "the role lacks "+strings.Join(lacking, ", ")+": nodes may not join the cluster or run no pods",
			"aws iam attach-role-policy for each, unless another policy of the role grants the same"))
	}
	return all
}

// NodeRoleARN returns the ARN of the node role as IAM has it, which may have a path, or the ARN
// of a role of the name without a path if the role was not read.
func (f Facts) NodeRoleARN(name string) string {
	if f.NodeRole != nil && f.NodeRole.ARN != "" {
		return f.NodeRole.ARN
	}
	return f.Location.RoleARN(name)
}

// checkAccess finds a node role that cannot join the cluster.
func checkAccess(f Facts) []Finding {
	a := f.Access
	if a == nil || f.NodeRole == nil || f.NodeRole.Missing {
		return nil
	}
	byEntry := a.Entry != nil && *a.Entry && a.Mode != "CONFIG_MAP"
	byMap := a.AuthMap != nil && a.Mode != "API" && strings.Contains(*a.AuthMap, ":role/"+f.NodeRole.Name)
	// An unread setting may admit the nodes.
	unknown := a.Entry == nil && a.Mode != "CONFIG_MAP" || a.AuthMap == nil && a.Mode != "API"
	if byEntry || byMap || unknown {
		return nil
	}
	fix := fmt.Sprintf("aws eks create-access-entry --cluster-name %s --principal-arn %s --type EC2_LINUX", f.Plan.Cluster, f.NodeRole.ARN)
	if a.Mode == "CONFIG_MAP" {
		// The ARNs in aws-auth must not have a role's path.
		fix = fmt.Sprintf("eksctl create iamidentitymapping --cluster %s --arn %s --username 'system:node:{{EC2PrivateDNSName}}' --group system:bootstrappers --group system:nodes --group eks:kube-proxy-windows", f.Plan.Cluster, f.Location.RoleARN(f.NodeRole.Name))
	}
	return []Finding{newProblem("node-access", "role/"+f.NodeRole.Name, "neither an access entry nor aws-auth admits nodes with this role: they run and cost money, but never join the cluster", fix)}
}

// checkSelfManaged finds missing settings of the catalog for a control plane that EKS does not
// run.
func checkSelfManaged(f Facts) []Finding {
	if f.SelfManaged == nil || f.SelfManaged.Variables == nil {
		return nil
	}
	subject, set := "function/"+f.SelfManaged.Function, f.SelfManaged.Variables
	var all []Finding
	var missing []string
	for _, name := range []string{settings.Endpoint, settings.CABundle, settings.Kubernetes} {
		if set[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		all = append(all, newProblem("control-plane-settings-missing", subject, settings.ControlPlane+" is false, and "+strings.Join(missing, ", ")+" not set: no EC2NodeClass becomes ready and no node is launched",
			"set the missing variables of the function; remove "+settings.ControlPlane+" if EKS runs the control plane"))
	}
	if set[settings.ServiceCIDR] == "" {
		all = append(all, newWarning("control-plane-settings-missing", subject, settings.ControlPlane+" is false, and "+settings.ServiceCIDR+" is not set: nodes with Amazon Linux 2023 cannot join", "set "+settings.ServiceCIDR+" to the CIDR of the cluster's Service addresses"))
	}
	configured, served := set[settings.Kubernetes], strings.TrimPrefix(f.Kubernetes, "v")
	if configured != "" && served != "" && served != configured && !strings.HasPrefix(served, configured+".") {
		all = append(all, newProblem("control-plane-version", subject, fmt.Sprintf("%s is %s but the API server is %s: nodes get images of the wrong version", settings.Kubernetes, configured, f.Kubernetes),
			"set "+settings.Kubernetes+" to the version of the API server"))
	}
	return all
}

// DiscoveryTag is the key of the tag by which the EC2NodeClasses of Karpenter's guides select subnets and
// security groups. Its value is the cluster's name.
const DiscoveryTag = "karpenter.sh/discovery"

// checkDiscovery finds a discovery tag on no resource or on too many, if EC2NodeClasses select by it. If none
// was read, it warns: those of the guides select by it.
func checkDiscovery(f Facts) []Finding {
	var all []Finding
	tag := DiscoveryTag + "=" + f.Plan.Cluster
	report, subnets, groups := newWarning, f.Subnets, f.SecurityGroups
	if f.Discovery != nil {
		report = newProblem
		if !f.Discovery.Subnets {
			subnets = nil
		}
		if !f.Discovery.SecurityGroups {
			groups = nil
		}
	}
	missing := func(what string) Finding {
		return report("discovery-tag-missing", what, "no resource has the tag "+tag+": EC2NodeClasses that select by it find nothing, and no node is launched",
			"aws ec2 create-tags --resources <id> --tags Key="+DiscoveryTag+",Value="+f.Plan.Cluster)
	}
	if subnets != nil && len(subnets) == 0 {
		all = append(all, missing("subnets"))
	}
	if groups != nil && len(groups) == 0 {
		all = append(all, missing("security groups"))
	}
	if len(groups) > 1 {
		all = append(all, newWarning("discovery-tag-ambiguous", "security groups", joinIDs(groups)+" all have the tag "+tag+": nodes get all of them, and the load balancer controller rejects nodes with two of the cluster's security groups",
			"keep the tag on one of them: aws ec2 delete-tags"))
	}
	vpcs := map[string]bool{}
	for _, one := range slices.Concat(subnets, groups) {
		if one.VPC != "" {
			vpcs[one.VPC] = true
		}
	}
	if len(vpcs) > 1 {
		all = append(all, newProblem("discovery-tag-several-vpcs", "discovery tag", "resources with the tag "+tag+" are in several VPCs: EC2 rejects launches with a subnet and a security group of different VPCs",
			"keep the tag only on the resources in the cluster's VPC: "+joinIDs(slices.Concat(subnets, groups))))
	}
	return all
}

func joinIDs(list []Tagged) string {
	var names []string
	for _, one := range list {
		names = append(names, one.ID)
	}
	return strings.Join(names, ", ")
}
