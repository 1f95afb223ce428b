package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// queueStatements is what a service may do to queues: work on its own, unless a function that
// clusters share does so by its own role; park in its own dead-letter queue; and send
// where the contract says that it sends.
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

// sendQueues are the queues that name the service as a sender.
func (s Scope) sendQueues(service string) []string {
	var out []string
	for _, q := range s.Plan.Queues {
		if slices.Contains(q.Senders, service) {
			out = append(out, s.resourceARN("sqs", q.Name))
		}
	}
	return out
}

// busStatements lets a service say its own facts on the bus, under its own name. Entries of
// one call are looked at each or together, and the conditions hold either way.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
func (s Scope) busStatements(service string) []Statement {
	var types []string
	for _, spec := range event.Specs {
		if spec.Fact() && slices.Contains(spec.Producers, service) {
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

// QueuePolicy is the policy of a service's queue: TLS, nobody sends but those on its list,
// and of EventBridge only the cluster's own rules.
func (s Scope) QueuePolicy(q topology.Queue) Document {
	var roles []string
	for _, sender := range q.Senders {
		if sender != topology.EventBridge {
			roles = append(roles, s.Role(sender))
		}
	}
	return s.receivePolicy(s.resourceARN("sqs", q.Name), roles, s.ruleARNs(q.Service))
}

// DeadLetterPolicy is the policy of its dead-letter queue: the service parks there what it cannot
// read, rules and schedules what they could not deliver. That SQS moves there after too
// many receives needs no right.
func (s Scope) DeadLetterPolicy(q topology.Queue) Document {
	roles := []string{s.Role(q.Service)}
	if slices.Contains(q.Senders, topology.Scheduler) {
		roles = append(roles, s.Role(topology.Scheduler))
	}
	return s.receivePolicy(s.resourceARN("sqs", q.Dead), roles, s.ruleARNs(q.Service))
}

// RuleDeadLetterPolicy is the policy of the dead-letter queue of rules whose target is no queue of
// a service's: the audit log.
func (s Scope) RuleDeadLetterPolicy(name string) Document {
	return s.receivePolicy(s.resourceARN("sqs", name), nil, s.ruleARNs(""))
}

// ruleARNs are the ARNs of the rules whose target is the service's queue.
func (s Scope) ruleARNs(service string) []string {
	var out []string
	for _, r := range s.Plan.Rules {
		if r.Service == service {
			out = append(out, s.ruleARN(r))
		}
	}
	return out
}

// receivePolicy is the policy of a queue with a closed list of senders. The list is a
// denial: an administrator's wide right, or one given by mistake, is not on it. Whoever
// replays is.
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
			// Without the source, any account's rule could send: EventBridge would be its
			// deputy. https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
			Condition: allOf(newCondition("ArnEquals", "aws:SourceArn", rules...), newCondition("StringEquals", "aws:SourceAccount", s.Account)),
		})
	}
	return newDocument(out...)
}

// BusPolicy is the policy of the bus: only the services that say facts put any. Its archive
// replays by itself.
func (s Scope) BusPolicy() Document {
	var roles []string
	for _, service := range append(slices.Clone(topology.Outside), topology.Inside...) {
		if len(s.busStatements(service)) > 0 {
			roles = append(roles, s.Role(service))
		}
	}
	return newDocument(deny("DenyOtherSenders", []string{"events:PutEvents"}, []string{s.busARN()}, newCondition("ArnNotEquals", "aws:PrincipalArn", roles...)))
}
