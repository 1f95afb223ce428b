package rights

// TrustFunction returns the trust policy for Lambda. Lambda does not identify the function
// when it assumes the role, and a role cannot be passed to another account's function.
// FunctionPolicy denies other functions of this account.
func TrustFunction() Document {
	return newDocument(trustStatement("FunctionsOfThisAccount", Principal{"Service": {"lambda.amazonaws.com"}}, []string{"sts:AssumeRole"}, nil))
}

// TrustAccount returns the trust policy for one Kubernetes service account through the
// cluster's OIDC provider, given by its ARN and its URL without the scheme. Subject and
// audience must be equal.
func TrustAccount(provider, issuer, namespace, account string) Document {
	return newDocument(trustStatement("ServiceAccount", Principal{"Federated": {provider}}, []string{"sts:AssumeRoleWithWebIdentity"}, allOf(
		newCondition("StringEquals", issuer+":sub", "system:serviceaccount:"+namespace+":"+account),
		newCondition("StringEquals", issuer+":aud", "sts.amazonaws.com"))))
}

// TrustPod returns the trust policy for the pods of one service account through EKS Pod
// Identity, which identifies them by session tags.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
func (s Scope) TrustPod(namespace, account string) Document {
	return newDocument(trustStatement("PodIdentity", Principal{"Service": {"pods.eks.amazonaws.com"}}, []string{"sts:AssumeRole", "sts:TagSession"}, allOf(
		newCondition("StringEquals", "aws:SourceAccount", s.Account),
		newCondition("StringEquals", "aws:RequestTag/eks-cluster-arn", s.clusterARN()),
		newCondition("StringEquals", "aws:RequestTag/kubernetes-namespace", namespace),
		newCondition("StringEquals", "aws:RequestTag/kubernetes-service-account", account))))
}

// TrustScheduler returns the trust policy for the cluster's schedule group. A schedule's ARN
// is not supported as the source.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
func (s Scope) TrustScheduler() Document {
	return newDocument(trustStatement("OwnSchedules", Principal{"Service": {"scheduler.amazonaws.com"}}, []string{"sts:AssumeRole"}, allOf(
		newCondition("StringEquals", "aws:SourceAccount", s.Account),
		newCondition("ArnEquals", "aws:SourceArn", s.resourceARN("scheduler", "schedule-group/"+s.Plan.ScheduleGroup)))))
}

// TrustNodes returns the trust policy of the nodes' role, for EC2 only.
func (s Scope) TrustNodes() Document {
	service := "ec2.amazonaws.com"
	if s.Partition == "aws-cn" {
		service += ".cn"
	}
	return newDocument(trustStatement("Instances", Principal{"Service": {service}}, []string{"sts:AssumeRole"}, nil))
}

func trustStatement(sid string, who Principal, actions []string, condition Condition) Statement {
	return Statement{Sid: sid, Effect: "Allow", Principal: who, Action: actions, Condition: condition}
}
