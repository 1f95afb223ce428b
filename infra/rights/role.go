package rights

import (
	"errors"
	"slices"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// ServicePolicy returns the permissions of a service's role, as listed in
// services/<service>/README.md. topology.Scheduler has a role, too.
func (s Scope) ServicePolicy(service string) (Document, error) {
	if err := s.Validate(); err != nil {
		return Document{}, err
	}
	switch {
	case service == topology.Scheduler:
		return newDocument(s.tickStatement()), nil
	case !slices.Contains(topology.ExternalServices, service) && !slices.Contains(topology.ClusterServices, service):
		return Document{}, fault.E("writing the policies of "+service, fault.Invalid, errors.New("unknown service of a cluster")).
			WithHint("use one of %v, %v or %s", topology.ExternalServices, topology.ClusterServices, topology.Scheduler)
	}
	return newDocument(slices.Concat(s.awsStatements(service), s.storeStatements(service), s.queueStatements(service), s.busStatements(service))...), nil
}

// awsStatements returns a service's permissions other than messages and documents.
func (s Scope) awsStatements(service string) []Statement {
	switch service {
	case "catalog":
		return s.readStatements()
	case "interruption":
		return []Statement{s.describeStatement("ec2:DescribeInstanceStatus", "ec2:DescribeInstances")}
	case "launcher":
		return slices.Concat(s.launchStatements(), []Statement{s.describeStatement("ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"), s.passRoleStatement()}, s.profileStatements())
	}
	return nil
}

// readStatements returns the catalog's permissions, which only read. The price list is in
// other regions and has no resources.
func (s Scope) readStatements() []Statement {
	parameters := []string{"arn:" + s.Partition + ":ssm:" + s.Region + "::parameter/aws/service/*"}
	for _, name := range s.Parameters {
		parameters = append(parameters, s.resourceARN("ssm", "parameter/"+trimSlash(name)))
	}
	out := []Statement{
		s.describeStatement("ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups",
			"ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets"),
		allow("ReadPrices", []string{"pricing:GetProducts"}, []string{"*"}),
		allow("ReadParameters", []string{"ssm:GetParameter"}, parameters),
		allow("ReadCluster", []string{"eks:DescribeCluster"}, []string{s.clusterARN()}),
	}
	if s.ZonalShift {
		out = append(out, allow("ReadZonalShifts", []string{"arc-zonal-shift:GetManagedResource"}, []string{"*"},
			newCondition("StringEquals", "arc-zonal-shift:ResourceIdentifier", s.clusterARN())))
	}
	return out
}

func trimSlash(name string) string {
	if name != "" && name[0] == '/' {
		return name[1:]
	}
	return name
}

// tickStatement allows the scheduler to send to the queues that receive ticks, and to their
// DLQs.
func (s Scope) tickStatement() Statement {
	var to []string
	for _, q := range s.Plan.Queues {
		if slices.ContainsFunc(s.Plan.Ticks, func(t topology.Tick) bool { return t.Service == q.Service }) {
			to = append(to, s.resourceARN("sqs", q.Name), s.resourceARN("sqs", q.Dead))
		}
	}
	return allow("SendTicks", []string{"sqs:SendMessage"}, to)
}

// functionStatements returns the statements of every function's role.
func (s Scope) functionStatements(service string) []Statement {
	return []Statement{
		allow("WriteLogs", []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			[]string{s.resourceARN("logs", "log-group:/aws/lambda/"+s.functionName(service)+":*")}),
		{
			Sid: "DenyOtherFunctions", Effect: "Deny", Action: []string{"*"}, Resource: []string{"*"},
			// Null excludes calls without a function ARN, which must not be denied.
			Condition: allOf(newCondition("ArnNotEquals", "lambda:SourceFunctionArn", s.functionARN(service)), newCondition("Null", "lambda:SourceFunctionArn", "false")),
		},
	}
}

// FunctionPolicy returns the further statements of a service's role if it runs as a function.
// It denies everything to other functions with the same role. Lambda's own polling calls
// have no function ARN.
// https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
func (s Scope) FunctionPolicy(service string) Document {
	out := s.functionStatements(service)
	if own, ok := s.Plan.Queue(service); ok {
		out = append(out, allow("PollQueue", []string{"sqs:GetQueueAttributes"}, []string{s.resourceARN("sqs", own.Name)}))
	}
	return newDocument(out...)
}

// networkActions are the actions with which Lambda connects a function to a VPC
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions).
var networkActions = []string{
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
	"ec2:UnassignPrivateIpAddresses",
}

// NetworkPolicy returns the further statements of a function's role if the function is in a
// VPC. They allow Lambda to connect it, but not the function's own code, except for actions
// that the service's policy allows: each call of the code has the function's ARN, and a
// denial overrides every allowance. A shared function calls EC2 with the clusters' roles.
func (s Scope) NetworkPolicy(service string) Document {
	denied := slices.Clone(networkActions)
	if !s.isShared(service) {
		own := newDocument(s.awsStatements(service)...).Actions()
		denied = slices.DeleteFunc(denied, func(action string) bool { return slices.Contains(own, action) })
	}
	return newDocument(
		allow("LambdaConnects", networkActions, []string{"*"}),
		Statement{
			Sid: "DenyTheCode", Effect: "Deny", Action: denied, Resource: []string{"*"},
			Condition: newCondition("ArnEquals", "lambda:SourceFunctionArn", s.functionARN(service)),
		},
	)
}
