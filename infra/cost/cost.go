package cost

import (
	"github.com/joist-autoscaler/joist/infra/config"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Load is what happens in a cluster.
type Load struct {
	Name string
	// Nodes are how many stand on the average, and NodeClasses how many there are.
	Nodes, NodeClasses float64
	// Launches is how many nodes are launched, and removed, in a day; Batches are the plans
	// that this takes, and Notices what AWS takes away of them.
	Launches, Batches, Notices float64
	// InstanceChanges is how many of the account's instances change their state in a day: the
	// rules see them all.
	InstanceChanges float64
}

// isIdle reports whether no pod is planned and no node is launched, ended or interrupted.
func (l Load) isIdle() bool { return l.Launches+l.Batches+l.Notices+l.Nodes == 0 }

// The loads that the documentation tells of.
var (
	// AtRest is a cluster in which nothing happens: no pod waits, and no node is Joist's.
	AtRest = Load{Name: "at rest", NodeClasses: 1}
	// Busy launches and removes a thousand nodes a day, four for each batch, and a
	// tenth of them is interrupted; forty stand, so that each lives for an hour.
	Busy = Load{Name: "1,000 nodes a day", Nodes: 40, NodeClasses: 3, Launches: 1000, Batches: 250, Notices: 100, InstanceChanges: 1000}
)

const (
	days    = 30
	minutes = days * 24 * 60
	gb      = 1 << 30
)

// workload is what one kind of message costs its reader.
type workload struct {
	service string
	// messages of a month.
	messages float64
	// seconds of the function, assumed, and more than the benchmarks measure on a desk.
	seconds float64
	// events that it says, documents that it writes and reads.
	events, writes, reads float64
}

// listWorkloads are the messages to functions. How often they come is in the cards:
// inventories each 30 s and by ticks, node classes each minute, snapshots each 10 s
// while nodes are there.
func listWorkloads(l Load) []workload {
	snapshots := 0.0
	if l.Nodes > 0 {
		snapshots = 6 * minutes
	}
	inventories, classes := 3.0*minutes, l.NodeClasses*minutes
	// A node is asked for, named, and ended; each request is seldom said twice.
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
	// emptyQueuePolls is how often Lambda asks an empty queue in a month: five connections, for
	// 20 s each; with a maximum concurrency it never asks less
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
	emptyQueuePolls = 5 * 3 * minutes
	// inboxPolls are those of lifecycle, which has eight receivers at most.
	inboxPolls = 8 * 3 * minutes
	// requestsPerMessage is what a message costs in requests beside: it is sent, hidden for as
	// long as its handler takes, and deleted; it is received by a poll of its own.
	requestsPerMessage = 4
	// eventBytes and lineBytes are what a fact and a log line have, on the average, and
	// seriesBytes what one series has in a line of metrics.
	eventBytes, lineBytes, seriesBytes = 4 << 10, 1 << 10, 1 << 8
	// documentBytes are those of one document.
	documentBytes = 64 << 10
)

// MonthlyBill is the bill of one cluster for a month of the load. Where the services inside of the
// cluster tell CloudWatch as well, their metrics and alarms are in it, and the log that they
// come by.
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
		// Snapshots are the watcher's, and their pointer; an equal one is only looked for.
		writes, reads = writes+2*6*minutes, reads+6*minutes
	}
	ticks := float64(len(of.Ticks)) * minutes
	// The archive and the functions' logs keep a month, and the audit log, which has the
	// facts, keeps three.
	told, logged := facts*eventBytes/gb, messages*lineBytes/gb
	metrics := countSeries(l, false)
	if of.Inside {
		inside := countSeries(l, true)
		// Each series may be told of each minute.
		metrics, logged = metrics+inside, logged+inside*minutes*seriesBytes/gb
	}
	return []Line{
		{sqsRequest, (messages+facts)*requestsPerMessage + float64(len(topology.Outside))*emptyQueuePolls + inboxPolls},
		{busEvent, facts}, {archiveGB, told}, {archivedGB, told}, {tick, ticks},
		{invocation, messages}, {gigaSecond, seconds},
		{s3Write, writes}, {s3Read, reads}, {s3GB, writes * documentBytes / gb},
		{logGB, logged + told}, {loggedGB, logged + 3*told},
		{metric, metrics}, {alarm, countAlarms(of)}, {dashboard, 1},
	}
}

// countAlarms counts what the alarms of the stack look at; the audit log's is one more.
func countAlarms(of board.Cluster) float64 {
	count := 1.0
	for _, a := range board.Alarms(of) {
		count += float64(len(a.Metrics))
	}
	return count
}

// countSeries are the custom metrics that functions send, or those that only services inside of
// the cluster do: each set of values of a metric's dimensions is one. Of labels with many
// values at most seenValues are seen in a month, lifecycle among the services.
func countSeries(l Load, inside bool) float64 {
	const seenValues = 6
	if l.isIdle() {
		return countIdleSeries(inside)
	}
	count := 0.0
	for _, m := range telemetry.Catalogue {
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
