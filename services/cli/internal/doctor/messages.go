package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/eventpattern"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	// retentionMin is the shortest that a queue of interruptions has in any of the seeds
	// (A043, A044).
	retentionMin = 300 * time.Second
	// timesTimeout is AWS's advice for queues that functions read
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html).
	timesTimeout = 6
	deploy       = "cdk deploy of the cluster's stack"
)

// each gives every queue of the plan that exists to a check.
func each(f Facts, check func(p topology.Queue, q *Queue) []Finding) []Finding {
	var all []Finding
	for _, p := range f.Plan.Queues {
		if q := f.Queues[p.Name]; q != nil {
			all = append(all, check(p, q)...)
		}
	}
	return all
}

// queuesThere finds queues that do not exist.
func queuesThere(f Facts) []Finding {
	var all []Finding
	missing := func(name string) bool { q, looked := f.Queues[name]; return looked && q == nil }
	for _, p := range f.Plan.Queues {
		if missing(p.Name) {
			all = append(all, problem("queue-missing", "queue/"+p.Name, "there is no such queue: the "+p.Service+" gets nothing",
				deploy+"; see whether --cluster, --name-prefix, --interruption-queue and AWS_REGION are right"))
		}
		if missing(p.Dead) {
			all = append(all, problem("dead-missing", "queue/"+p.Dead, "there is no such dead-letter queue: what the "+p.Service+" cannot read cannot be parked, and is lost when it expires", deploy))
		}
	}
	if missing(f.Plan.AuditDead) {
		all = append(all, problem("dead-missing", "queue/"+f.Plan.AuditDead, "there is no such dead-letter queue: what the audit log does not take is in the bus's archive alone", deploy))
	}
	return all
}

// audit finds facts that are not written down.
func audit(f Facts) []Finding {
	rules, looked := f.Rules[f.Plan.AuditLogGroup]
	if !looked {
		return nil
	}
	on := slices.IndexFunc(rules, func(r Rule) bool { return r.Enabled })
	switch {
	case on < 0:
		return []Finding{warning("audit-rule", "log-group/"+f.Plan.AuditLogGroup, "no enabled rule writes the bus's facts to it: what was decided can be read in the archive alone", deploy+", or aws events enable-rule")}
	case rules[on].DeadARN == "":
		return []Finding{warning("rule-no-dead", "rule/"+rules[on].Name, "its target has no dead-letter queue: a fact that the log refuses is lost to it, and nobody is told", "give the target a DeadLetterConfig with "+f.Plan.AuditDead)}
	}
	return nil
}

// letters finds dead letters: somebody is to look at them.
func letters(f Facts) []Finding {
	var all []Finding
	for _, p := range f.Plan.DeadLetters() {
		if dead := f.Queues[p.Dead]; dead != nil && dead.Messages > 0 {
			all = append(all, warning("dead-letters", "queue/"+p.Dead, fmt.Sprintf("it holds %d dead letters of the %s: what they asked for or told was not dealt with", dead.Messages, p.Service),
				fmt.Sprintf("joist dead list --cluster %s --queue %s, and then joist replay", f.Plan.Cluster, p.Service)))
		}
	}
	return all
}

// redrives finds queues whose dead letters go nowhere, or elsewhere.
func redrives(f Facts) []Finding {
	return each(f, func(p topology.Queue, q *Queue) []Finding {
		dead := f.Queues[p.Dead]
		fix := fmt.Sprintf("set the queue's RedrivePolicy to {\"deadLetterTargetArn\":\"<ARN of %s>\",\"maxReceiveCount\":%d}, or %s", p.Dead, p.MaxReceives, deploy)
		switch {
		case q.DeadARN == "":
			return []Finding{problem("redrive-missing", "queue/"+q.Name, "it has no redrive policy: a message that ends its reader comes back until it expires, and nobody is told", fix)}
		case dead != nil && q.DeadARN != dead.ARN:
			return []Finding{problem("redrive-elsewhere", "queue/"+q.Name, "its dead letters go to "+q.DeadARN+", where neither the alarms nor joist dead look", fix)}
		case q.MaxReceives < p.MaxReceives:
			return []Finding{warning("redrive-soon", "queue/"+q.Name,
				fmt.Sprintf("SQS parks a message after %d receives, and the host tries up to %d while AWS is out: an outage fills the dead-letter queue", q.MaxReceives, p.MaxReceives), fix)}
		}
		return nil
	})
}

