package rights

// TrustFunction lets Lambda take a role. Lambda says nothing of the function when it
// does, and IAM lets nobody pass a role to a function of another account; what another
// function of this one could do with it, Function takes away.
func TrustFunction() Document {
	return newDocument(trustStatement("FunctionsOfThisAccount", Principal{"Service": {"lambda.amazonaws.com"}}, []string{"sts:AssumeRole"}, nil))
}

// TrustAccount lets one service account of Kubernetes take a role through the
// cluster's OIDC provider, which is given by its ARN and its URL without the scheme.
// Subject and audience are compared whole.
func TrustAccount(provider, issuer, namespace, account string) Document {
	return newDocument(trustStatement("ServiceAccount", Principal{"Federated": {provider}}, []string{"sts:AssumeRoleWithWebIdentity"}, allOf(
		newCondition("StringEquals", issuer+":sub", "system:serviceaccount:"+namespace+":"+account),
		newCondition("StringEquals", issuer+":aud", "sts.amazonaws.com"))))
}

// TrustPod lets the pods of one service account of the cluster take a role by EKS Pod
// Identity, which says whose they are in tags of the session.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
func (s Scope) TrustPod(namespace, account string) Document {
	return newDocument(trustStatement("PodIdentity", Principal{"Service": {"pods.eks.amazonaws.com"}}, []string{"sts:AssumeRole", "sts:TagSession"}, allOf(
		newCondition("StringEquals", "aws:SourceAccount", s.Account),
		newCondition("StringEquals", "aws:RequestTag/eks-cluster-arn", s.clusterARN()),
		newCondition("StringEquals", "aws:RequestTag/kubernetes-namespace", namespace),
		newCondition("StringEquals", "aws:RequestTag/kubernetes-service-account", account))))
}

// TrustScheduler lets the cluster's own group of schedules take a role; a schedule's
// own ARN would not do.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
func (s Scope) TrustScheduler() Document {
	return newDocument(trustStatement("OwnSchedules", Principal{"Service": {"scheduler.amazonaws.com"}}, []string{"sts:AssumeRole"}, allOf(
		newCondition("StringEquals", "aws:SourceAccount", s.Account),
		newCondition("ArnEquals", "aws:SourceArn", s.resourceARN("scheduler", "schedule-group/"+s.Plan.ScheduleGroup)))))
}

// TrustNodes lets EC2 take the nodes' role, and nobody else.
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
