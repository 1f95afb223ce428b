package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// quietPeriod is how long nothing is taken to have happened.
const quietPeriod = 100 * 365 * 24 * time.Hour

// Fleet is the nodes of a scenario or of a cluster's snapshot, on which commands are
// carried out. What is in flight in a cluster is completed first: nodes being removed are
// gone, and pending pods run where the planner puts them. Notes list this. Prices are in
// US dollars an hour.
type Fleet struct {
	title    string
	notes    []string
	snapshot planning.Snapshot
	stock    instancetypes.InstanceTypes
	prices   prices
	// unscheduled are the pods that found no place, as namespace/name, and why.
	unscheduled map[string]string
}

// Step is one command: nodes go, and their pods are where the result puts them.
type Step struct {
	// Nodes are places in the snapshot that was shown.
	Nodes  []int
	Result planning.Result
}

// completeInFlight lets what is under way happen.
func (f *Fleet) completeInFlight(s planning.Snapshot) {
	s.Nodes = slices.Clone(s.Nodes)
	going, waiting := 0, 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.MarkedForDeletion = n.MarkedForDeletion || n.Proposal != nil && !n.Proposal.ConfirmedAt.IsZero()
		if n.MarkedForDeletion {
			going++
		}
		n.Proposal, n.NominatedUntil = nil, time.Time{}
	}
	for i := range s.PendingPods {
		waiting += len(s.PendingPods[i].Pods)
	}
	before := len(s.Nodes)
	s = solver.NewSimulation(s, f.stock).ProjectSnapshot()
	f.skipWaits(s)
	if going+waiting > 0 {
		f.notes = append(f.notes, fmt.Sprintf("operations in progress are simulated as done: %d nodes being removed, %d pending pods and %d new nodes for them",
			going, waiting, len(s.Nodes)+going-before))
	}
}

// skipWaits is the snapshot when nobody waits for anything. Pods without a place are set
// aside: nothing that is played could find them one.
func (f *Fleet) skipWaits(s planning.Snapshot) {
	since := s.TakenAt.Add(-quietPeriod)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.LastPodEvent = since
		if n.Initialized {
			n.InitializedAt, n.ReadySince = since, since
		}
	}
	for i := range s.PendingPods {
		for _, pod := range s.PendingPods[i].Pods {
			if key := s.PendingPods[i].Spec.Namespace + "/" + pod.Name; f.unscheduled[key] == "" {
				f.unscheduled[key] = "the pod is already pending and remains unschedulable"
			}
		}
	}
	s.PendingPods = nil
	f.snapshot = s
}

// Unscheduled are the pods that found no place, as namespace/name, and why.
func (f *Fleet) Unscheduled() map[string]string { return f.unscheduled }

// Title is how results call it.
func (f *Fleet) Title() string { return f.title }

// Notes say what was taken to be so.
func (f *Fleet) Notes() []string { return f.notes }

// Show is the fleet as disruption sees it. What it gives is not to be changed.
func (f *Fleet) Show() (planning.Snapshot, instancetypes.InstanceTypes) { return f.snapshot, f.stock }

// Size is how many nodes there are.
func (f *Fleet) Size() int { return len(f.snapshot.Nodes) }

// CarryOut does what steps say, one after the other: each counts on those before it,
// and their answers are of what was shown last. Method, candidates and effort are
// for the caller to add.
func (f *Fleet) CarryOut(steps []Step) []scenario.Round {
	simulation, names, cost := solver.NewSimulation(f.snapshot, f.stock), f.podNames(), f.CostPerHour()
	out := make([]scenario.Round, 0, len(steps))
	come := 0
	for _, step := range steps {
		step.Result.Nodes = slices.Clone(step.Result.Nodes)
		for i := range step.Result.Nodes {
			planned := &step.Result.Nodes[i]
			planned.Offerings = f.launchableOptions(planned)
			cost += planned.Offerings[0].PricePerHour
		}
		for _, i := range step.Nodes {
			cost -= f.prices.priceOf(&f.snapshot.Nodes[i])
		}
		round := f.describeStep(step, names)
		// Taking off what was added up may leave less than nothing.
		round.CostAfter = max(cost, 0)
		come += len(round.Replacements)
		simulation.Commit(step.Result, step.Nodes...)
		out = append(out, round)
	}
	joined := simulation.ProjectSnapshot()
	nameReplacements(out, joined.Nodes[len(joined.Nodes)-come:])
	f.skipWaits(joined)
	return out
}

