package telemetry

// Kind is what a metric does.
type Kind string

// The kinds of metrics.
const (
	// Counter only grows.
	Counter Kind = "counter"
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
}

var (
	labelService = Label{"service", "the service that handled it", 8}
	labelType    = Label{"type", "the type of the message, or none for one that could not be read", 40}
	labelVerdict = Label{"verdict", "what became of the message: delete, hide, park or keep", 4}
	labelKind    = Label{"kind", "the kind of the error", 16}
	labelLimit   = Label{"kind", "throttled for too many within a minute, denied for too many in one intent", 2}
	labelCode    = Label{"code", "EC2's error code, or other", 20}
	labelSold    = Label{"capacity_type", "spot, on-demand or reserved", 3}
	labelThing   = Label{"thing", "instance or profile", 2}
	labelBucket  = Label{"bucket", "EC2's token bucket", 6}
	labelResult  = Label{"result", "ok, or the kind of the error", 17}
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

// Catalogue is all of them.
var Catalogue = []Metric{Handled, Age, Took, DeadLetters, Refused, Skewed, Undone, Steps, Stopped, Refusals, Spared, EC2Wait}
