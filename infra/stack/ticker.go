package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// newTicker adds the cluster's schedules. A tick that cannot be sent for two minutes has
// expired and goes to the DLQ.
func newTicker(scope constructs.Construct, id string, plan topology.Plan, queues map[string]WorkQueue, role awsiam.CfnRole) {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	group := awsscheduler.NewCfnScheduleGroup(scope, jsii.String("Group"), &awsscheduler.CfnScheduleGroupProps{Name: jsii.String(plan.ScheduleGroup)})
	for _, tick := range plan.Ticks {
		queue := queues[tick.Service]
		schedule := awsscheduler.NewCfnSchedule(scope, jsii.String(titleCase(tick.Want)), &awsscheduler.CfnScheduleProps{
			Name: jsii.String(tick.Name), GroupName: group.Ref(), State: jsii.String("ENABLED"),
			ScheduleExpression: jsii.String(scheduleRate(tick)),
			FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
			Target: &awsscheduler.CfnSchedule_TargetProperty{
				Arn: jsii.String(queue.ARN), RoleArn: role.AttrArn(), Input: jsii.String(tick.Input),
				DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: jsii.String(queue.DeadARN)},
				RetryPolicy:      &awsscheduler.CfnSchedule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(120), MaximumRetryAttempts: jsii.Number(3)},
			},
		})
		if queue.resource != nil {
			schedule.Node().AddDependency(queue.resource)
		}
	}
}

// scheduleRate returns the schedule expression; the shortest rate is a minute.
func scheduleRate(t topology.Tick) string {
	if minutes := int(t.Every.Minutes()); minutes > 1 {
		return fmt.Sprintf("rate(%d minutes)", minutes)
	}
	return "rate(1 minute)"
}
