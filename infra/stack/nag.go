package stack

import (
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// suppression is an accepted finding of cdk-nag with its reason.
type suppression struct {
	// rule is a rule of AwsSolutions. findings is a regular expression of the findings, or
	// empty for all.
	rule, findings, reason string
}

// The suppressions by resource. A role has only the suppressions that its policies need, so a new kind of
// wildcard is reported.
var (
	bucketAccessLog = suppression{"AwsSolutions-S1", "",
		"An access log would need a second bucket and record documents that expire; CloudTrail's data events record the same where they are enabled"}
	deadLetterQueue = suppression{"AwsSolutions-SQS3", "",
		"It is itself a DLQ: of an EventBridge target, or of a queue outside this stack"}
	nodePolicies = suppression{"AwsSolutions-IAM4", "",
		"Nodes need the policies that EKS, the VPC CNI, ECR and SSM publish for them; AWS updates these with the software on nodes"}
	logStreams = suppression{"AwsSolutions-IAM5", `/^Resource::arn:.*:logs:.*$/`,
		"The streams of the function's own log group have names that Lambda chooses"}
	documentsOf = suppression{"AwsSolutions-IAM5", `/^Resource::.*:s3:::.*\/\*$/`,
		"Documents are named by their digest, below the cluster's prefix and their own kind"}
	describeActions = suppression{"AwsSolutions-IAM5", `/^Resource::\*$/`,
		"Actions that only describe have no resources; where AWS allows it, a condition limits them to the region or the cluster"}
	parametersOf = suppression{"AwsSolutions-IAM5", `/^Resource::arn:.*:ssm:.*$/`,
		"AWS publishes images below /aws/service, by release; the user who deploys the stack names other parameters"}
	ec2Resources = suppression{"AwsSolutions-IAM5", `/^Resource::arn:.*:ec2:.*$/`,
		"Ids of instances, templates and networks are not known in advance; conditions limit changes to those with the cluster's tags"}
	profilesOf = suppression{"AwsSolutions-IAM5", `/^Resource::arn:.*:instance-profile\/.*$/`,
		"Profiles are named after node classes, below the cluster's path, and limited by its tags; only their names are read"}
	interfaces = suppression{"AwsSolutions-IAM5", `/^Resource::\*$/`,
		"Lambda requires this, with this resource, to connect a function to a VPC; a Deny excludes the function's own code"}
)

// installerSuppressions are those of the CDK's own functions, which install charts.
var installerSuppressions = []suppression{
	{"AwsSolutions-IAM4", "", "The CDK gives its chart installer AWS's own policies for functions and for pulling images; it exists only on request"},
	{"AwsSolutions-IAM5", "", "The CDK's chart installer invokes its own function, and reads the assets of the account's CDK bucket; it exists only on request"},
	{"AwsSolutions-L1", "", "The CDK selects the Python and Node versions of its own functions, with each of its releases"},
}

// roleSuppressions are the suppressions of each service's role.
var roleSuppressions = map[string][]suppression{
	"watcher":      {documentsOf},
	"lifecycle":    {documentsOf},
	"planner":      {documentsOf, logStreams},
	"disruption":   {documentsOf, logStreams},
	"interruption": {describeActions, logStreams},
	"catalog":      {documentsOf, logStreams, describeActions, parametersOf},
	"launcher":     {documentsOf, logStreams, describeActions, ec2Resources, profilesOf},
}

// personSuppressions are the suppressions of the operator's and replayer's policies.
var personSuppressions = []suppression{
	documentsOf, describeActions, profilesOf,
	{"AwsSolutions-IAM5", `/^Resource::arn:.*:(eks|events|iam|lambda):.*-joist-\*$/`, "Roles, functions and replays of the cluster have its prefix, by which they are read"},
	{"AwsSolutions-IAM5", `/^Resource::arn:.*:eks:.*\/\*$/`, "Access entries and Pod Identity associations have names that EKS chooses, below the cluster's; they are read"},
	{"AwsSolutions-IAM5", `/^Resource::arn:.*:logs:.*:log-group:.*:\*$/`, "The log groups of the functions and of the audit log have streams with names that AWS chooses; they are read"},
	{"AwsSolutions-IAM5", `/^Resource::arn:.*:events:.*:rule\/\*$/`, "Rules that were adopted have names that another stack chose; they are read"},
}

// suppress adds the suppressions to a construct.
func suppress(at constructs.IConstruct, exceptions ...suppression) {
	for _, e := range exceptions {
		suppression := &cdknag.NagPackSuppression{Id: jsii.String(e.rule), Reason: jsii.String(e.reason)}
		if e.findings != "" {
			suppression.AppliesTo = &[]any{&cdknag.RegexAppliesTo{Regex: jsii.String(e.findings)}}
		}
		cdknag.NagSuppressions_AddResourceSuppressions(at, &[]*cdknag.NagPackSuppression{suppression}, jsii.Bool(true))
	}
}
