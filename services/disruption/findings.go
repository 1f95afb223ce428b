package disruption

import (
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Method is a way of finding nodes to disrupt.
type Method string

// The methods, in the order in which they are tried.
const (
	Repair      Method = "Repair"
	Emptiness   Method = "Emptiness"
	StaticDrift Method = "StaticDrift"
	Drift       Method = "Drift"
	// Expiration replaces nodes before they expire, in NodePools that set it. Karpenter has no such
	// method.
	Expiration Method = planning.MethodExpiration
	MultiNode  Method = "MultiNodeConsolidation"
	SingleNode Method = "SingleNodeConsolidation"
)

// Options configure Evaluate. The zero value has Karpenter's defaults.
type Options struct {
	// SpotToSpot allows consolidation to replace spot nodes with spot nodes, like the feature gate
	// in the snapshot.
	SpotToSpot bool
}

// Findings are the commands for a snapshot's nodes, and the reasons why the other nodes are kept.
type Findings struct {
	// Commands are in the order in which they were found. No two share a node, each takes the
	// earlier ones into account, and together they respect every budget.
	Commands []Command
	// Kept has each managed node that is in no command, in the snapshot's order.
	Kept []Kept
	// HasDeferred reports that deferred sets may become allowed as time passes, without a change of
	// the cluster.
	HasDeferred bool
	// Problems are errors that a user has to correct, such as a budget that cannot be parsed.
	Problems []error
	Metrics  EvaluationMetrics
	// NextChange is when the findings may change although the cluster does not; zero if no such
	// time is known.
	NextChange time.Time
}

// Command is a set of nodes to disrupt together.
type Command struct {
	Method Method
	Reason karpenter.DisruptionReason
	// Nodes are ascending indexes of the snapshot's nodes.
	Nodes []int
	// Result is where their pods move: nominations onto kept nodes, and new nodes with the options
	// that may be launched.
	Result planning.Result
	// TerminateFirst is why the nodes are removed before their replacements are launched; empty for
	// other commands. Pods without a nomination then wait for a batch.
	TerminateFirst planning.TerminateFirstReason
	// Refill are the nodes that a batch is expected to launch after the nodes of TerminateFirst are gone.
	// The command does not launch them.
	Refill []planning.PlannedNode
	// Reboot is true if the node is rebooted in place instead of removed.
	Reboot bool
	// PodsMoved is how many pods move.
	PodsMoved int
	// SavedPerHour is the price of the nodes minus the expected price of their replacements, in US
	// dollars; for drift it may be negative.
	SavedPerHour float64
	// Proposal is the ID of the command's proposal.
	Proposal string
	// Since is when the command was proposed, from the snapshot; zero for a new proposal.
	Since time.Time
	// Why describes the command in logs and in the CLI.
	Why string
}

// Kept is the reason why a node is kept.
type Kept struct {
	// Node is the node's name in the snapshot, and Index its index there.
	Node  string
	Index int
	// Rule is one of the Rule constants.
	Rule   string
	Detail string
	// reason is the reason for Events. Protection of the node or its pods has precedence over the
	// NodePool's consolidation settings, as in Karpenter.
	reason candidate.Objection
}
