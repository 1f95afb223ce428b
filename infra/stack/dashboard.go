package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// addDashboard adds the cluster's dashboard, its alarms, and the log group of the CloudWatch
// agent's metrics. The audit log's DLQ has the same alarm as the others.
func (p clusterStack) addDashboard() {
	scope := constructs.NewConstruct(p.scope, jsii.String("Board"))
	of := board.Cluster{Plan: p.cluster.Plan, Inside: p.cluster.CloudWatchMetrics != ""}
	body, err := board.CloudWatch(of, p.place.region)
	if err != nil {
		panic("invalid dashboard: " + err.Error())
	}
	awscloudwatch.NewCfnDashboard(scope, jsii.String("Dashboard"), &awscloudwatch.CfnDashboardProps{
		DashboardName: jsii.String(p.cluster.Plan.Prefix + "-joist"), DashboardBody: jsii.String(string(body)),
	})
	if group := telemetry.AgentGroup(p.cluster.CloudWatchMetrics, p.cluster.Name); group != "" {
		awslogs.NewCfnLogGroup(scope, jsii.String("Metrics"), &awslogs.CfnLogGroupProps{
			LogGroupName: jsii.String(group), RetentionInDays: jsii.Number(logDays),
		})
	}
	alarms := board.Alarms(of)
	audit := topology.Plan{Cluster: p.cluster.Name, Prefix: p.cluster.Plan.Prefix, Queues: []topology.Queue{{Service: "audit", Dead: p.cluster.Plan.AuditDead}}}
	for _, a := range board.Alarms(board.Cluster{Plan: audit}) {
		if a.Alert == "dlq-messages" {
			alarms = append(alarms, a)
		}
	}
	for _, a := range alarms {
		p.addAlarm(scope, a)
	}
}

// addAlarm adds one alarm. Paging alarms notify the topic, if there is one.
func (s sharedParts) addAlarm(scope constructs.Construct, a board.Alarm) {
	props := &awscloudwatch.CfnAlarmProps{
		AlarmName: jsii.String(a.Name), AlarmDescription: jsii.String(a.Description), ComparisonOperator: jsii.String(a.Comparison),
		Threshold: jsii.Number(a.Threshold), EvaluationPeriods: jsii.Number(float64(a.Periods)), DatapointsToAlarm: jsii.Number(float64(a.Datapoints)),
		TreatMissingData: jsii.String(a.Missing),
	}
	if a.IsPage && s.config.AlarmTopic != "" {
		props.AlarmActions = &[]any{s.config.AlarmTopic}
		props.OkActions = &[]any{s.config.AlarmTopic}
	}
	if a.Expression == "" {
		m := a.Metrics[0]
		props.Namespace, props.MetricName, props.Statistic = jsii.String(m.Namespace), jsii.String(m.Name), jsii.String(m.Statistic)
		props.Period, props.Dimensions = jsii.Number(float64(m.Period)), dimensions(m)
	} else {
		queries := []any{&awscloudwatch.CfnAlarm_MetricDataQueryProperty{Id: jsii.String("result"), Expression: jsii.String(a.Expression), ReturnData: true}}
		for _, m := range a.Metrics {
			queries = append(queries, &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
				Id: jsii.String(m.ID), ReturnData: false,
				MetricStat: &awscloudwatch.CfnAlarm_MetricStatProperty{
					Metric: &awscloudwatch.CfnAlarm_MetricProperty{Namespace: jsii.String(m.Namespace), MetricName: jsii.String(m.Name), Dimensions: dimensions(m)},
					Period: jsii.Number(float64(m.Period)), Stat: jsii.String(m.Statistic),
				},
			})
		}
		props.Metrics = queries
	}
	awscloudwatch.NewCfnAlarm(scope, jsii.String(a.Name), props)
}

func dimensions(m board.Metric) []any {
	var all []any
	for _, d := range m.Dimensions {
		all = append(all, &awscloudwatch.CfnAlarm_DimensionProperty{Name: jsii.String(d.Name), Value: jsii.String(d.Value)})
	}
	return all
}
