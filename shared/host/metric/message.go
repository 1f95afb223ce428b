package metric

import "slices"

var (
	labelService     = Label{Name: "service", Help: "the service", Max: 8}
	labelType        = Label{Name: "type", Help: "the message type, or none if it could not be decoded", Max: 40}
	labelDisposition = Label{Name: "disposition", Help: "delete (processed), retry (retried later), dlq (moved to the DLQ) or keep (not processed, delivered again by SQS)", Max: 4}
	labelKind        = Label{Name: "kind", Help: "the error kind", Max: 16}
	labelUnknownPart = Label{Name: "unknown", Help: "queue or receipt: the part of the record that is not known", Max: 2}
	labelBucket      = Label{Name: "bucket", Help: "EC2's token bucket", Max: 6}
	labelVersion     = Label{Name: "version", Help: "the release, or development", Max: 2}
	labelCommit      = Label{Name: "commit", Help: "the commit of the source, or none if the build does not record it", Max: 2}
	labelGoVersion   = Label{Name: "go_version", Help: "the version of Go", Max: 2}
	labelResult      = Label{Name: "result", Help: "ok, or the error kind", Max: 17}
)

// seconds are buckets for both latencies of milliseconds and a backlog of an hour.
var seconds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}

// Metrics of every message and every reconcile.
var (
	MessagesHandled = Metric{
		Name: "joist_events_handled_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages handled, by outcome.",
		Labels: []Label{labelService, labelType, labelDisposition}, Services: consumers,
		Panel: "Message outcomes", By: []string{"service", "disposition"}, CloudWatch: []string{ByCluster, "service", "disposition"},
	}
	QueueAge = Metric{
		Name: "joist_event_age_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "Age of messages in their queue when their processing began.",
		Labels: []Label{labelService, labelType}, Services: consumers,
		Panel: "Queue latency", By: []string{"service"},
	}
	HandlingTime = Metric{
		Name: "joist_event_handling_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "Time to process a message.",
		Labels: []Label{labelService, labelType}, Services: consumers,
		Panel: "Handling time", By: []string{"service"},
	}
	DLQMessages = Metric{
		Name: "joist_dlq_messages_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages that a service moved to its DLQ, by error kind.",
		Labels: []Label{labelService, labelKind}, Services: consumers,
		Panel: "DLQ messages", By: []string{"service", "kind"}, CloudWatch: []string{ByCluster, "service"},
	}
	HandlingErrors = Metric{
		Name: "joist_events_refused_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages whose processing failed, by error kind, including foreign and stale messages.",
		Labels: []Label{labelService, labelKind}, Services: consumers,
		Panel: "Errors by kind", By: []string{"service", "kind"}, CloudWatch: []string{ByCluster, "kind"},
	}
	RetriesOverdue = Metric{
		Name: "joist_retries_overdue_total", Kind: Counter, Unit: "{attempt}",
		Help:   "Attempts at messages that failed again two minutes after they were sent, or that found the message expired (stale), from the third receive on, by error kind.",
		Labels: []Label{labelService, labelKind}, Services: consumers,
		Panel: "Retries overdue", By: []string{"service", "kind"}, CloudWatch: []string{ByCluster, "service"},
	}
	ClockSkews = Metric{
		Name: "joist_events_skewed_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages from a sender whose clock is more than a minute ahead of SQS.",
		Labels: []Label{labelService, labelType}, Services: consumers,
		Panel: "Clock skew and failed acknowledgements", By: []string{"service"}, CloudWatch: []string{ByCluster},
	}
	DispositionFailures = Metric{
		Name: "joist_dispositions_failed_total", Kind: Counter, Unit: "{message}",
		Help:   "Processed messages that could not be deleted, delayed or moved to the DLQ, and are delivered again.",
		Labels: []Label{labelService, labelDisposition}, Services: consumers,
		Panel: "Clock skew and failed acknowledgements", By: []string{"service"}, CloudWatch: []string{ByCluster},
	}
	RecordsRefused = Metric{
		Name: "joist_records_refused_total", Kind: Counter, Unit: "{message}",
		Help:   "Records that a function refused without reading them: from another queue, or with a receipt that SQS does not know.",
		Labels: []Label{labelUnknownPart}, Services: functionServices,
		Panel: "Clock skew and failed acknowledgements", By: []string{"unknown"}, CloudWatch: []string{ByCluster},
	}
	BuildInfo = Metric{
		Name: "joist_build_info", Kind: Gauge, Unit: "{process}",
		Help:   "1 for each process, with its version. Two versions of a service meet during an upgrade.",
		Labels: []Label{labelService, labelVersion, labelCommit, labelGoVersion}, Services: slices.Concat(consumers, []string{"watcher"}),
		Panel: "Versions", By: []string{"service", "version"},
	}
	ReconcileTime = Metric{
		Name: "joist_reconcile_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "Time to reconcile the whole cluster, by result. A standby replica counts only failures.",
		Labels: []Label{labelService, labelResult}, Services: reconcilingServices,
		Panel: "Reconcile time", By: []string{"service", "result"}, CloudWatch: []string{ByCluster, "service"},
	}
	ReconcileFailures = Metric{
		Name: "joist_reconciles_failed_total", Kind: Counter, Unit: "{reconcile}",
		Help:   "Reconciles of the whole cluster that failed.",
		Labels: []Label{labelService}, Services: reconcilingServices,
		Panel: "Reconcile time", By: []string{"service"}, CloudWatch: []string{ByCluster, "service"},
	}
	EC2RateLimitWait = Metric{
		Name: "joist_token_wait_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "Time that EC2 calls waited in the rate limiter, by result.",
		Labels: []Label{labelBucket, labelResult}, Services: []string{"launcher"},
		Panel: "Throttling", By: []string{"bucket", "result"}, CloudWatch: []string{ByCluster},
	}
)

var messageMetrics = []Metric{MessagesHandled, QueueAge, HandlingTime, DLQMessages, HandlingErrors, RetriesOverdue, ClockSkews, DispositionFailures, RecordsRefused, BuildInfo, ReconcileTime, ReconcileFailures, EC2RateLimitWait}
