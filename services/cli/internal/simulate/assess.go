package simulate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Assessment is what a cluster costs, what it would cost after consolidation, and what keeps nodes.
// Costs are in US dollars per hour.
type Assessment struct {
	// Now are the nodes that exist, and CostNow is their cost.
	Now     []NodeView
	CostNow float64
	// Before is the cost once operations in progress are done: nodes being removed are gone, and
	// the PendingPods that are schedulable run, on PendingNodes new nodes if necessary.
	Before       float64
	PendingPods  int
	PendingNodes int
	// Result is the consolidation from there, and After are its nodes.
	Result ConsolidateResult
	After  []NodeView
	// Bound is a lower bound of the cost of all nodes: those outside of NodePools, and any nodes of the
	// NodePools that hold the other pods. 0 means unknown.
	Bound       float64
	Obstacles   []Obstacle
	Unscheduled map[string]string
	Notes       []string
}

// NodeView is a node of an assessment.
type NodeView struct {
	Name, NodePool, InstanceType, Zone, CapacityType string
	// Price is 0 if it is not known.
	Price float64
	Pods  int
	// CPU and Memory are the fractions that pods request, including daemons, of Cores and Bytes.
	CPU, Memory  float64
	Cores, Bytes float64
	// Managed reports that the node has a NodeClaim.
	Managed bool
}

// Assess consolidates the nodes of a source and explains what keeps the others.
func Assess(from Source, o ConsolidateOptions) (Assessment, error) {
	fleet := from.Fleet()
	out := Assessment{Notes: fleet.Notes(), Before: fleet.CostPerHour(), PendingPods: max(0, countPods(from.Snapshot.PendingPods)-len(fleet.Unscheduled()))}
	out.Now = fleet.viewNodes(from.Snapshot.Nodes)
	for i := range out.Now {
		out.CostNow += out.Now[i].Price
	}
	for i := range from.Snapshot.Nodes {
		if !from.Snapshot.Nodes[i].MarkedForDeletion {
			out.PendingNodes--
		}
	}
	out.PendingNodes = max(0, out.PendingNodes+fleet.Size())
	bound := fleet.lowerBound()
	result, err := Consolidate(fleet, o)
	if err != nil {
		return out, err
	}
	out.Result, out.Unscheduled = result, fleet.Unscheduled()
	out.After = fleet.viewNodes(fleet.snapshot.Nodes)
	if bound <= result.CostAfter+costTolerance {
		out.Bound = bound
	}
	out.Obstacles, err = findObstacles(from, out, o)
	return out, err
}

func countPods(classes []planning.PodClass) (n int) {
	for i := range classes {
		for j := range classes[i].Pods {
			if classes[i].Pods[j].Buffer == "" {
				n++
			}
		}
	}
	return n
}

// viewNodes describes nodes that exist: NodeClaims without an instance cost nothing yet.
func (f *Fleet) viewNodes(nodes []planning.Node) []NodeView {
	out := make([]NodeView, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if !n.Launched {
			continue
		}
		cores, bytes := n.Allocatable[corev1.ResourceCPU], n.Allocatable[corev1.ResourceMemory]
		out = append(out, NodeView{
			Name: n.Name, NodePool: n.NodePool, InstanceType: n.Labels[corev1.LabelInstanceTypeStable], Zone: n.Labels[corev1.LabelTopologyZone],
			CapacityType: n.Labels[karpenter.CapacityTypeLabelKey], Price: f.prices.priceOf(n), Pods: countPods(n.Pods),
			CPU: shareOf(n, corev1.ResourceCPU), Memory: shareOf(n, corev1.ResourceMemory),
			Cores: cores.AsApproximateFloat64(), Bytes: bytes.AsApproximateFloat64(), Managed: n.Claim != "",
		})
	}
	return out
}

// shareOf returns the used fraction of a node's resource.
func shareOf(n *planning.Node, name corev1.ResourceName) float64 {
	used, all := n.Used[name], n.Allocatable[name]
	if all.IsZero() {
		return 0
	}
	return used.AsApproximateFloat64() / all.AsApproximateFloat64()
}

// lowerBound returns a lower bound of the cost of all nodes. It plans every pod of the managed nodes on
// new nodes, with the planner's bound. Preferences, limits and unavailable offerings are left out,
// because a cluster without them could cost less.
func (f *Fleet) lowerBound() float64 {
	s := f.snapshot
	s.Nodes, s.PendingPods, s.Unavailable = nil, nil, nil
	s.Settings.PreferencePolicy, s.Settings.PriceLimit = "Ignore", nil
	s.NodePools = slices.Clone(s.NodePools)
	for i := range s.NodePools {
		s.NodePools[i].Spec.Limits = nil
	}
	fixed := 0.0
	var pending []planning.PodClass
	for i := range f.snapshot.Nodes {
		n := &f.snapshot.Nodes[i]
		if n.Claim == "" {
			fixed += f.prices.priceOf(n)
			continue
		}
		for _, class := range n.Pods {
			class.Pods = class.ReschedulablePods()
			pending = append(pending, class)
		}
	}
	return fixed + solver.SolveWithTypes(planning.Batch{Snapshot: s, Pending: pending}, f.stock).BoundPerHour
}
