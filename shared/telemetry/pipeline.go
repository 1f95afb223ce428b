package telemetry

var (
	labelService = Label{Name: "service", Help: "the service that handled it", Max: 8}
	labelType    = Label{Name: "type", Help: "the type of the message, or none for one that could not be read", Max: 40}
	labelVerdict = Label{Name: "verdict", Help: "what became of the message: delete, hide, park or keep", Max: 4}
	labelKind    = Label{Name: "kind", Help: "the kind of the error", Max: 16}
	labelStrange = Label{Name: "unknown", Help: "queue or receipt: what of the record is not known", Max: 2}
	labelBucket  = Label{Name: "bucket", Help: "EC2's token bucket", Max: 6}
	labelResult  = Label{Name: "result", Help: "ok, or the kind of the error", Max: 17}
)

// seconds suit both an answer in milliseconds and a backlog of an hour.
var seconds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}

// The metrics of the pipeline: what every message and every look count.
var (
	Handled = Metric{
		Name: "joist_events_handled_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages handled, by what became of them.",
		Labels: []Label{labelService, labelType, labelVerdict}, Services: everyone,
		Panel: "Verdicts", By: []string{"service", "verdict"}, CloudWatch: []string{ByCluster, "service", "verdict"},
	}
	Age = Metric{
		Name: "joist_event_age_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long messages had waited in their queue when their handling began.",
		Labels: []Label{labelService, labelType}, Services: everyone,
		Panel: "Wait in the queue", By: []string{"service"},
	}
	Took = Metric{
		Name: "joist_event_handling_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long handlers took.",
		Labels: []Label{labelService, labelType}, Services: everyone,
		Panel: "Handling", By: []string{"service"},
	}
	DeadLetters = Metric{
		Name: "joist_dead_letters_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages parked in a dead-letter queue, by the kind of the error.",
		Labels: []Label{labelService, labelKind}, Services: everyone,
		Panel: "Dead letters", By: []string{"service", "kind"}, CloudWatch: []string{ByCluster, "service"},
	}
	Refused = Metric{
		Name: "joist_events_refused_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages whose handling ended in an error, by its kind; foreign and stale ones are here too.",
		Labels: []Label{labelService, labelKind}, Services: everyone,
		Panel: "Errors by kind", By: []string{"service", "kind"}, CloudWatch: []string{ByCluster, "kind"},
	}
	Skewed = Metric{
		Name: "joist_events_skewed_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages from a sender whose clock is more than a minute ahead of the queue's.",
		Labels: []Label{labelService, labelType}, Services: everyone,
		Panel: "Clocks and verdicts that failed", By: []string{"service"}, CloudWatch: []string{ByCluster},
	}
	Undone = Metric{
		Name: "joist_verdicts_failed_total", Kind: Counter, Unit: "{message}",
		Help:   "Verdicts that could not be carried out; the message comes again.",
		Labels: []Label{labelService, labelVerdict}, Services: everyone,
		Panel: "Clocks and verdicts that failed", By: []string{"service"}, CloudWatch: []string{ByCluster},
	}
	Strange = Metric{
		Name: "joist_records_refused_total", Kind: Counter, Unit: "{message}",
		Help:   "Records that a function was invoked with and refused unread: of another queue, or with a receipt that SQS does not know.",
		Labels: []Label{labelStrange}, Services: asFunctions,
		Panel: "Clocks and verdicts that failed", By: []string{"unknown"}, CloudWatch: []string{ByCluster},
	}
	Steps = Metric{
		Name: "joist_step_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long a look at the whole cluster took, by how it ended; of a replica that does not lead, only what failed.",
		Labels: []Label{labelService, labelResult}, Services: looking,
		Panel: "Looks at the cluster", By: []string{"service", "result"}, CloudWatch: []string{ByCluster, "service"},
	}
	LooksFailed = Metric{
		Name: "joist_looks_failed_total", Kind: Counter, Unit: "{look}",
		Help:   "Looks at the whole cluster that ended in an error.",
		Labels: []Label{labelService}, Services: looking,
		Panel: "Looks at the cluster", By: []string{"service"}, CloudWatch: []string{ByCluster, "service"},
	}
	EC2Wait = Metric{
		Name: "joist_token_wait_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "How long calls to EC2 waited for their token, by how they ended.",
		Labels: []Label{labelBucket, labelResult}, Services: []string{"launcher"},
		Panel: "Throttles", By: []string{"bucket", "result"}, CloudWatch: []string{ByCluster},
	}
)

var pipeline = []Metric{Handled, Age, Took, DeadLetters, Refused, Skewed, Undone, Strange, Steps, LooksFailed, EC2Wait}
