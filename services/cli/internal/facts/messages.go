package facts

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bridge "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// readQueues looks at queues, and at what feeds and reads them.
func (g *collector) readQueues(ctx context.Context) {
	places := queues.Places{Config: g.config, SQS: sqs.NewFromConfig(g.config)}
	rules, functions := eventbridge.NewFromConfig(g.config), lambda.NewFromConfig(g.config)
	for _, q := range g.Plan.DeadLetters() {
		g.all.Go(func() { _ = g.queue(ctx, places, topology.Queue{Name: q.Dead}, rules) })
	}
	for _, q := range g.Plan.Queues {
		g.all.Go(func() {
			if q.Service == "catalog" {
				defer close(g.catalogSeen)
			}
			if found := g.queue(ctx, places, q, rules); found != nil && slices.Contains(topology.Outside, q.Service) {
				g.function(ctx, functions, q, found.ARN)
			}
		})
	}
	for _, r := range g.Plan.Rules {
		if r.Service == "" {
			g.start("the rule "+r.Name, "events:DescribeRule and events:ListTargetsByRule", func() error { return g.audit(ctx, rules, r) })
		}
	}
}

// audit looks at the rule that writes the audit log, which is its only target.
func (g *collector) audit(ctx context.Context, client *eventbridge.Client, r topology.Rule) error {
	rule, err := g.rule(ctx, client, r.Bus, r.Name, func(string) bool { return true })
	if err != nil && !isMissing(err) {
		return err
	}
	list := []doctor.Rule{}
	if err == nil {
		list = append(list, rule)
	}
	g.recordRules(g.Plan.AuditLogGroup, list)
	return nil
}

// recordRules writes down the rules of a target.
func (g *collector) recordRules(target string, list []doctor.Rule) {
	g.setFact(func(f *doctor.Facts) {
		if f.Rules == nil {
			f.Rules = map[string][]doctor.Rule{}
		}
		f.Rules[target] = list
	})
}

// queue looks at a queue, and then at the rules that bring events to it. It gives nil where
// there is none, or none was seen.
func (g *collector) queue(ctx context.Context, places queues.Places, q topology.Queue, rules *eventbridge.Client) *doctor.Queue {
	found, err := places.Find(ctx, q.Name)
	if err != nil && !fault.Is(err, fault.Missing) {
		g.recordSkipped("the queue "+q.Name, err, "sqs:GetQueueUrl and sqs:GetQueueAttributes")
		return nil
	}
	var out *doctor.Queue
	if err == nil {
		out = readAttributes(found)
	}
	g.setFact(func(f *doctor.Facts) {
		if f.Queues == nil {
			f.Queues = map[string]*doctor.Queue{}
		}
		f.Queues[q.Name] = out
	})
	if out == nil {
		return nil
	}
	for _, r := range g.Plan.Rules {
		if r.Service == q.Service && r.Service != "" {
			g.start("the rules with the queue "+q.Name+" as their target", "events:ListRuleNamesByTarget, events:DescribeRule and events:ListTargetsByRule", func() error {
				return g.rules(ctx, rules, r.Bus, *out)
			})
			break // A queue is fed by one bus.
		}
	}
	return out
}

// readAttributes reads the attributes of a queue.
func readAttributes(p queues.Place) *doctor.Queue {
	seconds := func(name string) time.Duration {
		n, _ := strconv.Atoi(p.Attributes[name])
		return time.Duration(n) * time.Second
	}
	out := &doctor.Queue{
		Name: p.Name, ARN: p.ARN(), Messages: p.Messages(), Visibility: seconds("VisibilityTimeout"), Retention: seconds("MessageRetentionPeriod"), Policy: p.Attributes["Policy"],
	}
	var redrive struct {
		DeadLetterTargetARN string      `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.Number `json:"maxReceiveCount"`
	}
	// One that cannot be read is as good as none.
	if json.Unmarshal([]byte(p.Attributes["RedrivePolicy"]), &redrive) == nil {
		out.DeadARN = redrive.DeadLetterTargetARN
		out.MaxReceives, _ = strconv.Atoi(redrive.MaxReceiveCount.String())
	}
	return out
}

// rules looks at the rules of a bus that have the queue as a target.
func (g *collector) rules(ctx context.Context, client *eventbridge.Client, bus string, q doctor.Queue) error {
	named, err := client.ListRuleNamesByTarget(ctx, &eventbridge.ListRuleNamesByTargetInput{TargetArn: &q.ARN, EventBusName: &bus})
	if err != nil && !isMissing(err) {
		return err
	}
	list := []doctor.Rule{}
	if err == nil {
		for _, name := range named.RuleNames {
			rule, err := g.rule(ctx, client, bus, name, func(target string) bool { return target == q.ARN })
			if err != nil {
				return err
			}
			list = append(list, rule)
		}
	}
	g.recordRules(q.Name, list)
	return nil
}

// rule looks at a rule, and at its target among those that are meant.
func (g *collector) rule(ctx context.Context, client *eventbridge.Client, bus, name string, meant func(arn string) bool) (doctor.Rule, error) {
	told, err := client.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &name, EventBusName: &bus})
	if err != nil {
		return doctor.Rule{}, err
	}
	targets, err := client.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &name, EventBusName: &bus})
	if err != nil {
		return doctor.Rule{}, err
	}
	out := doctor.Rule{Name: name, Bus: bus, Pattern: aws.ToString(told.EventPattern), Enabled: told.State != bridge.RuleStateDisabled}
	for _, t := range targets.Targets {
		if meant(aws.ToString(t.Arn)) {
			out.InputPath = aws.ToString(t.InputPath)
			if t.DeadLetterConfig != nil {
				out.DeadARN = aws.ToString(t.DeadLetterConfig.Arn)
			}
		}
	}
	return out, nil
}
