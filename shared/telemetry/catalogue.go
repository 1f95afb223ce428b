package telemetry

// Kind is what a metric does.
type Kind string

// The kinds of metrics.
const (
	// Counter only grows.
	Counter Kind = "counter"
	// Gauge is what it was set to last.
	Gauge Kind = "gauge"
	// Histogram counts values by size.
	Histogram Kind = "histogram"
)

// Metric is one entry of the catalogue. Dashboards and documentation are made
// of it.
type Metric struct {
	// Name is the Prometheus name, unit and all.
	Name string
	Kind Kind
	// Unit is in UCUM: "s", "{message}".
	Unit   string
	Help   string
	Labels []Label
	// Buckets are the upper bounds of a histogram, in Unit.
	Buckets []float64
}

// Label is one dimension of a metric.
type Label struct {
	Name, Help string
	// Max is how many values there can be.
	Max int
	// Bare leaves a value empty that is, as Karpenter does; elsewhere it is none.
	Bare bool
}

var (
	labelService  = Label{Name: "service", Help: "the service that handled it", Max: 8}
	labelType     = Label{Name: "type", Help: "the type of the message, or none for one that could not be read", Max: 40}
	labelVerdict  = Label{Name: "verdict", Help: "what became of the message: delete, hide, park or keep", Max: 4}
	labelKind     = Label{Name: "kind", Help: "the kind of the error", Max: 16}
	labelLimit    = Label{Name: "kind", Help: "throttled for too many within a minute, denied for too many in one intent", Max: 2}
	labelCode     = Label{Name: "code", Help: "EC2's error code, or other", Max: 20}
	labelSold     = Label{Name: "capacity_type", Help: "spot, on-demand or reserved", Max: 3}
	labelThing    = Label{Name: "thing", Help: "instance or profile", Max: 2}
	labelBucket   = Label{Name: "bucket", Help: "EC2's token bucket", Max: 6}
	labelDecision = Label{Name: "decision", Help: "replace or delete", Max: 2}
	labelReason   = Label{Name: "reason", Help: "empty, drifted or underutilized", Max: 3}
	labelMethod   = Label{Name: "consolidation_type", Help: "empty, multi or single, and nothing for drift", Max: 4, Bare: true}
	labelResult   = Label{Name: "result", Help: "ok, or the kind of the error", Max: 17}
)

// seconds suit both an answer in milliseconds and a backlog of an hour.
var seconds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}

// The metrics.
var (
	Handled = Metric{
		Name: "joist_events_handled_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages handled, by what became of them.",
		Labels: []Label{labelService, labelType, labelVerdict},
	}
	Age = Metric{
		Name: "joist_event_age_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long messages had waited in their queue when their handling began.",
		Labels: []Label{labelService, labelType},
	}
	Took = Metric{
		Name: "joist_event_handling_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long handlers took.",
		Labels: []Label{labelService, labelType},
	}
	DeadLetters = Metric{
		Name: "joist_dead_letters_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages parked in a dead-letter queue, by the kind of the error.",
		Labels: []Label{labelService, labelKind},
	}
	Refused = Metric{
		Name: "joist_events_refused_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages whose handling ended in an error, by its kind; foreign and stale ones are here too.",
		Labels: []Label{labelService, labelKind},
	}
	Skewed = Metric{
		Name: "joist_events_skewed_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages from a sender whose clock is more than a minute ahead of the queue's.",
		Labels: []Label{labelService, labelType},
	}
	Undone = Metric{
		Name: "joist_verdicts_failed_total", Kind: Counter, Unit: "{message}",
		Help:   "Verdicts that could not be carried out; the message comes again.",
		Labels: []Label{labelService, labelVerdict},
	}
	Steps = Metric{
		Name: "joist_step_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long a look at the whole cluster took, by how it ended.",
		Labels: []Label{labelService, labelResult},
	}
	Stopped = Metric{
		Name: "joist_launches_stopped_total", Kind: Counter, Unit: "{message}",
		Help:   "Requests for launches that the breaker held back, each time that they came.",
		Labels: []Label{labelLimit},
	}
	Refusals = Metric{
		Name: "joist_launch_refusals_total", Kind: Counter, Unit: "{refusal}",
		Help:   "Reasons that EC2 gave for starting fewer instances than it was asked for.",
		Labels: []Label{labelCode, labelSold},
	}
	Spared = Metric{
		Name: "joist_foreign_spared_total", Kind: Counter, Unit: "{message}",
		Help:   "Requests to touch something that does not carry the cluster's tags or stands for another claim; it was left alone.",
		Labels: []Label{labelThing},
	}
	EC2Wait = Metric{
		Name: "joist_token_wait_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long calls to EC2 waited for their token, by how they ended.",
		Labels: []Label{labelBucket, labelResult},
	}
)

// The metrics of disruption that Karpenter has too, under its names, so that its
// dashboards and alarms go on working (B165). Which service counts what follows from
// who decides: disruption finds, and lifecycle lets act.
var (
	Decisions = Metric{
		Name: "karpenter_voluntary_disruption_decisions_total", Kind: Counter, Unit: "{decision}",
		Help:   "Disruptions that began to act.",
		Labels: []Label{labelDecision, labelReason, labelMethod},
	}
	Eligible = Metric{
		Name: "karpenter_voluntary_disruption_eligible_nodes", Kind: Gauge, Unit: "{node}",
		Help:   "Nodes against which nothing of their own stands, in the last snapshot that was looked at.",
		Labels: []Label{labelReason},
	}
	Timeouts = Metric{
		Name: "karpenter_voluntary_disruption_consolidation_timeouts_total", Kind: Counter, Unit: "{look}",
		Help:   "Looks at a snapshot in which the work that one simulation may take did not suffice for all pods.",
		Labels: []Label{labelMethod},
	}
	Invalid = Metric{
		Name: "karpenter_voluntary_disruption_failed_validations_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes whose disruption was proposed and taken back before it acted.",
		Labels: []Label{labelMethod},
	}
	QueueFailures = Metric{
		Name: "karpenter_voluntary_disruption_queue_failures_total", Kind: Counter, Unit: "{node}",
		Help:   "Replacements that were not initialized when their disruption was rolled back.",
		Labels: []Label{labelDecision, labelReason, labelMethod},
	}
)

// Catalogue is all of them.
var Catalogue = []Metric{
	Handled, Age, Took, DeadLetters, Refused, Skewed, Undone, Steps, Stopped, Refusals, Spared, EC2Wait,
	Decisions, Eligible, Timeouts, Invalid, QueueFailures,
}
