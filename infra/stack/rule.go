package stack

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// A failed delivery is retried for an hour, after which the event is outdated, and then sent
// to the DLQ.
const (
	deliverySeconds  = 3600
	deliveryAttempts = 185
)

// newRule adds a rule with one target and its DLQ.
func newRule(scope constructs.Construct, id string, rule topology.Rule, target, targetARN, deadARN string) awsevents.CfnRule {
	var pattern map[string]any
	// The patterns are constants, which have their own tests.
	if err := json.Unmarshal([]byte(rule.Pattern), &pattern); err != nil {
		panic("the pattern of " + rule.ID + ": " + err.Error())
	}
	to := &awsevents.CfnRule_TargetProperty{
		Id: jsii.String(target), Arn: jsii.String(targetARN),
		DeadLetterConfig: &awsevents.CfnRule_DeadLetterConfigProperty{Arn: jsii.String(deadARN)},
		RetryPolicy: &awsevents.CfnRule_RetryPolicyProperty{
			MaximumEventAgeInSeconds: jsii.Number(deliverySeconds), MaximumRetryAttempts: jsii.Number(deliveryAttempts),
		},
	}
	if rule.InputPath != "" {
		to.InputPath = jsii.String(rule.InputPath)
	}
	return awsevents.NewCfnRule(scope, jsii.String(id), &awsevents.CfnRuleProps{
		Name: jsii.String(rule.Name), EventBusName: jsii.String(rule.Bus), EventPattern: pattern, State: jsii.String("ENABLED"),
		Targets: []any{to},
	})
}
