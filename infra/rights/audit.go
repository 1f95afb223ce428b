package rights

import "slices"

// AuditPolicy is the policy by which EventBridge's rules write to the audit logs of clusters: one
// for a stack, for an account has ten in a region
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html).
// EventBridge names the rule when it puts events and not when it makes a stream, so that
// the condition stands on the first alone
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html).
func AuditPolicy(scopes ...Scope) Document {
	var groups, rules []string
	for _, s := range scopes {
		groups = append(groups, s.resourceARN("logs", "log-group:"+s.Plan.AuditLogGroup+":*"))
		rules = slices.Concat(rules, s.ruleARNs(""))
	}
	write := func(sid, action string, condition Condition) Statement {
		return Statement{
			Sid: sid, Effect: "Allow", Principal: Principal{"Service": {"delivery.logs.amazonaws.com", "events.amazonaws.com"}},
			Action: []string{action}, Resource: groups, Condition: condition,
		}
	}
	return newDocument(
		write("MakeStreams", "logs:CreateLogStream", nil),
		write("RulesWriteTheAuditLog", "logs:PutLogEvents", newCondition("ArnEquals", "aws:SourceArn", rules...)),
	)
}
