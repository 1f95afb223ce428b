package disruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Method is a way of finding nodes that should go.
type Method string

// The methods, in the order in which they are asked.
const (
	Emptiness   Method = "Emptiness"
	StaticDrift Method = "StaticDrift"
	Drift       Method = "Drift"
	// Expiration replaces nodes before their life ends, where their pool asks for it:
	// upstream has no such method.
	Expiration Method = planning.ByExpiration
	MultiNode  Method = "MultiNodeConsolidation"
	SingleNode Method = "SingleNodeConsolidation"
)

// Options change what Evaluate looks for. Its zero value is what upstream does by
// default.
type Options struct {
	// SpotToSpot lets consolidation replace spot nodes with spot nodes, as the feature
	// gate in the snapshot does.
	SpotToSpot bool
}

// Findings are what should be done about the nodes of a snapshot, and why not about
// the rest.
type Findings struct {
	// Commands are in the order in which they were found. No two share a node, each
	// counts on those before it, and all of them together keep every budget.
	Commands []Command
	// Kept has each managed node that is in no command, in the snapshot's order.
	Kept []Kept
	// HasDeferred says that time alone may let sets go that are held back now.
	HasDeferred bool
	// Problems are what a person must mend, such as a budget that cannot be read.
	Problems []error
	Metrics  EvaluationMetrics
	// NextChange is when they may be others though nothing but time has changed; zero where no
	// such time is known.
	NextChange time.Time
}

// Command is a set of nodes that should go together.
type Command struct {
	Method Method
	Reason karpenter.DisruptionReason
	// Nodes are places in the snapshot's list, in rising order.
	Nodes []int
	// Result is where their pods go: nominations onto nodes that stay, and new nodes,
	// of which only the options are left that may be launched.
	Result planning.Result
	// PodsMoved is how many pods have to move.
	PodsMoved int
	// SavedPerHour is what the nodes cost less what replaces them is expected to cost,
	// in US dollars; for drift it may be below zero.
	SavedPerHour float64
	// Proposal is the id that proposing it has: it derives from the claims, and from
	// what makes it that proposal.
	Proposal string
	// Since is when it was proposed, as the snapshot carries it; zero for what is
	// proposed now.
	Since time.Time
	// Why is the reason in words, for a person.
	Why string
}

// Kept says why a node stays.
type Kept struct {
	// Node is the node's name in the snapshot, Index its place there.
	Node  string
	Index int
	// Rule is one of the Rule constants, by which tools tell the reasons apart.
	Rule   string
	Detail string
	// reason is what Events give as the reason. What protects the node or its pods comes
	// first there, whatever its NodePool asks of consolidation: Karpenter's order.
	reason candidate.Objection
}
