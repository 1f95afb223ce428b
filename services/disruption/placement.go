package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// RuleWouldNotLand keeps a node whose pods have places, but of which Kubernetes'
// scheduler would put some where others have theirs, and leave those without a node.
const RuleWouldNotLand = "would-not-land"

// checkPlacement asks whether the pods of an attempt, if it has any, find room where Kubernetes
// puts them. Otherwise a node would be launched for those that are left out, only to be
// removed again by a later pass.
//
// Two things it does not do. What does not land is not tried again with a larger node: of
// sets it is tried without the nodes whose pods are left out, and these have their turn in
// a later pass, when it shows where the others came to be; a node alone stays, and what
// was proposed before is dropped. A larger node would be paid for at once, to make room
// that the scheduler need not use for them either. And pods of nodes
// that are going already are not played, they stand where they are planned: a snapshot
// does not tell in which order those drains go on, and where the pods came to be stands
// in the next one, which is looked at before anything acts. What slips through both costs
// a move: a pod without room is launched a node for, and waits for one where a limit
// forbids that or EC2 has none.
func (p *evaluation) checkPlacement(a *attempt) {
	if a.PodsMoved == 0 {
		return
	}
	left := p.loadSimulation().Stranded(a.Result, indexesOf(a.nodes)...)
	if len(left) == 0 {
		return
	}
	a.objection = candidate.Objection{Rule: RuleWouldNotLand, Detail: fmt.Sprintf("of %d pods, %d would find no room where Kubernetes' scheduler puts the others", a.PodsMoved, len(left))}
	a.retryWithout = nodesOfPods(a.nodes, left)
}

// nodesOfPods are the nodes on which pods run.
func nodesOfPods(nodes []*candidate.Candidate, pods []planning.PodRef) []*candidate.Candidate {
	var out []*candidate.Candidate
	for _, c := range nodes {
		if slices.ContainsFunc(pods, func(pod planning.PodRef) bool { return pod.Node == c.Node.Name }) {
			out = append(out, c)
		}
	}
	return out
}
