package topology

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Senders that are not services of Joist.
const (
	// Scheduler is EventBridge Scheduler.
	Scheduler = "scheduler"
	// EventBridge is a rule of a bus.
	EventBridge = "eventbridge"
)

// Audit is the name of the audit log in DeadLetters.
const Audit = "audit"

// DefaultBus is the bus on which AWS publishes its own events.
const DefaultBus = "default"

// Services that run outside the cluster, as functions or as pollers, and services that run inside it.
var (
	ExternalServices = []string{"planner", "disruption", "interruption", "catalog", "launcher"}
	ClusterServices  = []string{"watcher", "lifecycle"}
)

// Plan lists the AWS resources of a cluster.
type Plan struct {
	Cluster string
	// Prefix is the prefix of every name: the cluster's name unless configured.
	Prefix string
	// Functions is the prefix of the names of the functions and their roles if other clusters share them; empty if
	// the cluster has its own.
	Functions string
	// Bus carries the facts. Archive and AuditLogGroup store them.
	Bus, Archive, AuditLogGroup string
	// AuditDead is the DLQ of facts that could not be written to the audit log.
	AuditDead string
	// ScheduleGroup contains the ticks.
	ScheduleGroup string
	Queues        []Queue
	Rules         []Rule
	Ticks         []Tick
}

// Queue is the queue of one service, with its DLQ.
type Queue struct {
	// Service is the consumer.
	Service    string
	Name, Dead string
	// Existing means that the queue already exists and must not be created.
	Existing bool
	// Visibility is six times Timeout, as AWS recommends for a function's queue
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html). The host shortens it when handling
	// begins.
	Visibility, Timeout time.Duration
	// Retention is at least the TTL of every message in the queue.
	Retention, DeadRetention time.Duration
	// MaxReceives is how often a message is received before SQS moves it to the DLQ. The host moves
	// poison at once; this limit is for messages that crash every consumer.
	MaxReceives int
	// Senders are the services that may send to it, Scheduler, or EventBridge.
	Senders []string
}

// Rule is one EventBridge rule.
type Rule struct {
	// ID is the rule's logical id in templates: that of Karpenter's rule, if it has one.
	ID   string
	Name string
	// Bus is the name of the rule's bus.
	Bus string
	// Pattern is an EventBridge event pattern.
	Pattern string
	// Types are the facts that the rule selects; empty for a rule of AWS events.
	Types []event.Type `json:",omitempty"`
	// Service is the service whose queue is the target, or "" for the audit log.
	Service string
	// InputPath selects the part of the event that the target receives; empty means the whole event.
	InputPath string
}

// Tick is one schedule.
type Tick struct {
	Name    string
	Service string
	Want    string
	Every   time.Duration
	// Input is the message that EventBridge Scheduler sends. Scheduler fills in its context attributes
	// (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html).
	Input string
}

const (
	// maxReceives limits all retries of the host.
	maxReceives = 100
	// retention is longer than every TTL (one hour for instance.gone), so that operators have time to react: expired
	// messages are reported when they are received.
	retention = 24 * time.Hour
	// deadRetention is the SQS maximum.
	deadRetention = 14 * 24 * time.Hour
	// visibilityFactor is AWS's recommendation for the queues of functions.
	visibilityFactor = 6
	tickInterval     = time.Minute
)

// timeouts are the maximum handling times of one message, and so the functions' timeouts: at least the handler's
// deadline, plus time to report the result.
var timeouts = map[string]time.Duration{
	"planner":    150 * time.Second,
	"disruption": 150 * time.Second,
	// A spot instance has 120 s from its warning. An invocation that Lambda throttles leaves the messages hidden for
	// the queue's visibility timeout, six times this value, which must be shorter than 120 s. One batch of the
	// handler takes at most five seconds.
	"interruption": 10 * time.Second,
	"catalog":      150 * time.Second,
	// One EC2 call has a timeout of four minutes.
	"launcher":  285 * time.Second,
	"lifecycle": 75 * time.Second,
}

