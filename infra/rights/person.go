package rights

import (
	"maps"
	"slices"
)

// OperatorPolicy returns the permissions of the `joist` commands that change nothing.
// Reading a DLQ receives messages and makes them visible again at once, which
// only raises their receive count.
func (s Scope) OperatorPolicy() (Document, error) {
	if err := s.Validate(); err != nil {
		return Document{}, err
	}
	queues, dead := s.queueARNs()
	return newDocument(
		allow("ReadDocuments", []string{"s3:GetObject"}, []string{s.objectARN("*")}, s.inAccount()),
		s.listStatement(),
		allow("ReadQueues", []string{"sqs:GetQueueAttributes", "sqs:GetQueueUrl"}, slices.Concat(queues, dead)),
		allow("LookAtDead", []string{"sqs:ChangeMessageVisibility", "sqs:ReceiveMessage"}, dead),
		// Adopted rules may have any name.
		allow("ReadRules", []string{"events:DescribeRule", "events:ListTargetsByRule"}, []string{s.resourceARN("events", "rule/*")}),
		allow("ReadArchive", []string{"events:DescribeArchive", "events:DescribeReplay"}, s.archiveARNs()),
		allow("ReadLogs", []string{"logs:FilterLogEvents"}, append(s.prefixedARNs(s.Functions, func(name string) string { return s.resourceARN("logs", "log-group:/aws/lambda/"+name+":*") }),
			s.resourceARN("logs", "log-group:"+s.Plan.AuditLogGroup+":*"))),
		allow("ReadFunctions", []string{"lambda:GetFunctionConfiguration"}, s.prefixedARNs(s.Functions, func(name string) string { return s.resourceARN("lambda", "function:"+name) })),
		// The policy simulator evaluates a role's permissions without using them.
		allow("ReadRoles", []string{"iam:GetRole", "iam:ListAttachedRolePolicies", "iam:SimulatePrincipalPolicy"}, append(slices.Concat(s.prefixedARNs(s.Roles, func(name string) string { return s.iamARN("role/" + name) }), s.nodeRoleARNs()),
			s.iamARN("role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"))),
		allow("ReadProfiles", []string{"iam:GetInstanceProfile", "iam:ListInstanceProfiles"}, []string{s.iamARN("instance-profile/*")}),
		allow("ReadCluster", []string{"eks:DescribeAccessEntry", "eks:DescribeCluster", "eks:DescribePodIdentityAssociation", "eks:ListPodIdentityAssociations"},
			[]string{s.clusterARN(), s.resourceARN("eks", "access-entry/"+s.Plan.Cluster+"/*"), s.resourceARN("eks", "podidentityassociation/"+s.Plan.Cluster+"/*")}),
		s.describeStatement("cloudwatch:GetMetricData", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "events:ListRuleNamesByTarget", "lambda:ListEventSourceMappings"),
	), nil
}

// ReplayerPolicy returns the permissions to replay messages, in addition to OperatorPolicy.
// The role must also be in Replayers, because the queues deny other senders.
func (s Scope) ReplayerPolicy() (Document, error) {
	if err := s.Validate(); err != nil {
		return Document{}, err
	}
	queues, dead := s.queueARNs()
	return newDocument(
		allow("TakeDead", []string{"sqs:CancelMessageMoveTask", "sqs:DeleteMessage", "sqs:ListMessageMoveTasks", "sqs:StartMessageMoveTask"}, dead),
		allow("PutBack", []string{"sqs:SendMessage"}, queues),
		allow("ReplayArchive", []string{"events:CancelReplay", "events:StartReplay"}, append(s.archiveARNs(), s.busARN())),
	), nil
}

func (s Scope) queueARNs() (queues, dead []string) {
	for _, q := range s.Plan.DeadLetters() {
		if q.Name != "" {
			queues = append(queues, s.resourceARN("sqs", q.Name))
		}
		dead = append(dead, s.resourceARN("sqs", q.Dead))
	}
	return queues, dead
}

func (s Scope) archiveARNs() []string {
	return []string{s.resourceARN("events", "archive/"+s.Plan.Archive), s.resourceARN("events", "replay/"+s.Plan.Prefix+"-joist-*")}
}

// prefixedARNs returns the ARN patterns of the services' functions or roles, by prefix, and
// of those with other names. They are only used for reading.
func (s Scope) prefixedARNs(others map[string]string, arn func(name string) string) []string {
	names := append(slices.Collect(maps.Values(others)), s.Plan.Prefix+"-joist-*")
	if s.Plan.HasSharedFunctions() {
		names = append(names, s.Plan.Functions+"-joist-*")
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = arn(name)
	}
	return names
}
