package board

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// Panel is one graph of a dashboard.
type Panel struct {
	Title string
	// Help explains how to read it.
	Help string
	// aws adds a metric that SQS or Lambda publishes.
	aws source
}

// source names a metric that SQS or Lambda publishes.
type source string

const (
	none      source = ""
	oldest    source = "oldest"
	waiting   source = "waiting"
	dead      source = "dead"
	failing   source = "failing"
	throttled source = "throttled"
)

// Row is a line of panels, read from left to right.
type Row struct {
	Title, Help string
	Panels      []Panel
}

// Rows lists all panels, in the order in which events pass through the services.
var Rows = []Row{
	{
		Title: "From pods to nodes", Help: "Pending pods are planned, instances are launched, and nodes join.",
		Panels: []Panel{
			{Title: "Pending pods", Help: "Falls to zero soon after each rise. Pods that stay pending cannot be scheduled."},
			{Title: "NodeClaims planned and created", Help: "NodeClaims in plans, and NodeClaims that lifecycle created."},
			{Title: "Planning time", Help: "Time to plan a batch: p50 and p99."},
			{Title: "Instances launched and refused", Help: "Refusals with launches are capacity shortages. Refusals without any launch are a configuration error."},
			{Title: "Nodes joined", Help: "Nodes that registered. About a minute after launches, it shows the same number."},
			{Title: "User data size", Help: "EC2 rejects more than 16,384 bytes."},
			{Title: "Pod startup time", Help: "From the creation of a pod until it is bound, and until it is ready."},
		},
	},
	{
		Title: "From interruption to termination", Help: "AWS announces an interruption, the node is drained, the instance is terminated.",
		Panels: []Panel{
			{Title: "Interruption notices", Help: "Events from AWS by kind. no_op events concern other instances or need no action."},
			{Title: "Interruption handling latency", Help: "From the arrival of an event in the queue until it is processed. A spot instance has two minutes to drain: this time is lost."},
			{Title: "Nodes terminated", Help: "NodeClaims whose deletion began, by reason, and NodeClaims and nodes that are terminated."},
			{Title: "Termination time", Help: "From the deletion of a node or NodeClaim until it is terminated."},
			{Title: "Node reboots", Help: "Reboots of unhealthy nodes that ended, by result. Failed ones are replaced."},
			{Title: "Reboot time", Help: "From the request of a reboot until its end, and from EC2's acceptance until the node is ready."},
			{Title: "Drains past the deadline", Help: "Nodes that AWS terminated before they were drained. Normally zero."},
			{Title: "Terminations requested", Help: "Instances whose termination was requested from EC2."},
		},
	},
	{
		Title: "Health", Help: "Queues, functions, errors and latency.",
		Panels: []Panel{
			{Title: "Age of the oldest message", Help: "Age of the oldest message in each queue, in seconds. SQS leaves out messages that were received three or more times: see Retries overdue.", aws: oldest},
			{Title: "Queue depth", Help: "Messages that are visible in each queue.", aws: waiting},
			{Title: "DLQ messages", Help: "Normally zero. `joist dead list` shows the reason of each.", aws: dead},
			{Title: "Errors by kind", Help: "foreign and stale are normal. bug, denied and poison need action."},
			{Title: "Retries overdue", Help: "Attempts at messages that still fail two minutes after they were sent, or that expired meanwhile. Normally zero, except in lifecycle, which also retries to wait."},
			{Title: "Message outcomes", Help: "delete: processed. retry: retried later. dlq: moved to the DLQ. keep: not processed, delivered again by SQS."},
			{Title: "Throttling", Help: "Time that EC2 calls waited in the rate limiter, and throttled Lambda invocations.", aws: throttled},
			{Title: "Function errors", Help: "Lambda invocations that failed or timed out.", aws: failing},
			{Title: "Queue latency", Help: "Age of messages when their processing began."},
			{Title: "Handling time", Help: "Processing time of messages."},
			{Title: "Reconcile time", Help: "Time of reconciles by result. Every result but ok is a failure."},
			{Title: "Kubernetes API calls", Help: "429 is throttling by the API server. A watch that starts again and again cannot read its kind."},
			{Title: "Kubernetes API latency", Help: "Without watches. rest client rate limiter: the wait for the client's own limit, normally zero."},
			{Title: "AWS API calls", Help: "By service, operation and HTTP status of the last attempt. Functions have none of these series."},
			{Title: "AWS API latency", Help: "Of whole requests and of single attempts: p50 and p99."},
			{Title: "AWS throttling and retries", Help: "Attempts that AWS throttled, and retries of a request."},
			{Title: "Messages sent by the watcher", Help: "The watcher sends at least one message every 30 seconds."},
			{Title: "Launches paused, requests refused", Help: "Launches and removals above a safety limit, and requests to change resources outside of the cluster. Normally zero."},
			{Title: "Clock skew and failed acknowledgements", Help: "Also function records that were refused. Normally zero."},
			{Title: "Versions", Help: "Processes by version. Two versions of a service meet only during an upgrade."},
		},
	},
	{
		Title: "Disruption", Help: "Nodes that are removed or replaced because they are empty, drifted or underutilized.",
		Panels: []Panel{
			{Title: "Eligible nodes", Help: "Nodes that may be disrupted, before budgets."},
			{Title: "Disruptions", Help: "Disruptions that started."},
			{Title: "Failed disruptions", Help: "Disruptions that failed validation or were rolled back, and evaluations that reached their work limit."},
			{Title: "Disruptions by NodePool", Help: "Disruptions that started, by the NodePool of the removed nodes."},
			{Title: "Disruption budgets", Help: "Nodes of each NodePool that may be removed at the same time, and nodes that count as removed."},
			{Title: "Pods of terminated nodes", Help: "Pods that need another node because theirs is removed, and pods that were drained."},
			{Title: "Pod deletion costs", Help: "Writes of pod-deletion-cost by result, and nodes with pending writes. Empty without the feature gate PodDeletionCostManagement."},
			{Title: "Disruption evaluation time", Help: "Time that each method takes to evaluate a snapshot."},
			{Title: "Consolidation moves", Help: "Moves that were proposed, and moves that a Balanced NodePool rejected."},
			{Title: "Consolidation score", Help: "Balanced NodePools require a score of 0.5."},
		},
	},
	{
		Title: "Cost", Help: "Prices, and usage of NodePool limits.",
		Panels: []Panel{
			{Title: "Cost of planned NodeClaims", Help: "US dollars per hour of the NodeClaims in plans."},
			{Title: "Cost by NodePool", Help: "US dollars per hour of the running nodes."},
			{Title: "NodePool usage and limits", Help: "Resources of the nodes of each NodePool, and its limits."},
		},
	},
}

// panelMetrics returns the metrics of a panel.
func (p Panel) panelMetrics() []metric.Metric {
	return slices.DeleteFunc(slices.Clone(metric.Catalogue), func(m metric.Metric) bool { return m.Panel != p.Title })
}
