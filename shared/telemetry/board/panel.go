package board

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/telemetry"
)

// Panel is one picture of a dashboard.
type Panel struct {
	Title string
	// Help says what to see in it.
	Help string
	// aws are series that AWS has by itself: of queues, or of functions.
	aws source
}

// source is where a series of AWS's own comes from.
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

// Rows are all panels, in the order of the story.
var Rows = []Row{
	{
		Title: "From pods to nodes", Help: "Pods wait, are planned, launched for, and have a node.",
		Panels: []Panel{
			{Title: "Pods that wait", Help: "It falls to nothing soon after each rise. What stays cannot be placed."},
			{Title: "Planned", Help: "NodeClaims that plans ask for, and that were made."},
			{Title: "Time to plan", Help: "Half of the batches take less than the lower line, and 99 of 100 less than the upper."},
			{Title: "Launched and refused", Help: "Refusals beside launches are shortages; refusals alone are a mistake."},
			{Title: "Joined", Help: "Nodes that registered; as many as were launched, a minute later."},
			{Title: "Time to run", Help: "From the creation of a pod to its being bound, and running."},
		},
	},
	{
		Title: "From notices to drained", Help: "AWS announces, nodes are drained, instances end.",
		Panels: []Panel{
			{Title: "Notices", Help: "What AWS said, by its kind; no_op is of other instances, or needs nothing."},
			{Title: "Wait of notices", Help: "A spot instance has two minutes: seconds here are lost to its drain."},
			{Title: "Nodes that go", Help: "NodeClaims that were let go, by reason, and those that are gone."},
			{Title: "Time to go", Help: "From a node's deletion to its end."},
			{Title: "Past the deadline", Help: "Nodes whose time ran out while their pods were there: nothing is good."},
			{Title: "Ended", Help: "Instances that EC2 was told to end."},
		},
	},
	{
		Title: "Health", Help: "Whether messages flow, and what became of them.",
		Panels: []Panel{
			{Title: "Oldest message", Help: "Seconds that the oldest message of a queue has waited.", aws: oldest},
			{Title: "Waiting messages", Help: "Messages that wait in each queue.", aws: waiting},
			{Title: "Dead letters", Help: "Nothing is good. `joist dead list` says why each is there.", aws: dead},
			{Title: "Errors by kind", Help: "foreign and stale are ordinary; bug, denied and poison are not."},
			{Title: "Verdicts", Help: "delete is done, hide comes again, park is a dead letter, keep could not be dealt with."},
			{Title: "Throttles", Help: "How long calls waited for their turn at EC2, and functions that AWS held back.", aws: throttled},
			{Title: "Functions that fail", Help: "Invocations that ended in an error or in a time-out.", aws: failing},
			{Title: "Wait in the queue", Help: "How long messages had waited when their handling began."},
			{Title: "Handling", Help: "How long handlers took."},
			{Title: "Looks at the cluster", Help: "How long a look took, by how it ended: only ok is good."},
			{Title: "Messages of the watcher", Help: "It is never silent for more than half a minute."},
			{Title: "Held back", Help: "Launches that the breaker stopped, and requests to touch what is not ours."},
			{Title: "Clocks and verdicts that failed", Help: "Nothing is good."},
		},
	},
	{
		Title: "Disruption", Help: "What is removed or replaced because it is empty, drifted or dear.",
		Panels: []Panel{
			{Title: "Nodes that may be disrupted", Help: "Nodes against which nothing of their own stands."},
			{Title: "Disruptions", Help: "Disruptions that began to act."},
			{Title: "Disruptions that failed", Help: "Taken back, rolled back, or not thought to the end."},
			{Title: "Disruptions by NodePool", Help: "The same by the NodePool that nodes are taken from."},
			{Title: "Looking for disruptions", Help: "How long each method looks at a snapshot."},
			{Title: "Moves of consolidation", Help: "Proposed, and refused by Balanced pools."},
			{Title: "What moves are worth", Help: "Balanced pools ask for a score of a half."},
		},
	},
	{
		Title: "Cost", Help: "What is bought, and within which limits.",
		Panels: []Panel{
			{Title: "Price of what is planned", Help: "US dollars an hour that plans ask for."},
			{Title: "Cost by NodePool", Help: "US dollars an hour of the nodes that run."},
			{Title: "Usage of limits", Help: "What a NodePool has of what its limits allow."},
		},
	},
}

// drawn are the metrics of a panel.
func (p Panel) drawn() []telemetry.Metric {
	return slices.DeleteFunc(slices.Clone(telemetry.Catalogue), func(m telemetry.Metric) bool { return m.Panel != p.Title })
}
