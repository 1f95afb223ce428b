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

// readQueues starts the reads of the queues, their rules and their functions.
func (g *collector) readQueues(ctx context.Context) {
	places := queues.QueueFinder{Config: g.config, SQS: sqs.NewFromConfig(g.config)}
	rules, functions := eventbridge.NewFromConfig(g.config), lambda.NewFromConfig(g.config)
	for _, q := range g.Plan.DeadLetters() {
		g.calls.Go(func() { _ = g.readQueue(ctx, places, topology.Queue{Name: q.Dead}, rules) })
	}
	for _, q := range g.Plan.Queues {
		g.calls.Go(func() {
			if q.Service == "catalog" {
				defer close(g.catalogSeen)
			}
			if found := g.readQueue(ctx, places, q, rules); found != nil && slices.Contains(topology.ExternalServices, q.Service) {
				g.readFunction(ctx, functions, q, found.ARN)
			}
		})
	}
	for _, r := range g.Plan.Rules {
		if r.Service == "" {
			g.startCall("the rule "+r.Name, "events:DescribeRule and events:ListTargetsByRule", func() error { return g.readAuditRule(ctx, rules, r) })
		}
	}
}

// readAuditRule reads the rule that writes the audit log, which is its only target.
func (g *collector) readAuditRule(ctx context.Context, client *eventbridge.Client, r topology.Rule) error {
	rule, err := g.readRule(ctx, client, r.Bus, r.Name, func(string) bool { return true })
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

// recordRules records the rules of a target.
func (g *collector) recordRules(target string, list []doctor.Rule) {
	g.setFact(func(f *doctor.Facts) {
		if f.Rules == nil {
			f.Rules = map[string][]doctor.Rule{}
		}
		f.Rules[target] = list
	})
}

// readQueue reads a queue, and then the rules that have it as a target. It returns nil if the
// queue does not exist or cannot be read.
func (g *collector) readQueue(ctx context.Context, places queues.QueueFinder, q topology.Queue, rules *eventbridge.Client) *doctor.Queue {
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
			g.startCall("the rules with the queue "+q.Name+" as their target", "events:ListRuleNamesByTarget, events:DescribeRule and events:ListTargetsByRule", func() error {
				return g.readRules(ctx, rules, r.Bus, *out)
			})
			break // Only rules of one bus have the queue as a target.
		}
	}
	return out
}

// readAttributes converts the attributes of a queue.
func readAttributes(p queues.FoundQueue) *doctor.Queue {
	seconds := func(name string) time.Duration {
		n, _ := strconv.Atoi(p.Attributes[name])
		return time.Duration(n) * time.Second
	}
	out := &doctor.Queue{
		Name: p.Name, ARN: p.ARN(), Messages: p.MessageCount(), Visibility: seconds("VisibilityTimeout"), Retention: seconds("MessageRetentionPeriod"), Policy: p.Attributes["Policy"],
	}
	var redrive struct {
		DeadLetterTargetARN string      `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.Number `json:"maxReceiveCount"`
	}
	// An invalid redrive policy counts as none.
	if json.Unmarshal([]byte(p.Attributes["RedrivePolicy"]), &redrive) == nil {
		out.DeadARN = redrive.DeadLetterTargetARN
		out.MaxReceives, _ = strconv.Atoi(redrive.MaxReceiveCount.String())
	}
	return out
}

// readRules reads the rules of a bus that have the queue as a target.
func (g *collector) readRules(ctx context.Context, client *eventbridge.Client, bus string, q doctor.Queue) error {
	named, err := client.ListRuleNamesByTarget(ctx, &eventbridge.ListRuleNamesByTargetInput{TargetArn: &q.ARN, EventBusName: &bus})
	if err != nil && !isMissing(err) {
		return err
	}
	list := []doctor.Rule{}
	if err == nil {
		for _, name := range named.RuleNames {
			rule, err := g.readRule(ctx, client, bus, name, func(target string) bool { return target == q.ARN })
			if err != nil {
				return err
			}
			list = append(list, rule)
		}
	}
	g.recordRules(q.Name, list)
	return nil
}

// readRule reads a rule and its matching target.
func (g *collector) readRule(ctx context.Context, client *eventbridge.Client, bus, name string, isTarget func(arn string) bool) (doctor.Rule, error) {
	described, err := client.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &name, EventBusName: &bus})
	if err != nil {
		return doctor.Rule{}, err
	}
	targets, err := client.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &name, EventBusName: &bus})
	if err != nil {
		return doctor.Rule{}, err
	}
	out := doctor.Rule{Name: name, Bus: bus, Pattern: aws.ToString(described.EventPattern), Enabled: described.State != bridge.RuleStateDisabled}
	for _, t := range targets.Targets {
		if isTarget(aws.ToString(t.Arn)) {
			out.InputPath = aws.ToString(t.InputPath)
			if t.DeadLetterConfig != nil {
				out.DeadARN = aws.ToString(t.DeadLetterConfig.Arn)
			}
		}
	}
	return out, nil
}
