package rights

import (
	"errors"
	"slices"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Of is what the role of a service may do, and no more: the cards' lists of rights
// (services/<service>/README.md). topology.Scheduler has a role, too.
func (s Scope) Of(service string) (Document, error) {
	if err := s.Check(); err != nil {
		return Document{}, err
	}
	switch {
	case service == topology.Scheduler:
		return document(s.ticks()), nil
	case !slices.Contains(topology.Outside, service) && !slices.Contains(topology.Inside, service):
		return Document{}, fault.E("writing the rights of "+service, fault.Invalid, errors.New("it is no service of a cluster")).
			WithHint("one of %v, %v or %s", topology.Outside, topology.Inside, topology.Scheduler)
	}
	return document(slices.Concat(s.aws(service), s.store(service), s.messages(service), s.facts(service))...), nil
}

// aws is what a service does to AWS beside saying and hearing.
func (s Scope) aws(service string) []Statement {
	switch service {
	case "catalog":
		return s.read()
	case "interruption":
		return []Statement{s.look("ec2:DescribeInstanceStatus", "ec2:DescribeInstances")}
	case "launcher":
		return slices.Concat(s.launch(), []Statement{s.look("ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"), s.passRole()}, s.profiles())
	}
	return nil
}

// read is the catalog's: it asks and never changes. Prices are asked of other
// regions than the cluster's, and know no resources.
func (s Scope) read() []Statement {
	parameters := []string{"arn:" + s.Partition + ":ssm:" + s.Region + "::parameter/aws/service/*"}
	for _, name := range s.Parameters {
		parameters = append(parameters, s.arn("ssm", "parameter/"+trimSlash(name)))
	}
	out := []Statement{
		s.look("ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups",
			"ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets"),
		allow("ReadPrices", []string{"pricing:GetProducts"}, []string{"*"}),
		allow("ReadParameters", []string{"ssm:GetParameter"}, parameters),
		allow("ReadCluster", []string{"eks:DescribeCluster"}, []string{s.cluster()}),
	}
	if s.ZonalShift {
		out = append(out, allow("ReadZonalShifts", []string{"arc-zonal-shift:GetManagedResource"}, []string{"*"},
			is("StringEquals", "arc-zonal-shift:ResourceIdentifier", s.cluster())))
	}
	return out
}

func trimSlash(name string) string {
	if name != "" && name[0] == '/' {
		return name[1:]
	}
	return name
}

// ticks is the scheduler's: to send to those who want ticks, and to their dead-letter
// queues what it could not.
func (s Scope) ticks() Statement {
	var to []string
	for _, q := range s.Plan.Queues {
		if slices.ContainsFunc(s.Plan.Ticks, func(t topology.Tick) bool { return t.Service == q.Service }) {
			to = append(to, s.arn("sqs", q.Name), s.arn("sqs", q.Dead))
		}
	}
	return allow("SendTicks", []string{"sqs:SendMessage"}, to)
}

// running is what every function's role has, and what it gives up.
func (s Scope) running(service string) []Statement {
	return []Statement{
		allow("WriteLogs", []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			[]string{s.arn("logs", "log-group:/aws/lambda/"+s.functionName(service)+":*")}),
		{
			Sid: "DenyOtherFunctions", Effect: "Deny", Action: []string{"*"}, Resource: []string{"*"},
			// Without Null a call that names no function would be denied, too.
			Condition: both(is("ArnNotEquals", "lambda:SourceFunctionArn", s.function(service)), is("Null", "lambda:SourceFunctionArn", "false")),
		},
	}
}

// Function is what a service's role needs besides where it runs as a function, and
// what it then gives up: credentials of another function with the same role are
// refused everything. Calls that Lambda makes by itself, to poll, name no function.
// https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
func (s Scope) Function(service string) Document {
	out := s.running(service)
	if own, ok := s.Plan.Queue(service); ok {
		out = append(out, allow("PollQueue", []string{"sqs:GetQueueAttributes"}, []string{s.arn("sqs", own.Name)}))
	}
	return document(out...)
}
