package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	// retentionMin is the shortest retention period of an interruption queue in Karpenter's
	// templates.
	retentionMin = 300 * time.Second
	// visibilityTimeouts is AWS's recommendation for queues of functions: the visibility
	// timeout is six times the function's
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html).
	visibilityTimeouts = 6
	deployFix          = "run cdk deploy of the cluster's stack"
)

// forEachQueue calls check for each existing queue of the plan.
func forEachQueue(f Facts, check func(p topology.Queue, q *Queue) []Finding) []Finding {
	var all []Finding
	for _, p := range f.Plan.Queues {
		if q := f.Queues[p.Name]; q != nil {
			all = append(all, check(p, q)...)
		}
	}
	return all
}

// checkQueues finds missing queues.
func checkQueues(f Facts) []Finding {
	var all []Finding
	missing := func(name string) bool { q, isRead := f.Queues[name]; return isRead && q == nil }
	for _, p := range f.Plan.Queues {
		if missing(p.Name) {
			all = append(all, newProblem("queue-missing", "queue/"+p.Name, "the queue does not exist: the "+p.Service+" receives nothing",
				deployFix+"; check --cluster, --name-prefix, --interruption-queue and AWS_REGION"))
		}
		if missing(p.Dead) {
			all = append(all, newProblem("dlq-missing", "queue/"+p.Dead, "the DLQ does not exist: messages that the "+p.Service+" cannot handle are lost when they expire", deployFix))
		}
	}
	if missing(f.Plan.AuditDead) {
		all = append(all, newProblem("dlq-missing", "queue/"+f.Plan.AuditDead, "the DLQ does not exist: facts that EventBridge cannot write to the audit log are only in the bus archive", deployFix))
	}
	return all
}

// checkAudit finds facts that are not written to the audit log.
func checkAudit(f Facts) []Finding {
	rules, isRead := f.Rules[f.Plan.AuditLogGroup]
	if !isRead {
		return nil
	}
	on := slices.IndexFunc(rules, func(r Rule) bool { return r.Enabled })
	switch {
	case on < 0:
		return []Finding{newWarning("audit-rule-missing", "log-group/"+f.Plan.AuditLogGroup, "no enabled rule writes the facts of the bus to the log: decisions are recorded only in the bus archive", deployFix+", or aws events enable-rule")}
	case rules[on].DeadARN == "":
		return []Finding{newWarning("rule-dlq-missing", "rule/"+rules[on].Name, "the rule's target has no DLQ: facts that the log rejects are missing in it without an alarm", "set the target's DeadLetterConfig to "+f.Plan.AuditDead)}
	}
	return nil
}

// checkDeadLetters finds DLQ messages.
func checkDeadLetters(f Facts) []Finding {
	var all []Finding
	for _, p := range f.Plan.DeadLetters() {
		if dead := f.Queues[p.Dead]; dead != nil && dead.Messages > 0 {
			all = append(all, newWarning("dlq-messages", "queue/"+p.Dead, fmt.Sprintf("the queue has %d DLQ messages of the %s, which were not handled", dead.Messages, p.Service),
				fmt.Sprintf("joist dead list --cluster %s --queue %s, then joist replay", f.Plan.Cluster, p.Service)))
		}
	}
	return all
}

// checkRedrives finds missing or wrong redrive policies. The interruption queue may have existed before, and
// then the stack does not change it: only the command repairs it.
func checkRedrives(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		dead, target := f.Queues[p.Dead], "<ARN of "+p.Dead+">"
		if dead != nil {
			target = dead.ARN
		}
		report := newWarning
		fix := fmt.Sprintf(`aws sqs set-queue-attributes --queue-url "$(aws sqs get-queue-url --queue-name %s --query QueueUrl --output text)" --attributes '{"RedrivePolicy":"{\"deadLetterTargetArn\":\"%s\",\"maxReceiveCount\":\"%d\"}"}'`,
			q.Name, target, p.MaxReceives)
		if p.Service != "interruption" {
			report, fix = newProblem, fix+", or "+deployFix
		}
		switch {
		case q.DeadARN == "":
			return []Finding{report("redrive-missing", "queue/"+q.Name, "the queue has no redrive policy: a message that crashes its consumer is retried until it expires, without an alarm", fix)}
		case dead != nil && q.DeadARN != dead.ARN:
			return []Finding{report("redrive-wrong-dlq", "queue/"+q.Name, "the redrive policy names "+q.DeadARN+", which neither the alarms nor joist dead read", fix)}
		case q.MaxReceives < p.MaxReceives:
			return []Finding{newWarning("redrive-too-soon", "queue/"+q.Name,
				fmt.Sprintf("SQS moves a message to the DLQ after %d receives, but services retry up to %d times during an AWS outage: an outage fills the DLQ", q.MaxReceives, p.MaxReceives), fix)}
		}
		return nil
	})
}

// checkTimes finds visibility timeouts and retention periods that are too short.
func checkTimes(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		var all []Finding
		if fn := f.Functions[p.Service]; fn != nil && q.Visibility < visibilityTimeouts*fn.Timeout {
			all = append(all, newProblem("visibility-short", "queue/"+q.Name,
				fmt.Sprintf("the visibility timeout is %s, less than %d times the timeout %s of the function %s: messages are handled twice concurrently and move to the DLQ too soon", q.Visibility, visibilityTimeouts, fn.Timeout, fn.Name),
				fmt.Sprintf("set VisibilityTimeout to %d", int((visibilityTimeouts*fn.Timeout).Seconds()))))
		}
		if q.Retention < retentionMin {
			all = append(all, newProblem("retention-short", "queue/"+q.Name, fmt.Sprintf("the retention period is %s: messages expire before a restarted consumer can read them", q.Retention),
				"set MessageRetentionPeriod to 300 or more"))
		}
		return all
	})
}

