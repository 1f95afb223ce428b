package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// quietPeriod is the assumed time since the last pod event.
const quietPeriod = 100 * 365 * 24 * time.Hour

// Fleet has the nodes of a scenario or snapshot, on which commands are executed. Operations in
// progress are completed first: nodes being removed are deleted, and pending pods run on the nodes
// that the planner assigns. Notes list this. Prices are in US dollars per hour.
type Fleet struct {
	title    string
	notes    []string
	snapshot planning.Snapshot
	stock    instancetypes.InstanceTypes
	prices   prices
	// unscheduled are the unschedulable pods, as namespace/name, with their reasons.
	unscheduled map[string]string
}

// Step is one command: it removes nodes and moves their pods as in Result.
type Step struct {
	// Nodes are indexes in the snapshot.
	Nodes  []int
	Result planning.Result
}

// completeInFlight completes the operations in progress.
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
		f.notes = append(f.notes, fmt.Sprintf("operations in progress are simulated as done: %s being removed, %s, %s for pending pods",
			FormatCount(going, "node"), FormatCount(waiting, "pending pod"), FormatCount(len(s.Nodes)+going-before, "new node")))
	}
}

// FormatCount formats a number with its noun, such as 1 node, 2 nodes or 2 EC2NodeClasses.
func FormatCount(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// skipWaits removes all waits from the snapshot: nodes that boot have booted. Unschedulable pods are set aside, because no
// simulated command could schedule them.
func (f *Fleet) skipWaits(s planning.Snapshot) {
	since := s.TakenAt.Add(-quietPeriod)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.LastPodEvent = since
		if n.Registered && !n.Initialized {
			n.Initialized, n.Ready, n.ExpectedPods = true, true, nil
		}
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

// Unscheduled returns the unschedulable pods, as namespace/name, with their reasons.
func (f *Fleet) Unscheduled() map[string]string { return f.unscheduled }

// Title returns the name in results.
func (f *Fleet) Title() string { return f.title }

// Notes returns the assumptions.
func (f *Fleet) Notes() []string { return f.notes }

// Snapshot returns the fleet as disruption reads it. The caller must not change it.
func (f *Fleet) Snapshot() (planning.Snapshot, instancetypes.InstanceTypes) {
	return f.snapshot, f.stock
}

// Size returns the number of nodes.
func (f *Fleet) Size() int { return len(f.snapshot.Nodes) }

// Execute executes steps one after the other. Their results must belong to the current snapshot.
// The caller adds method, candidates and effort.
func (f *Fleet) Execute(steps []Step) []scenario.Round {
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
		// Rounding may make the difference negative.
		round.CostAfter = max(cost, 0)
		come += len(round.Replacements)
		simulation.Commit(step.Result, step.Nodes...)
		out = append(out, round)
	}
	joined := simulation.ProjectSnapshot()
	nameReplacements(out, joined.Nodes[len(joined.Nodes)-come:])
	if waiting := f.listPodsWithoutPlan(steps); len(waiting) > 0 {
		joined = f.planPods(joined, waiting, &out[len(out)-1])
	}
	f.skipWaits(joined)
	return out
}

// listPodsWithoutPlan returns the pods of the removed nodes that no result mentions. The replacement
// of a static node is planned without its pods: they are evicted, and then planned like all pods.
func (f *Fleet) listPodsWithoutPlan(steps []Step) (out []planning.PodClass) {
	for _, step := range steps {
		planned := map[string]bool{}
		for _, n := range step.Result.Nominations {
			planned[n.Pod.UID] = true
		}
		for _, n := range step.Result.Nodes {
			for _, p := range n.Pods {
				planned[p.Pod.UID] = true
			}
		}
		for _, u := range step.Result.Unplaced {
			for _, pod := range u.Pods {
				planned[pod.UID] = true
			}
		}
		for _, i := range step.Nodes {
			for _, class := range f.snapshot.Nodes[i].Pods {
				class.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(p planning.PodRef) bool { return planned[p.UID] || p.Terminating })
				if len(class.Pods) > 0 {
					out = append(out, class)
				}
			}
		}
	}
	return out
}

// planPods plans the pods on the nodes of the snapshot and on new nodes, and adds them to the round.
func (f *Fleet) planPods(s planning.Snapshot, waiting []planning.PodClass, round *scenario.Round) planning.Snapshot {
	for _, class := range waiting {
		round.PodsMoved += len(class.Pods)
	}
	nodes := len(s.Nodes)
	s.PendingPods = slices.Concat(s.PendingPods, waiting)
	s = solver.NewSimulation(s, f.stock).ProjectSnapshot()
	for i := nodes; i < len(s.Nodes); i++ {
		round.CostAfter += f.prices.priceOf(&s.Nodes[i])
	}
	return s
}

// describeStep converts a step into a round, without its cost.
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

// nameReplacements sets the names of the rounds' new nodes, which are in the same order.
func nameReplacements(rounds []scenario.Round, nodes []planning.Node) {
	for i := range rounds {
		for j := range rounds[i].Replacements {
			rounds[i].Replacements[j].Name = nodes[0].Name
			nodes = nodes[1:]
		}
	}
}

// launchableOptions returns the options that the launch of a node would try; those of the plan
// if none is left, because reservations are not considered here.
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

// CostPerHour returns the cost of all nodes. Nodes without a known price cost nothing.
func (f *Fleet) CostPerHour() (sum float64) {
	for i := range f.snapshot.Nodes {
		sum += f.prices.priceOf(&f.snapshot.Nodes[i])
	}
	return sum
}

// FinalNodes returns all nodes with their pods, without daemons.
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

// podNames returns the names of the pods of all nodes.
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
