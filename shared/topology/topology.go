package topology

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// The senders that are no service of ours.
const (
	// Scheduler is EventBridge Scheduler.
	Scheduler = "scheduler"
	// EventBridge is the rules of a bus.
	EventBridge = "eventbridge"
)

// Audit is what the audit log is called among those that have dead letters.
const Audit = "audit"

// DefaultBus is where AWS publishes its own events.
const DefaultBus = "default"

// Services that run outside of the cluster, as functions or as pollers, and those
// that run inside of it.
var (
	ExternalServices = []string{"planner", "disruption", "interruption", "catalog", "launcher"}
	ClusterServices  = []string{"watcher", "lifecycle"}
)

// Plan is what a cluster has.
type Plan struct {
	Cluster string
	// Prefix begins every name: the cluster's, unless another was given.
	Prefix string
	// Functions begins the names of the functions, and of their roles, where other clusters
	// have them, too; empty where they are the cluster's own.
	Functions string
	// Bus carries the facts; Archive keeps and AuditLogGroup tells them.
	Bus, Archive, AuditLogGroup string
	// AuditDead is the dead-letter queue of facts that the audit log did not take.
	AuditDead string
	// ScheduleGroup has the ticks.
	ScheduleGroup string
	Queues        []Queue
	Rules         []Rule
	Ticks         []Tick
}

// Queue is one service's, with its dead-letter queue.
type Queue struct {
	// Service reads it.
	Service    string
	Name, Dead string
	// Existing says that the queue was there before and is not ours to make.
	Existing bool
	// Visibility is six times Timeout, as AWS asks of a function's queue
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html). A
	// handler shortens it as soon as it begins.
	Visibility, Timeout time.Duration
	// Retention is no shorter than the life of anything that travels by the queue.
	Retention, DeadRetention time.Duration
	// MaxReceives is how often a message comes before SQS parks it. The host parks
	// poison at once; this is for what ends every process that reads it.
	MaxReceives int
	// Senders are the services that may send to it, Scheduler, or EventBridge.
	Senders []string
}

// Rule is one rule of EventBridge.
type Rule struct {
	// ID is what templates call it: the name that Karpenter's has, if any.
	ID   string
	Name string
	// Bus is the name of the bus that has it.
	Bus string
	// Pattern is EventBridge's own language of patterns.
	Pattern string
	// Types are the facts of ours that the rule selects; none for a rule of AWS's events.
	Types []event.Type `json:",omitempty"`
	// Service is whose queue is the target, or none for the audit log.
	Service string
	// InputPath selects what the target is sent; all of the event when empty.
	InputPath string
}

// Tick is one schedule.
type Tick struct {
	Name    string
	Service string
	Want    string
	Every   time.Duration
	// Input is what the scheduler sends. It fills in its own attributes
	// (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html).
	Input string
}

const (
	// maxReceives is the contract's (architecture, verdicts): the host retries within it.
	maxReceives = 100
	// retention is the longest life of a message (instance.gone lives an hour), and the
	// time of a person's sleep besides: expired messages are told of when they are read.
	retention = 24 * time.Hour
	// deadRetention is the longest that SQS has.
	deadRetention = 14 * 24 * time.Hour
	// visibilityFactor is AWS's advice for queues that functions read.
	visibilityFactor = 6
	tickInterval     = time.Minute
)

// timeouts are what one message may take, and so a function's timeout: no shorter than
// the deadline of its handler, with time to say how it went.
var timeouts = map[string]time.Duration{
	"planner":    150 * time.Second,
	"disruption": 150 * time.Second,
	// A spot instance has 120 s from its warning. An invocation that Lambda throttles
	// leaves the messages hidden for the queue's visibility timeout, six times this: the
	// warning must outlive that. One batch of the handler ends within five seconds.
	"interruption": 10 * time.Second,
	"catalog":      150 * time.Second,
	// One call to EC2 has four minutes to answer.
	"launcher":  285 * time.Second,
	"lifecycle": 75 * time.Second,
}

// NewPlan plans what a cluster has. Errors are fault.Invalid, name what is wrong and say
// how to mend it.
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

// noticeRuleNames are short names of event.NoticeRules, in their order: a rule's name has 64
// characters.
var noticeRuleNames = []string{"health", "spot", "rebalance", "state", "reservation"}

func (c Cluster) newQueue(service string) Queue {
	name := c.namePrefix() + "-joist-" + service
	q := Queue{
		Service: service, Name: name, Dead: name + "-dead",
		Timeout: timeouts[service], Visibility: visibilityFactor * timeouts[service],
		Retention: retention, DeadRetention: deadRetention, MaxReceives: maxReceives, Senders: sendersOf(service),
	}
	if service == "interruption" {
		// Karpenter's name, so that what else knows the queue goes on knowing it.
		q.Name = c.Name
		if c.InterruptionQueue != "" {
			q.Name, q.Existing = c.InterruptionQueue, true
		}
	}
	return q
}

// sendersOf follow from the contract: who produces a command sends it, and facts come
// by a rule.
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

// tickInput is the scheduler's template. It can write the time and nothing computed, so the
// id is the wish at that time, and the expiry follows from the type.
func tickInput(cluster, want string) string {
	const at = "<aws.scheduler.scheduled-time>"
	return fmt.Sprintf(`{"specversion":"1.0","id":"tick/%s/%s","source":"scheduler","type":%q,"subject":"tick/%s","time":"%s","cluster":%q,"data":{"want":%q,"due":"%s"}}`,
		want, at, event.TickType, want, at, cluster, want, at)
}

// DeadLetters are all that have a dead-letter queue: the services' queues, to which rules
// and schedules send as well, and as the last the audit log, which has no queue beside
// that: a rule writes to it.
func (p Plan) DeadLetters() []Queue {
	return append(slices.Clone(p.Queues), Queue{Service: Audit, Dead: p.AuditDead, DeadRetention: deadRetention})
}

// Queue finds a service's queue. The watcher has none.
func (p Plan) Queue(service string) (Queue, bool) {
	i := slices.IndexFunc(p.Queues, func(q Queue) bool { return q.Service == service })
	if i < 0 {
		return Queue{}, false
	}
	return p.Queues[i], true
}
