package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/rights"
)

// spotRole is the function that creates the account's service-linked role for EC2 spot.
const spotRole = "spotrole"

// newSpotRole creates the role with a custom resource, because CloudFormation's own resource
// fails if the role exists, as in every account that has used spot instances.
func newSpotRole(scope constructs.Construct, id string, p place, stack string, code awss3assets.Asset) {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	name := stack + "-spotrole"
	logs := p.resourceARN("logs", "log-group:"+logGroup(name)+":*")
	role := newServiceRole(scope, "Role", roleProps{
		name: name, description: "Creates the account's service-linked role of EC2 spot",
		trust: policyMap(rights.TrustFunction()),
		rights: map[string]map[string]any{"spotrole": {"Version": "2012-10-17", "Statement": []any{
			map[string]any{
				"Sid": "MakeTheRole", "Effect": "Allow", "Action": "iam:CreateServiceLinkedRole",
				"Resource":  p.iamARN("role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"),
				"Condition": map[string]any{"StringEquals": map[string]any{"iam:AWSServiceName": "spot.amazonaws.com"}},
			},
			map[string]any{"Sid": "Log", "Effect": "Allow", "Action": []string{"logs:CreateLogStream", "logs:PutLogEvents"}, "Resource": logs},
		}}},
	})
	suppress(role, logStreams)
	function := newFunction(scope, functionProps{
		name: name, description: "Creates the service-linked role of EC2 spot if it does not exist", memory: 128, timeout: time.Minute, role: role, code: code,
	})
	resource := awscdk.NewCfnCustomResource(scope, jsii.String("Once"), &awscdk.CfnCustomResourceProps{
		ServiceToken: function.AttrArn(), ServiceTimeout: jsii.Number(120),
	})
	resource.AddDependency(role)
}
