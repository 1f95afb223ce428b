package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// roleProps are the properties of a service's role.
type roleProps struct {
	name, description string
	// trust is the trust policy, rights the inline policies by name.
	trust  map[string]any
	rights map[string]map[string]any
}

// newServiceRole adds a role with inline policies and without AWS managed policies.
func newServiceRole(scope constructs.Construct, id string, p roleProps) awsiam.CfnRole {
	var policies []any
	for _, name := range sortedKeys(p.rights) {
		policies = append(policies, &awsiam.CfnRole_PolicyProperty{PolicyName: jsii.String(name), PolicyDocument: p.rights[name]})
	}
	return awsiam.NewCfnRole(scope, jsii.String(id), &awsiam.CfnRoleProps{
		RoleName: jsii.String(p.name), Description: jsii.String(p.description), AssumeRolePolicyDocument: p.trust, Policies: policies,
	})
}
