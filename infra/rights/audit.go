package rights

import "slices"

// AuditPolicy returns the policy that allows EventBridge's rules to write to the audit logs of
// clusters. A stack has one, because an account may have ten per region
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html).
// EventBridge sends the rule's ARN when it puts events, but not when it creates a stream, so
// only the first has the condition
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