// sample is an event that a queue must receive.
type sample struct{ bus, source, detailType, detail string }

// sampleEvents returns the events that a queue must receive from EventBridge.
func sampleEvents(p topology.Plan, service string) []sample {
	switch service {
	case "interruption":
		var all []sample
		for _, kind := range [][2]string{
			{"aws.health", "AWS Health Event"}, {"aws.ec2", "EC2 Spot Instance Interruption Warning"}, {"aws.ec2", "EC2 Instance Rebalance Recommendation"},
			{"aws.ec2", "EC2 Instance State-change Notification"}, {"aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"},
		} {
			all = append(all, sample{topology.DefaultBus, kind[0], kind[1], `{"state":"terminated"}`})
		}
		return all
	case "lifecycle":
		var all []sample
		for i := range event.Specs {
			if spec := &event.Specs[i]; spec.IsFact() && slices.Contains(spec.Consumers, service) {
				all = append(all, factSample(p, spec, spec))
			}
		}
		return all
	}
	return nil
}

// factSample returns an event on the bus with the source and detail type of outer, which IAM
// checks, and a detail that claims those of inner.
func factSample(p topology.Plan, outer, inner *event.Spec) sample {
	detail := fmt.Sprintf(`{"cluster":%q,"source":%q,"type":%q}`, p.Cluster, "joist/"+inner.Producers[0], inner.Type)
	return sample{p.Bus, "joist/" + outer.Producers[0], string(outer.Type), detail}
}

// isBound reports whether a rule rejects events whose detail claims another type or source
// than the event.
func isBound(p topology.Plan, r Rule) bool {
	for i := range event.Specs {
		for j := range event.Specs {
			outer, inner := &event.Specs[i], &event.Specs[j]
			if i != j && outer.IsFact() && inner.IsFact() && factSample(p, outer, inner).isDelivered([]Rule{r}) {
				return false
			}
		}
	}
	return true
}

// isDelivered reports whether one of the rules delivers the event. The names of the rules do
// not matter, because those of Karpenter's stack are different.
func (s sample) isDelivered(rules []Rule) bool {
	raw := fmt.Appendf(nil, `{"source":%q,"detail-type":%q,"detail":%s}`, s.source, s.detailType, s.detail)
	return slices.ContainsFunc(rules, func(r Rule) bool {
		pattern, err := eventpattern.Compile([]byte(r.Pattern))
		if err != nil || !r.Enabled || r.Bus != s.bus {
			return false
		}
		ok, err := pattern.Match(raw)
		return ok && err == nil
	})
}

// checkDeliveries finds events that no rule delivers.
func checkDeliveries(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		rules, isRead := f.Rules[q.Name]
		wanted := sampleEvents(f.Plan, p.Service)
		if !isRead || len(wanted) == 0 {
			return nil
		}
		var missing []string
		for _, s := range wanted {
			if !s.isDelivered(rules) {
				missing = append(missing, s.detailType)
			}
		}
		var all []Finding
		switch {
		case len(missing) == len(wanted):
			all = append(all, newProblem("rules-missing", "queue/"+q.Name, "no EventBridge rule targets the queue: it never receives events, and interruptions of instances go unnoticed",
				deployFix+", which creates the rules; the Terraform of Karpenter's guides does not"))
		case len(missing) > 0:
			all = append(all, newProblem("rule-missing", "queue/"+q.Name, "no enabled EventBridge rule sends these events to the queue: "+strings.Join(missing, ", "), deployFix+", or enable the rule"))
		}
		for _, r := range rules {
			if r.DeadARN == "" {
				all = append(all, newWarning("rule-dlq-missing", "rule/"+r.Name, "the rule's target has no DLQ: events that the queue rejects are lost after a day of retries",
					"set the target's DeadLetterConfig to "+p.Dead))
			}
			if r.Bus == f.Plan.Bus && !isBound(f.Plan, r) {
				all = append(all, newProblem("rule-pattern-incomplete", "rule/"+r.Name, "the pattern does not compare the entry's detail-type and source with those inside the detail: a service that may send one type of fact can send every type", deployFix))
			}
			if r.Bus == f.Plan.Bus && r.InputPath != "$.detail" {
				all = append(all, newProblem("rule-input-path", "rule/"+r.Name, "the target gets the whole event instead of $.detail: the service cannot read it and moves it to the DLQ", "set the target's InputPath to $.detail"))
			}
		}
		return all
	})
}

// checkPolicies finds queue policies that do not let EventBridge send.
func checkPolicies(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		if !slices.Contains(p.Senders, topology.EventBridge) {
			return nil
		}
		allowed, err := allowsService(q.Policy, "events.amazonaws.com", "sqs:SendMessage")
		fix := "allow events.amazonaws.com sqs:SendMessage on the queue, with a condition on aws:SourceArn, or " + deployFix
		switch {
		case err != nil:
			return []Finding{newProblem("queue-policy-invalid", "queue/"+q.Name, "the queue policy cannot be parsed: "+err.Error(), fix)}
		case !allowed:
			return []Finding{newProblem("queue-policy-missing", "queue/"+q.Name, "the queue policy does not let EventBridge send: the queue never receives events", fix)}
		}
		return nil
	})
}
