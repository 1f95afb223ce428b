package cost

import (
	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Load is the activity in a cluster.
type Load struct {
	Name string
	// Nodes is the average number of nodes, NodeClasses the number of node classes.
	Nodes, NodeClasses float64
	// Launches is the number of launched, and of terminated, nodes per day; Batches is the
	// number of plans, Notices the number of interruptions.
	Launches, Batches, Notices float64
	// InstanceChanges is the number of the account's instances that change their state per
	// day. The rules match all of them.
	InstanceChanges float64
}

// isIdle reports whether there are no nodes, plans and interruptions.
func (l Load) isIdle() bool { return l.Launches+l.Batches+l.Notices+l.Nodes == 0 }

// The loads in the documentation.
var (
	// AtRest is a cluster without pending pods and without nodes of Joist.
	AtRest = Load{Name: "at rest", NodeClasses: 1}
	// Busy launches and terminates 1,000 nodes per day, four per batch. A tenth of them is
	// interrupted. 40 nodes run on average, so each lives for an hour.
	Busy = Load{Name: "1,000 nodes a day", Nodes: 40, NodeClasses: 3, Launches: 1000, Batches: 250, Notices: 100, InstanceChanges: 1000}
)

const (
	days    = 30
	minutes = days * 24 * 60
	gb      = 1 << 30
)

// workload is the monthly work of one service for one kind of message.
type workload struct {
	service string
	// messages per month.
	messages float64
	// seconds of the function per message: an assumption above the benchmarks' results.
	seconds float64
	// events published, documents written and read.
	events, writes, reads float64
}

// listWorkloads returns the work of all functions. The frequencies are those of the
// services' READMEs: inventories every 30 s and by ticks, node classes every minute,
// snapshots every 10 s while there are nodes.
func listWorkloads(l Load) []workload {
	snapshots := 0.0
	if l.Nodes > 0 {
		snapshots = 6 * minutes
	}
	inventories, classes := 3.0*minutes, l.NodeClasses*minutes
	// Each node is requested, tagged and terminated; some requests are repeated.
	orders := days * (l.Batches*1.2 + l.Launches*2.4)
	return []workload{
		{service: "catalog", messages: inventories, seconds: 0.5, events: 1, writes: 1, reads: 1},
		{service: "catalog", messages: classes, seconds: 1, events: 1},
		{service: "catalog", messages: minutes, seconds: 0.3, reads: 3},
		{service: "interruption", messages: minutes, seconds: 0.3},
		{service: "interruption", messages: days * (l.InstanceChanges*2 + l.Notices), seconds: 0.2, events: 0.6},
		{service: "launcher", messages: minutes, seconds: 0.3},
		{service: "launcher", messages: orders, seconds: 3, events: 0.3, reads: 0.3},
		{service: "launcher", messages: l.NodeClasses * minutes / 10, seconds: 2, events: 1},
		{service: "planner", messages: days * l.Batches * 1.1, seconds: 3, events: 1, writes: 5, reads: 2},
		{service: "disruption", messages: snapshots, seconds: 0.5, events: 1, writes: 0.1, reads: 1},
	}
}

const (
	// emptyQueuePolls is the number of polls of an empty queue per month: Lambda keeps five
	// connections of 20 s each
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
	emptyQueuePolls = 5 * 3 * minutes
	// inboxPolls is the number of polls by lifecycle's receivers, at most eight.
	inboxPolls = 8 * 3 * minutes
	// requestsPerMessage: a message is sent, received, hidden while it is handled, and deleted.
	requestsPerMessage = 4
	// eventBytes and lineBytes are the average sizes of an event and of a log line, seriesBytes
	// that of one series in a line of metrics.
	eventBytes, lineBytes, seriesBytes = 4 << 10, 1 << 10, 1 << 8
	// documentBytes is the average size of a document.
	documentBytes = 64 << 10
)

// MonthlyBill returns the bill of one cluster for a month of the load. If watcher and
// lifecycle send metrics to CloudWatch, it includes their metrics, alarms and log.
func MonthlyBill(of board.Cluster, l Load) []Line {
	var messages, facts, writes, reads, seconds float64
	for _, w := range listWorkloads(l) {
		messages += w.messages
		facts += w.messages * w.events
		writes += w.messages * w.writes
		reads += w.messages * w.reads
		seconds += w.messages * w.seconds * config.Sizes[w.service].Memory / 1024
	}
	if l.Nodes > 0 {
		// The watcher writes a snapshot and its pointer.
		writes += 2 * 6 * minutes
	}
	ticks := float64(len(of.Ticks)) * minutes
	// The archive and the functions' logs keep a month, the audit log with the events three.
	archived, logged := facts*eventBytes/gb, messages*lineBytes/gb
	metrics := countSeries(l, false)
	if of.Inside {
		inside := countSeries(l, true)
		// Each series may be sent every minute.
		metrics, logged = metrics+inside, logged+inside*minutes*seriesBytes/gb
	}
	return []Line{
		{sqsRequest, (messages+facts)*requestsPerMessage + float64(len(topology.ExternalServices))*emptyQueuePolls + inboxPolls},
		{busEvent, facts}, {archiveGB, archived}, {archivedGB, archived}, {tick, ticks},
		{invocation, messages}, {gigaSecond, seconds},
		{s3Write, writes}, {s3Read, reads}, {s3GB, writes * documentBytes / gb},
		{logGB, logged + archived}, {loggedGB, logged + 3*archived},
		{customMetric, metrics}, {alarm, countAlarms(of)}, {dashboard, 1},
	}
}

// countAlarms returns the number of metrics of all alarms, including the audit log's.
func countAlarms(of board.Cluster) float64 {
	count := 1.0
	for _, a := range board.Alarms(of) {
		count += float64(len(a.Metrics))
	}
	return count
}

// countSeries returns the number of custom metrics of the functions, or of watcher and
// lifecycle. Each combination of dimension values counts. Of labels with many values at most
// seenValues are used per month.
func countSeries(l Load, inside bool) float64 {
	const seenValues = 6
	if l.isIdle() {
		return countIdleSeries(inside)
	}
	count := 0.0
	for _, m := range metric.Catalogue {
		if m.CloudWatch == nil || m.Inside() != inside {
			continue
		}
		sets := 1.0
		for _, dimension := range m.CloudWatch {
			for _, label := range m.Labels {
				if label.Name == dimension {
					sets *= float64(min(label.Max, seenValues))
				}
			}
		}
		count += sets
	}
	return count
}