// times finds visibilities and retentions that are too short.
func times(f Facts) []Finding {
	return each(f, func(p topology.Queue, q *Queue) []Finding {
		var all []Finding
		if fn := f.Functions[p.Service]; fn != nil && q.Visibility < timesTimeout*fn.Timeout {
			all = append(all, problem("visibility-short", "queue/"+q.Name,
				fmt.Sprintf("its visibility timeout is %s, less than %d times the %s of the function %s, which reads it: messages are handled twice at once, and parked too soon", q.Visibility, timesTimeout, fn.Timeout, fn.Name),
				fmt.Sprintf("set VisibilityTimeout to %d", int((timesTimeout*fn.Timeout).Seconds()))))
		}
		if q.Retention < retentionMin {
			all = append(all, problem("retention-short", "queue/"+q.Name, fmt.Sprintf("it keeps messages for %s: they are gone before a reader that restarts can see them", q.Retention),
				"set MessageRetentionPeriod to 300 or more"))
		}
		return all
	})
}

// sample is an event that a queue must get.
type sample struct{ bus, source, detailType, detail string }

// samples are what each queue that EventBridge feeds must get.
func samples(p topology.Plan, service string) []sample {
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
			if spec := &event.Specs[i]; spec.Fact() && slices.Contains(spec.Consumers, service) {
				all = append(all, fact(p, spec, spec))
			}
		}
		return all
	}
	return nil
}

// fact is an entry on the bus: IAM decides by the source and the detail-type of outer, and
// the detail claims those of inner.
func fact(p topology.Plan, outer, inner *event.Spec) sample {
	detail := fmt.Sprintf(`{"cluster":%q,"source":%q,"type":%q}`, p.Cluster, "joist/"+inner.Producers[0], inner.Type)
	return sample{p.Bus, "joist/" + outer.Producers[0], string(outer.Type), detail}
}

// bound reports whether a rule refuses an entry whose detail claims another type or
// source than the entry.
func bound(p topology.Plan, r Rule) bool {
	for i := range event.Specs {
		for j := range event.Specs {
			outer, inner := &event.Specs[i], &event.Specs[j]
			if i != j && outer.Fact() && inner.Fact() && fact(p, outer, inner).brings([]Rule{r}) {
				return false
			}
		}
	}
	return true
}

// brings reports whether one of the rules brings the event to the queue, whatever the
// rule is called: those of Karpenter's stack have other names than ours.
func (s sample) brings(rules []Rule) bool {
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

// deliveries finds events that no rule brings to their queue (A046–A050, B184).
func deliveries(f Facts) []Finding {
	return each(f, func(p topology.Queue, q *Queue) []Finding {
		rules, looked := f.Rules[q.Name]
		wanted := samples(f.Plan, p.Service)
		if !looked || len(wanted) == 0 {
			return nil
		}
		var lost []string
		for _, s := range wanted {
			if !s.brings(rules) {
				lost = append(lost, s.detailType)
			}
		}
		var all []Finding
		switch {
		case len(lost) == len(wanted):
			all = append(all, problem("rules-missing", "queue/"+q.Name, "no rule of EventBridge has it as its target: the queue will never receive events, and what AWS takes away is silently lost",
				deploy+", which makes the rules; the Terraform of Karpenter's guides has none"))
		case len(lost) > 0:
			all = append(all, problem("rule-missing", "queue/"+q.Name, "no enabled rule of EventBridge brings it: "+strings.Join(lost, ", "), deploy+", or enable the rule"))
		}
		for _, r := range rules {
			if r.DeadARN == "" {
				all = append(all, warning("rule-no-dead", "rule/"+r.Name, "its target has no dead-letter queue: an event that the queue refuses is lost after a day of attempts",
					"give the target a DeadLetterConfig with "+p.Dead))
			}
			if r.Bus == f.Plan.Bus && !bound(f.Plan, r) {
				all = append(all, problem("rule-unbound", "rule/"+r.Name, "its pattern does not compare the entry's type and source with those inside the detail: a service that may send one fact can send all of them", deploy))
			}
			if r.Bus == f.Plan.Bus && r.InputPath != "$.detail" {
				all = append(all, problem("rule-input", "rule/"+r.Name, "its target gets the whole event and not $.detail: the service cannot read it, and parks it", "set the target's InputPath to $.detail"))
			}
		}
		return all
	})
}

// policies finds queues that refuse EventBridge (A045, A050).
func policies(f Facts) []Finding {
	return each(f, func(p topology.Queue, q *Queue) []Finding {
		if !slices.Contains(p.Senders, topology.EventBridge) {
			return nil
		}
		allowed, err := allows(q.Policy, "events.amazonaws.com", "sqs:SendMessage")
		fix := "let events.amazonaws.com send to it (sqs:SendMessage, with a condition on aws:SourceArn), or " + deploy
		switch {
		case err != nil:
			return []Finding{problem("policy-unreadable", "queue/"+q.Name, "its policy cannot be read: "+err.Error(), fix)}
		case !allowed:
			return []Finding{problem("policy-missing", "queue/"+q.Name, "its policy does not let EventBridge send to it: the queue will never receive events", fix)}
		}
		return nil
	})
}