// describeStep is a step as results tell it, but for what it costs.
func (f *Fleet) describeStep(step Step, names scenario.Names) scenario.Round {
	r := &step.Result
	out := scenario.Round{Removed: []string{}, Replacements: []scenario.NewNode{}, Moved: map[string][]string{}, PodsMoved: len(r.Nominations)}
	for _, i := range step.Nodes {
		out.Removed = append(out.Removed, f.snapshot.Nodes[i].Name)
	}
	for i := range r.Nodes {
		out.Replacements = append(out.Replacements, scenario.Describe(&r.Nodes[i], r.Nodes[i].Offerings, f.snapshot.NodePools, names))
		out.PodsMoved += len(r.Nodes[i].Pods)
	}
	for _, n := range r.Nominations {
		on := cmp.Or(n.Node, n.Claim)
		out.Moved[on] = append(out.Moved[on], names.Of(n.Namespace, n.Pod.Name))
	}
	for _, u := range r.Unplaced {
		for _, pod := range u.Pods {
			f.unscheduled[u.Namespace+"/"+pod.Name] = scenario.Reason(u.Rejections)
		}
	}
	return out
}

// nameReplacements tells the rounds what their nodes are called, which are in their order.
func nameReplacements(rounds []scenario.Round, nodes []planning.Node) {
	for i := range rounds {
		for j := range rounds[i].Replacements {
			rounds[i].Replacements[j].Name = nodes[0].Name
			nodes = nodes[1:]
		}
	}
}

// launchableOptions are the options that the launch of a node would try. Where none is left,
// because reservations are not looked into here, they are those of the plan.
func (f *Fleet) launchableOptions(n *planning.PlannedNode) []planning.PricedOffering {
	exotic := map[string]bool{}
	for _, t := range f.stock.TypesForPool(n.NodePool, n.NodeClass) {
		exotic[t.Name] = t.Exotic
	}
	if out := launchspec.Launchable(n, func(name string) bool { return exotic[name] }); len(out) > 0 {
		return out
	}
	return n.Offerings
}

// CostPerHour is what all nodes cost. Those whose price is not known cost nothing.
func (f *Fleet) CostPerHour() (sum float64) {
	for i := range f.snapshot.Nodes {
		sum += f.prices.priceOf(&f.snapshot.Nodes[i])
	}
	return sum
}

// FinalNodes are all nodes with their pods, daemons left out.
func (f *Fleet) FinalNodes() []scenario.FinalNode {
	out := make([]scenario.FinalNode, 0, len(f.snapshot.Nodes))
	for i := range f.snapshot.Nodes {
		n := &f.snapshot.Nodes[i]
		one := scenario.FinalNode{
			Name: n.Name, NodePool: n.NodePool, InstanceType: n.Labels[corev1.LabelInstanceTypeStable],
			Zone: n.Labels[corev1.LabelTopologyZone], CapacityType: n.Labels[karpenter.CapacityTypeLabelKey], Pods: []string{},
		}
		for _, class := range n.Pods {
			for _, pod := range class.Pods {
				one.Pods = append(one.Pods, class.Spec.Namespace+"/"+pod.Name)
			}
		}
		slices.Sort(one.Pods)
		out = append(out, one)
	}
	return out
}

// podNames are what the pods of all nodes are called.
func (f *Fleet) podNames() scenario.Names {
	out := scenario.Names{}
	for i := range f.snapshot.Nodes {
		for _, class := range f.snapshot.Nodes[i].Pods {
			for _, pod := range class.Pods {
				out.Add(pod.Name)
			}
		}
	}
	return out
}
