package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// RuleSchedulerPlacement keeps a node if kube-scheduler would bind its pods to other nodes than the
// plan does, and leave some of them unschedulable.
const RuleSchedulerPlacement = "scheduler-placement"

// checkPlacement objects to an attempt if kube-scheduler would leave some of its pods
// unschedulable. A node would be launched for these pods, and a later evaluation would remove it.
//
// It has two limits:
//   - It does not retry with a larger node. A set is retried without the nodes of those pods, which a
//     later evaluation tries; a single node is kept. A larger node would cost more at once, and
//     kube-scheduler might still not use it for those pods.
//   - It treats pods of nodes that are being removed as if they were already on their planned nodes,
//     because a snapshot does not contain the order of those drains. The next snapshot, which is
//     evaluated before the command is carried out, shows where they are.
//
// If either limit matters, a node is launched for a pod, or the pod stays pending if a limit or EC2
// forbids the launch.
func (p *evaluation) checkPlacement(a *attempt) {
	if a.PodsMoved == 0 {
		return
	}
	stranded := p.loadSimulation().FindStrandedPods(a.Result, indexesOf(a.nodes)...)
	if len(stranded) == 0 {
		return
	}
	a.objection = candidate.Objection{Rule: RuleSchedulerPlacement, Detail: fmt.Sprintf("%d of %d pods would not fit where kube-scheduler places the others", len(stranded), a.PodsMoved)}
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
