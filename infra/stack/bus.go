package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	// archiveDays equals the retention of documents (blob.Retention), without which archived
	// events are of no use.
	archiveDays = 30
	// auditDays is the retention of the audit log.
	auditDays = 90
)

// newBus adds the cluster's bus with its archive and its audit log.
func newBus(scope constructs.Construct, id string, plan topology.Plan, policy map[string]any) {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	bus := awsevents.NewCfnEventBus(scope, jsii.String("Events"), &awsevents.CfnEventBusProps{
		Name: jsii.String(plan.Bus), Description: jsii.String("Events of Joist in the cluster " + plan.Cluster),
	})
	deny, _ := policy["Statement"].([]any)[0].(map[string]any)
	delete(deny, "Sid")
	awsevents.NewCfnEventBusPolicy(scope, jsii.String("Policy"), &awsevents.CfnEventBusPolicyProps{
		EventBusName: bus.Ref(), StatementId: jsii.String("DenyOtherSenders"), Statement: deny,
	})
	awsevents.NewCfnArchive(scope, jsii.String("Archive"), &awsevents.CfnArchiveProps{
		ArchiveName: jsii.String(plan.Archive), SourceArn: bus.AttrArn(), RetentionDays: jsii.Number(archiveDays),
		Description:  jsii.String("Kept to explain decisions; a replayed event that has expired has no effect"),
		EventPattern: map[string]any{"source": []any{map[string]any{"prefix": "joist/"}}},
	})
	audit := awslogs.NewCfnLogGroup(scope, jsii.String("Audit"), &awslogs.CfnLogGroupProps{
		LogGroupName: jsii.String(plan.AuditLogGroup), RetentionInDays: jsii.Number(auditDays),
	})
	audit.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
}

// newAuditPolicy allows EventBridge's rules to write to the audit logs.
func newAuditPolicy(scope constructs.Construct, name string, policy rights.Document) {
	awslogs.NewCfnResourcePolicy(scope, jsii.String("AuditPolicy"), &awslogs.CfnResourcePolicyProps{
		PolicyName: jsii.String(name), PolicyDocument: jsii.String(string(policy.JSON())),
	})
}
