package scenario

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// rest is how long nothing has happened in a fleet.
const rest = 100 * 365 * 24 * time.Hour

// Fleet is the scenario as disruption sees it: nodes on which nothing has happened
// for a long time, so that whatever NodePools wait for has been waited for, and pods
// that wait.
func (s *Scenario) Fleet() (scheduling.Snapshot, scheduling.Stock) {
	batch, stock := s.Problem(s.Pods())
	snapshot := batch.Snapshot
	snapshot.Waiting = batch.Pending
	since := snapshot.Taken.Add(-rest)
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		n.Created, n.InitializedAt, n.LastPodEvent = since, since, since
	}
	return snapshot, stock
}

// CostPerHour is what all nodes cost in US dollars an hour. Those whose like the
// scenario does not offer cost nothing.
func (s *Scenario) CostPerHour() (sum float64) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, o := range s.byName[n.InstanceType].Offers {
			if o.Zone == n.Zone && o.CapacityType == n.CapacityType {
				sum += o.PricePerHour
				break
			}
		}
	}
	return sum
}

// FinalNodes lists the nodes with their pods, daemons left out.
func (s *Scenario) FinalNodes() []FinalNode {
	out := make([]FinalNode, 0, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		one := FinalNode{Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, Pods: []string{}}
		for _, pod := range n.Pods {
			if !ofDaemon(pod) {
				one.Pods = append(one.Pods, pod.Namespace+"/"+pod.Name)
			}
		}
		slices.Sort(one.Pods)
		out = append(out, one)
	}
	return out
}
