package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// RuleWouldNotLand keeps a node if kube-scheduler would place its pods differently from the
// plan and leave some of them without a node.
const RuleWouldNotLand = "would-not-land"

// checkPlacement objects to an attempt if kube-scheduler would leave some of its pods without a
// node. A node would be launched for these pods, and a later evaluation would remove it.
//
// It has two limits. It does not try again with a larger node: a set is tried without the nodes of
// those pods, which are tried in a later evaluation, and a single node stays. A larger node would
// cost more at once, and kube-scheduler might still not use it for those pods. And it treats the
// pods of nodes that are being removed already as placed where they are planned, because a snapshot
// does not tell the order of those drains. The next snapshot, which is evaluated before the command
// is carried out, shows where they are. If either limit matters, a node is launched for a pod, or
// the pod waits if a limit or EC2 forbids that.
func (p *evaluation) checkPlacement(a *attempt) {
	if a.PodsMoved == 0 {
		return
	}
	stranded := p.loadSimulation().FindStrandedPods(a.Result, indexesOf(a.nodes)...)
	if len(stranded) == 0 {
		return
	}
	a.objection = candidate.Objection{Rule: RuleWouldNotLand, Detail: fmt.Sprintf("%d of %d pods would not fit where kube-scheduler places the others", len(stranded), a.PodsMoved)}
	a.retryWithout = nodesOfPods(a.nodes, stranded)
}

// nodesOfPods returns the nodes on which the pods run.
func nodesOfPods(nodes []*candidate.Candidate, pods []planning.PodRef) []*candidate.Candidate {
	var out []*candidate.Candidate
	for _, c := range nodes {
		if slices.ContainsFunc(pods, func(pod planning.PodRef) bool { return pod.Node == c.Node.Name }) {
			out = append(out, c)
		}
	}
	return out
}
