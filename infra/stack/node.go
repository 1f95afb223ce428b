package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/infra/rights"
)

// newNodeIdentity adds the nodes' role, their instance profile if node classes name one, and
// their access entries. It skips existing resources.
func newNodeIdentity(scope constructs.Construct, id string, p place, s rights.Scope, k config.Cluster) {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	var role awsiam.CfnRole
	if !k.Node.Existing {
		var managed []any
		for _, arn := range s.NodePolicies() {
			managed = append(managed, arn)
		}
		role = awsiam.NewCfnRole(scope, jsii.String("Role"), &awsiam.CfnRoleProps{
			RoleName: jsii.String(k.Node.Role), Description: jsii.String("Permissions of the nodes of the cluster " + k.Name),
			ManagedPolicyArns:        &managed,
			AssumeRolePolicyDocument: policyMap(s.TrustNodes()),
		})
		suppress(role, nodePolicies)
	}
	after := func(r awscdk.CfnResource) {
		if role != nil {
			r.AddDependency(role)
		}
	}
	if k.Node.Profiles == config.ByInstanceProfile && !k.Node.ProfileExisting {
		after(awsiam.NewCfnInstanceProfile(scope, jsii.String("Profile"), &awsiam.CfnInstanceProfileProps{
			InstanceProfileName: jsii.String(k.Node.Profile), Path: jsii.String("/"), Roles: &[]any{k.Node.Role},
		}))
	}
	if k.Node.Access == config.AccessEntry {
		after(awseks.NewCfnAccessEntry(scope, jsii.String("Access"), &awseks.CfnAccessEntryProps{
			ClusterName: jsii.String(k.Name), PrincipalArn: jsii.String(nodeRoleARN(p, k)), Type: jsii.String("EC2_LINUX"),
		}))
	}
	if k.Node.WindowsRole != "" {
		// A role has one entry, of one type.
		awseks.NewCfnAccessEntry(scope, jsii.String("WindowsAccess"), &awseks.CfnAccessEntryProps{
			ClusterName: jsii.String(k.Name), PrincipalArn: jsii.String(s.WindowsNodeRole), Type: jsii.String("EC2_WINDOWS"),
		})
	}
}

// nodeRoleARN returns the ARN of the nodes' role, against which IAM checks iam:PassRole.
func nodeRoleARN(p place, k config.Cluster) string {
	return p.iamARN("role/" + k.Node.RolePath + k.Node.Role)
}

// newPodIdentity associates a service account with its role, without an OIDC provider.
func newPodIdentity(scope constructs.Construct, id string, k config.Cluster, service string, role awsiam.CfnRole) {
	awseks.NewCfnPodIdentityAssociation(scope, jsii.String(id), &awseks.CfnPodIdentityAssociationProps{
		ClusterName: jsii.String(k.Name), Namespace: jsii.String(k.Namespace), ServiceAccount: jsii.String(serviceAccount(service)), RoleArn: role.AttrArn(),
	})
}

// serviceAccount returns the name of a service's ServiceAccount.
func serviceAccount(service string) string { return "joist-" + service }
