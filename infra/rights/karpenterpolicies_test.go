package rights_test

import (
	"maps"
	"testing"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/rights"
)

// The policies that Joist is compared with, as Documents. Karpenter's are the six of the
// CloudFormation template in its v1.14 guide (github.com/aws/karpenter-provider-aws,
// Apache-2.0), here one list. The others are from two blog posts: a Terraform tutorial of
// 2025-07-07 for Karpenter v1, and a CloudFormation tutorial of 2022-09-22 for v0.26.

type conditions = rights.Condition

func allowStatement(actions, resources []string, c conditions) rights.Statement {
	return rights.Statement{Effect: "Allow", Action: actions, Resource: resources, Condition: c}
}

func all(list ...string) []string { return list }

// karpenter returns the controller's policy for a cluster.
func karpenter(name string) rights.Document {
	kinds := func(account string, kinds ...string) (out []string) {
		for _, k := range kinds {
			out = append(out, "arn:aws:ec2:"+region+":"+account+":"+k+"/*")
		}
		return out
	}
	made := kinds("*", "fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
	asked := map[string][]string{"aws:RequestTag/kubernetes.io/cluster/" + name: {"owned"}, "aws:RequestTag/eks:eks-cluster-name": {name}}
	birth := maps.Clone(asked)
	birth["ec2:CreateAction"] = all("RunInstances", "CreateFleet", "CreateLaunchTemplate")
	there := map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/" + name: {"owned"}}
	ofPool := map[string][]string{"aws:ResourceTag/karpenter.sh/nodepool": {"*"}}
	forPool := map[string][]string{"aws:RequestTag/karpenter.sh/nodepool": {"*"}}
	profiles := all("arn:aws:iam::" + account + ":instance-profile/*")
	profile := map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/" + name: {"owned"}, "aws:ResourceTag/topology.kubernetes.io/region": {region}}
	profileAsked := with2(asked, "aws:RequestTag/topology.kubernetes.io/region", region)
	eks := "arn:aws:eks:" + region + ":" + account + ":cluster/" + name
	return rights.Document{Version: "2012-10-17", Statement: []rights.Statement{
		allowStatement(all("ec2:RunInstances", "ec2:CreateFleet"), append(kinds("", "image", "snapshot"), kinds("*", "security-group", "subnet", "capacity-reservation", "placement-group")...), nil),
		allowStatement(all("ec2:RunInstances", "ec2:CreateFleet"), kinds("*", "launch-template"), conditions{"StringEquals": there, "StringLike": ofPool}),
		allowStatement(all("ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"), made, conditions{"StringEquals": asked, "StringLike": forPool}),
		allowStatement(all("ec2:CreateTags"), made, conditions{"StringEquals": birth, "StringLike": forPool}),
		allowStatement(all("ec2:CreateTags"), kinds("*", "instance"), conditions{"StringEquals": there, "StringLike": ofPool,
			"StringEqualsIfExists":      {"aws:RequestTag/eks:eks-cluster-name": {name}},
			"ForAllValues:StringEquals": {"aws:TagKeys": all("eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name")}}),
		allowStatement(all("ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"), kinds("*", "instance", "launch-template"), conditions{"StringEquals": there, "StringLike": ofPool}),
		allowStatement(all("iam:PassRole"), all(role("KarpenterNodeRole-"+name)), conditions{"StringEquals": {"iam:PassedToService": all("ec2.amazonaws.com", "ec2.amazonaws.com.cn")}}),
		allowStatement(all("iam:CreateInstanceProfile"), profiles, conditions{"StringEquals": profileAsked, "StringLike": {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": {"*"}}}),
		allowStatement(all("iam:TagInstanceProfile"), profiles, conditions{"StringEquals": mergeDocuments(profile, profileAsked),
			"StringLike": {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": {"*"}, "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": {"*"}}}),
		allowStatement(all("iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"), profiles,
			conditions{"StringEquals": profile, "StringLike": {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": {"*"}}}),
		allowStatement(all("eks:DescribeCluster"), all(eks), nil),
		allowStatement(all("sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"), all(queue(name)), nil),
		allowStatement(all("arc-zonal-shift:GetManagedResource"), all("*"), conditions{"StringEquals": {"arc-zonal-shift:ResourceIdentifier": all(eks)}}),
		allowStatement(all("ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplates", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory",
			"ec2:DescribeSubnets"), all("*"), conditions{"StringEquals": {"aws:RequestedRegion": all(region)}}),
		allowStatement(all("ssm:GetParameter"), all("arn:aws:ssm:"+region+"::parameter/aws/service/*"), nil),
		allowStatement(all("pricing:GetProducts", "iam:ListInstanceProfiles"), all("*"), nil),
		allowStatement(all("iam:GetInstanceProfile"), profiles, nil),
	}}
}

func with2(base map[string][]string, key, value string) map[string][]string {
	return mergeDocuments(base, map[string][]string{key: {value}})
}

func mergeDocuments(a, b map[string][]string) map[string][]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// terraform returns the policy of the Terraform tutorial.
func terraform(name string) rights.Document {
	everything := all("*")
	owned := map[string][]string{"aws:ResourceTag/kubernetes.io/cluster/" + name: {"owned"}, "aws:ResourceTag/topology.kubernetes.io/region": {region}}
	asked := map[string][]string{"aws:RequestTag/kubernetes.io/cluster/" + name: {"owned"}, "aws:RequestTag/topology.kubernetes.io/region": {region}}
	class := map[string][]string{"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": {"*"}}
	return rights.Document{Version: "2012-10-17", Statement: []rights.Statement{
		allowStatement(all("ssm:GetParameter", "ec2:DescribeImages", "ec2:RunInstances", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "ec2:DescribeLaunchTemplates",
			"ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DeleteLaunchTemplate", "ec2:CreateTags",
			"ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts"), everything, nil),
		allowStatement(all("ec2:TerminateInstances"), everything, conditions{"StringLike": {"ec2:ResourceTag/karpenter.sh/nodepool": {"*"}}}),
		allowStatement(all("iam:PassRole"), all(role("KarpenterNodeRole-"+name)), nil),
		allowStatement(all("eks:DescribeCluster"), all("arn:aws:eks:"+region+":"+account+":cluster/"+name), nil),
		allowStatement(all("iam:CreateInstanceProfile"), everything, conditions{"StringEquals": asked, "StringLike": class}),
		allowStatement(all("iam:TagInstanceProfile"), everything, conditions{"StringEquals": mergeDocuments(owned, asked),
			"StringLike": with2(class, "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass", "*")}),
		allowStatement(all("iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"), everything, conditions{"StringEquals": owned}),
		allowStatement(all("iam:GetInstanceProfile"), everything, nil),
		allowStatement(all("sqs:ReceiveMessage", "sqs:GetQueueUrl", "sqs:DeleteMessage"), everything, nil),
	}}
}

// walkthrough returns the policy of the CloudFormation tutorial.
func walkthrough(name string) rights.Document {
	return rights.Document{Version: "2012-10-17", Statement: []rights.Statement{
		allowStatement(all("ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:CreateTags", "ec2:DeleteLaunchTemplate", "ec2:RunInstances", "ec2:TerminateInstances",
			"ec2:DescribeAvailabilityZones", "ec2:DescribeImages", "ec2:DescribeInstances", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
			"ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets", "pricing:GetProducts",
			"ssm:GetParameter"), all("*"), nil),
		allowStatement(all("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ReceiveMessage"), all(queue(name)), nil),
		allowStatement(all("iam:PassRole"), all(role("KarpenterNodeRole-"+name)), nil),
		allowStatement(all("eks:DescribeCluster"), all("arn:aws:eks:"+region+":"+account+":cluster/"+name), nil),
	}}
}

// openQueue returns the queue policy of the CloudFormation tutorial and of Karpenter:
// EventBridge and SQS may send, for any account. Karpenter's denies requests without TLS.
func openQueue(name string, denyHTTP bool) rights.Document {
	s := []rights.Statement{{Effect: "Allow", Principal: rights.Principal{"Service": {"events.amazonaws.com", "sqs.amazonaws.com"}}, Action: all("sqs:SendMessage"), Resource: all(queue(name))}}
	if denyHTTP {
		s = append(s, rights.Statement{Effect: "Deny", Principal: rights.Principal{"AWS": {"*"}}, Action: all("sqs:*"), Resource: all(queue(name)),
			Condition: conditions{"Bool": {"aws:SecureTransport": {"false"}}}})
	}
	return rights.Document{Version: "2012-10-17", Statement: s}
}

// karpenterSystem returns a cluster with one controller, which has one role for all
// services.
func karpenterSystem(t *testing.T, title string, write func(name string) rights.Document, queuePolicy, nodeTrust, controllerTrust *rights.Document) system {
	t.Helper()
	identity := map[string][]evaluator.Policy{}
	for _, name := range []string{cluster, beside} {
		identity[name] = []evaluator.Policy{parsePolicy(t, title, write(name))}
	}
	return system{
		title: title,
		role:  func(string) string { return role("KarpenterControllerRole-" + cluster) },
		identity: func(who string, of string) []evaluator.Policy {
			return identity[of]
		},
		resource: func(arn string) []evaluator.Policy {
			switch {
			case arn == queue(cluster) && queuePolicy != nil:
				return []evaluator.Policy{parsePolicy(t, title+" queue", *queuePolicy)}
			case arn == role("KarpenterNodeRole-"+cluster):
				return []evaluator.Policy{parsePolicy(t, title+" node trust", *nodeTrust)}
			case arn == role("KarpenterControllerRole-"+cluster):
				return []evaluator.Policy{parsePolicy(t, title+" trust", *controllerTrust)}
			}
			return nil
		},
	}
}

// karpenterSystems returns the three systems that Joist is compared with.
func karpenterSystems(t *testing.T) []system {
	t.Helper()
	nodes := rights.Document{Version: "2012-10-17", Statement: []rights.Statement{
		{Effect: "Allow", Principal: rights.Principal{"Service": {"ec2.amazonaws.com"}}, Action: all("sts:AssumeRole")}}}
	// Karpenter's node role also trusts Pod Identity.
	pods := rights.Statement{Effect: "Allow", Principal: rights.Principal{"Service": {"pods.eks.amazonaws.com"}}, Action: all("sts:AssumeRole", "sts:TagSession")}
	nodesOrPods := rights.Document{Version: "2012-10-17", Statement: append(nodes.Statement[:1:1], pods)}
	// In its guide, eksctl creates the controller's role for a Pod Identity association;
	// it trusts the service without conditions.
	byPods := rights.Document{Version: "2012-10-17", Statement: []rights.Statement{pods}}
	byAccount := func(namespace string) *rights.Document {
		d := rights.TrustAccount("arn:aws:iam::"+account+":oidc-provider/"+issuer, issuer, namespace, "karpenter")
		return &d
	}
	open, plain := openQueue(cluster, true), openQueue(cluster, false)
	return []system{
		karpenterSystem(t, "Karpenter v1.14", karpenter, &open, &nodesOrPods, &byPods),
		karpenterSystem(t, "Terraform tutorial (v1)", terraform, nil, &nodes, byAccount("kube-system")),
		karpenterSystem(t, "CloudFormation tutorial (v0.26)", walkthrough, &plain, &nodes, byAccount("karpenter")),
	}
}
