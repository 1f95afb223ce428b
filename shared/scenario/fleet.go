package scenario

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// rest is how long nothing has happened in a fleet, in time before it is taken:
// whatever a NodePool waits for has been waited for.
const rest = 100 * 365 * 24 * time.Hour

// Fleet is the scenario as disruption sees it: nodes on which nothing has happened
// for a long time, and pods that wait.
func (s *Scenario) Fleet() (scheduling.Snapshot, scheduling.Stock) {
	batch, stock := s.Problem(s.Pods())
	snapshot := batch.Snapshot
	snapshot.Waiting = batch.Pending
	Rest(&snapshot)
	return snapshot, stock
}

// Rest lets the waits of a snapshot pass: those for pods to settle
// (consolidateAfter) and those for nominated pods to come.
func Rest(s *scheduling.Snapshot) {
	since := s.Taken.Add(-rest)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Created, n.InitializedAt, n.LastPodEvent, n.Nominated = since, since, since, time.Time{}
	}
}

// PricePerHour is what a node costs in US dollars an hour, 0 when the scenario
// does not offer its like.
func (s *Scenario) PricePerHour(n *scheduling.Node) float64 {
	for _, types := range s.stock.Types {
		i := slices.IndexFunc(types, func(t scheduling.Type) bool { return t.Name == n.Labels[corev1.LabelInstanceTypeStable] })
		if i < 0 {
			continue
		}
		for _, o := range types[i].Offers {
			if o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] {
				return o.PricePerHour
			}
		}
	}
	return 0
}

// CostPerHour is what all nodes of a snapshot cost in US dollars an hour.
func (s *Scenario) CostPerHour(snapshot *scheduling.Snapshot) float64 {
	var sum float64
	for i := range snapshot.Nodes {
		sum += s.PricePerHour(&snapshot.Nodes[i])
	}
	return sum
}

// Bought is a result of which every new node has the options alone that its launch
// would try, cheapest first.
func (s *Scenario) Bought(result scheduling.Result) scheduling.Result {
	result.Nodes = slices.Clone(result.Nodes)
	for i := range result.Nodes {
		result.Nodes[i].Options = s.launchable(&result.Nodes[i])
	}
	return result
}