// NewPlan returns the resources of a cluster. Errors are fault.Invalid, name the problem and have a hint.
func NewPlan(c Cluster) (Plan, error) {
	if err := c.validate(); err != nil {
		return Plan{}, err
	}
	prefix := c.namePrefix()
	p := Plan{Cluster: c.Name, Prefix: prefix, Functions: c.Functions, Bus: prefix + "-joist", Archive: prefix + "-joist",
		AuditLogGroup: "/joist/" + prefix + "/facts", AuditDead: prefix + "-joist-audit-dead", ScheduleGroup: prefix + "-joist"}
	for _, service := range append(slices.Clone(ExternalServices), "lifecycle") {
		p.Queues = append(p.Queues, c.newQueue(service))
	}
	for i, rule := range event.NoticeRules {
		p.Rules = append(p.Rules, Rule{ID: rule.Name, Name: prefix + "-joist-" + noticeRuleNames[i], Bus: DefaultBus, Pattern: rule.Pattern, Service: "interruption"})
	}
	p.Rules = append(p.Rules,
		Rule{ID: "InboxRule", Name: prefix + "-joist-inbox", Bus: p.Bus, Pattern: InboxPattern(c.Name), Types: inboxTypes(), Service: "lifecycle", InputPath: "$.detail"},
		Rule{ID: "AuditRule", Name: prefix + "-joist-audit", Bus: p.Bus, Pattern: factPattern(c.Name, allFactTypes()), Types: allFactTypes()})
	for _, t := range []struct{ service, want string }{
		{"catalog", event.WantCatalogue}, {"catalog", event.WantInventory},
		{"interruption", event.WantStatus}, {"launcher", event.WantTemplates},
	} {
		p.Ticks = append(p.Ticks, Tick{Name: prefix + "-joist-" + t.want, Service: t.service, Want: t.want, Every: tickInterval, Input: tickInput(c.Name, t.want)})
	}
	return p, nil
}

// noticeRuleNames are short names of event.NoticeRules, in their order: a rule's name has at most 64 characters.
var noticeRuleNames = []string{"health", "spot", "rebalance", "state", "reservation"}

func (c Cluster) newQueue(service string) Queue {
	name := c.namePrefix() + "-joist-" + service
	q := Queue{
		Service: service, Name: name, Dead: name + "-dead",
		Timeout: timeouts[service], Visibility: visibilityFactor * timeouts[service],
		Retention: retention, DeadRetention: deadRetention, MaxReceives: maxReceives, Senders: sendersOf(service),
	}
	if service == "interruption" {
		// Karpenter's name, so that other users of the queue keep working.
		q.Name = c.Name
		if c.InterruptionQueue != "" {
			q.Name, q.Existing = c.InterruptionQueue, true
		}
	}
	return q
}

// sendersOf derives the senders from event.Specs: the producers of commands, and EventBridge for facts.
func sendersOf(service string) []string {
	var list []string
	for _, spec := range event.Specs {
		if !slices.Contains(spec.Consumers, service) {
			continue
		}
		by := spec.Producers
		if spec.IsFact() {
			by = []string{EventBridge}
		}
		list = append(list, by...)
	}
	if service == "interruption" {
		list = append(list, EventBridge)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// tickInput is EventBridge Scheduler's template. Scheduler inserts only the time, so the id is the tick's Want and
// time, and the expiry follows from the type.
func tickInput(cluster, want string) string {
	const at = "<aws.scheduler.scheduled-time>"
	return fmt.Sprintf(`{"specversion":"1.0","id":"tick/%s/%s","source":"scheduler","type":%q,"subject":"tick/%s","time":"%s","cluster":%q,"data":{"want":%q,"due":"%s"}}`,
		want, at, event.TickType, want, at, cluster, want, at)
}

// DeadLetters returns all DLQs: those of the services' queues, which are also those of rules and
// schedules, and last that of the audit log, which has no other queue because a rule writes to it directly.
func (p Plan) DeadLetters() []Queue {
	return append(slices.Clone(p.Queues), Queue{Service: Audit, Dead: p.AuditDead, DeadRetention: deadRetention})
}

// Queue returns a service's queue. The watcher has none.
func (p Plan) Queue(service string) (Queue, bool) {
	i := slices.IndexFunc(p.Queues, func(q Queue) bool { return q.Service == service })
	if i < 0 {
		return Queue{}, false
	}
	return p.Queues[i], true
}
