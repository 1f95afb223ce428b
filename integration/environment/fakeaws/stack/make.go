package stack

import (
	"cmp"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Make creates the stack's queues, buses and rules in a broker. A rule on a bus outside
// the stack matches AWS's own events.
func (s Stack) Make(b *memqueue.Broker, place template.Place) error {
	for _, q := range s.Queues {
		o := memqueue.QueueOptions{Visibility: seconds(cmp.Or(q.VisibilityTimeout, 30)), Retention: seconds(q.MessageRetentionPeriod)}
		if r := q.RedrivePolicy; r != nil {
			o.DeadLetter, o.MaxReceives = template.Name(r.DeadLetterTargetArn), r.MaxReceiveCount
		}
		b.Queue(q.QueueName, o)
	}
	for _, name := range s.Buses {
		b.Bus(name).SetAccount(place.Account, place.Region)
	}
	for _, r := range s.Rules {
		if err := s.rule(b, r); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return nil
}

func (s Stack) rule(b *memqueue.Broker, r Rule) error {
	bus, ok := b.FindBus(template.Name(cmp.Or(r.EventBusName, "default")))
	if !ok {
		return fmt.Errorf("no bus %s in the stack", r.EventBusName)
	}
	if r.State == "DISABLED" {
		return nil
	}
	out := memqueue.Rule{Name: r.Name, Pattern: string(r.EventPattern)}
	for _, t := range r.Targets {
		if template.Service(t.Arn) != "sqs" {
			continue // a log group, which the tests do not read
		}
		if _, ok := b.FindQueue(template.Name(t.Arn)); !ok {
			return fmt.Errorf("its target %s is not a queue of the stack", t.Arn)
		}
		target := memqueue.Target{ID: t.ID, Queue: template.Name(t.Arn), InputPath: t.InputPath}
		if dead := t.DeadLetterConfig.Arn; dead != "" {
			if _, ok := b.FindQueue(template.Name(dead)); !ok {
				return fmt.Errorf("the DLQ of its target, %s, is not a queue of the stack", dead)
			}
			target.DeadLetter = template.Name(dead)
		}
		out.Targets = append(out.Targets, target)
	}
	return bus.PutRule(out)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
