package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// queueStatements returns a service's permissions on queues: to consume its own queue, unless
// a shared function does so by its own role; to send to its DLQ; and to send
// commands.
func (s Scope) queueStatements(service string) []Statement {
	var out []Statement
	if own, ok := s.Plan.Queue(service); ok {
		if !s.isShared(service) {
			out = append(out, allow("WorkOnQueue", []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}, []string{s.resourceARN("sqs", own.Name)}))
		}
		out = append(out, allow("ParkDead", []string{"sqs:SendMessage"}, []string{s.resourceARN("sqs", own.Dead)}))
	}
	if to := s.sendQueues(service); len(to) > 0 {
		out = append(out, allow("SendCommands", []string{"sqs:SendMessage"}, to))
	}
	return out
}

// sendQueues returns the ARNs of the queues that list the service as a sender.
func (s Scope) sendQueues(service string) []string {
	var out []string
	for _, q := range s.Plan.Queues {
		if slices.Contains(q.Senders, service) {
			out = append(out, s.resourceARN("sqs", q.Name))
		}
	}
	return out
}

// busStatements allows a service to publish its own event types under its own source. The
// conditions hold whether AWS evaluates the entries of a call separately or together.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
func (s Scope) busStatements(service string) []Statement {
	var types []string
	for _, spec := range event.Specs {
		if spec.IsFact() && slices.Contains(spec.Producers, service) {
			types = append(types, string(spec.Type))
		}
	}
	if len(types) == 0 {
		return nil
	}
	return []Statement{allow("SayFacts", []string{"events:PutEvents"}, []string{s.busARN()},
		newCondition("ForAllValues:StringEquals", "events:source", "joist/"+service), newCondition("Null", "events:source", "false"),
		newCondition("ForAllValues:StringEquals", "events:detail-type", types...), newCondition("Null", "events:detail-type", "false"))}
}

// QueuePolicy returns the policy of a service's queue: it requires TLS and allows only the
// listed senders and the cluster's own EventBridge rules.
func (s Scope) QueuePolicy(q topology.Queue) Document {
	var roles []string
	for _, sender := range q.Senders {
		if sender != topology.EventBridge {
			roles = append(roles, s.Role(sender))
		}
	}
	return s.receivePolicy(s.resourceARN("sqs", q.Name), roles, s.ruleARNs(q.Service))
}

// DeadLetterPolicy returns the policy of its DLQ: the service sends messages
// that it cannot decode, rules and schedules the events that they cannot deliver. SQS's own
// redrive needs no permission.
func (s Scope) DeadLetterPolicy(q topology.Queue) Document {
	roles := []string{s.Role(q.Service)}
	if slices.Contains(q.Senders, topology.Scheduler) {
		roles = append(roles, s.Role(topology.Scheduler))
	}
	return s.receivePolicy(s.resourceARN("sqs", q.Dead), roles, s.ruleARNs(q.Service))
}

// RuleDeadLetterPolicy returns the policy of the DLQ of the audit log's rules.
func (s Scope) RuleDeadLetterPolicy(name string) Document {
	return s.receivePolicy(s.resourceARN("sqs", name), nil, s.ruleARNs(""))
}

// ruleARNs returns the ARNs of the rules whose target is the service's queue.
func (s Scope) ruleARNs(service string) []string {
	var out []string
	for _, r := range s.Plan.Rules {
		if r.Service == service {
			out = append(out, s.ruleARN(r))
		}
	}
	return out
}

// receivePolicy returns the policy of a queue with a closed list of senders. It denies all
// others, so broad permissions of administrators do not suffice. Replayers are listed.
func (s Scope) receivePolicy(arn string, roles, rules []string) Document {
	resource := []string{arn}
	out := []Statement{deny("DenyInsecureTransport", []string{"sqs:*"}, resource, insecureTransport())}
	others := []Condition{newCondition("BoolIfExists", "aws:PrincipalIsAWSService", "false")}
	if may := slices.Concat(roles, s.Replayers); len(may) > 0 {
		others = append(others, newCondition("ArnNotLike", "aws:PrincipalArn", may...))
	}
	out = append(out, deny("DenyOtherSenders", []string{"sqs:SendMessage"}, resource, others...))
	if len(rules) > 0 {
		out = append(out, Statement{
			Sid: "AllowOwnRules", Effect: "Allow", Principal: Principal{"Service": {"events.amazonaws.com"}},
			Action: []string{"sqs:SendMessage"}, Resource: resource,
			// Without the source, any account's rule could send (confused deputy). https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
			Condition: allOf(newCondition("ArnEquals", "aws:SourceArn", rules...), newCondition("StringEquals", "aws:SourceAccount", s.Account)),
		})
	}
	return newDocument(out...)
}

// BusPolicy returns the policy of the bus: only services that publish events may put them. A
// replay of the archive needs no permission.
func (s Scope) BusPolicy() Document {
	var roles []string
	for _, service := range append(slices.Clone(topology.ExternalServices), topology.ClusterServices...) {
		if len(s.busStatements(service)) > 0 {
			roles = append(roles, s.Role(service))
		}
	}
	return newDocument(deny("DenyOtherSenders", []string{"events:PutEvents"}, []string{s.busARN()}, newCondition("ArnNotEquals", "aws:PrincipalArn", roles...)))
}
