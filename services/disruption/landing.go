package disruption

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// RuleWouldNotLand keeps a node whose pods have places, but of which Kubernetes'
// scheduler would put some where others have theirs, and leave those without a node.
const RuleWouldNotLand = "would-not-land"

// land asks whether the pods of an attempt find room where Kubernetes puts them.
// Otherwise a node would be launched for those that are left out, only to be removed
// again by a later pass.
func (p *pass) land(a *attempt) {
	left := p.simulate().Stranded(a.Result, places(a.nodes)...)
	if len(left) == 0 {
		return
	}
	a.objection = candidate.Objection{Rule: RuleWouldNotLand, Detail: fmt.Sprintf("of %d pods, %d would find no room where Kubernetes' scheduler puts the others", a.PodsMoved, len(left))}
	a.spoilers = hosts(a.nodes, left)
}

// hosts are the nodes on which pods run.
func hosts(nodes []*candidate.Candidate, pods []scheduling.PodRef) []*candidate.Candidate {
	var out []*candidate.Candidate
	for _, c := range nodes {
		if slices.ContainsFunc(pods, func(pod scheduling.PodRef) bool { return pod.Node == c.Node.Name }) {
			out = append(out, c)
		}
	}
	return out
}
