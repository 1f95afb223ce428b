package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// rest is how long nothing is taken to have happened.
const rest = 100 * 365 * 24 * time.Hour

// Shown is the nodes that a snapshot shows.
type Shown struct {
	title    string
	notes    []string
	snapshot scheduling.Snapshot
	stock    scheduling.Stock
	prices   prices
	// left are the pods that found no place, as namespace/name, and why.
	left map[string]string
}

// settle lets what is under way happen.
func (f *Shown) settle(s scheduling.Snapshot) {
	s.Nodes = slices.Clone(s.Nodes)
	going, waiting := 0, 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Going = n.Going || n.Proposal != nil && !n.Proposal.Confirmed.IsZero()
		if n.Going {
			going++
		}
		n.Proposal, n.Nominated = nil, time.Time{}
	}
	for i := range s.Waiting {
		waiting += len(s.Waiting[i].Pods)
	}
	before := len(s.Nodes)
	s = scheduling.NewSimulation(s, f.stock).Joined()
	f.rest(s)
	if going+waiting > 0 {
		f.notes = append(f.notes, fmt.Sprintf("what is under way is taken to be done: %d nodes that go, %d pods that wait and %d new nodes for them",
			going, waiting, len(s.Nodes)+going-before))
	}
}

// rest is the snapshot when nobody waits for anything. Pods without a place are set
// aside: nothing that is played could find them one.
func (f *Shown) rest(s scheduling.Snapshot) {
	since := s.Taken.Add(-rest)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.LastPodEvent = since
		if n.Initialized {
			n.InitializedAt, n.ReadySince = since, since
		}
	}
	for i := range s.Waiting {
		for _, pod := range s.Waiting[i].Pods {
			if key := s.Waiting[i].Spec.Namespace + "/" + pod.Name; f.left[key] == "" {
				f.left[key] = "it waits already, and finds none"
			}
		}
	}
	s.Waiting = nil
	f.snapshot = s
}

// Left are the pods that found no place, as namespace/name, and why.
func (f *Shown) Left() map[string]string { return f.left }

// Title is what the fleet was called.
func (f *Shown) Title() string { return f.title }

// Notes say what was taken to be so.
func (f *Shown) Notes() []string { return f.notes }

// Show is the fleet as it is now.
func (f *Shown) Show() (scheduling.Snapshot, scheduling.Stock) { return f.snapshot, f.stock }

// Size is how many nodes there are.
func (f *Shown) Size() int { return len(f.snapshot.Nodes) }

// CarryOut does what the steps say.
func (f *Shown) CarryOut(steps []Step) []scenario.Round {
	simulation, names, cost := scheduling.NewSimulation(f.snapshot, f.stock), f.names(), f.CostPerHour()
	out := make([]scenario.Round, 0, len(steps))
	come := 0
	for _, step := range steps {
		step.Result.Nodes = slices.Clone(step.Result.Nodes)
		for i := range step.Result.Nodes {
			planned := &step.Result.Nodes[i]
			planned.Options = f.launchable(planned)
			cost += planned.Options[0].PricePerHour
		}
		for _, i := range step.Nodes {
			cost -= f.prices.of(&f.snapshot.Nodes[i])
		}
		round := f.round(step, names)
		// Taking off what was added up may leave less than nothing.
		round.CostAfter = max(cost, 0)
		come += len(round.Replacements)
		simulation.Take(step.Result, step.Nodes...)
		out = append(out, round)
	}
	joined := simulation.Joined()
	christen(out, joined.Nodes[len(joined.Nodes)-come:])
	f.rest(joined)
	return out
}

// round is a step as results tell it, but for what it costs.
func (f *Shown) round(step Step, names names) scenario.Round {
	r := &step.Result
	out := scenario.Round{Removed: []string{}, Replacements: []scenario.NewNode{}, Moved: map[string][]string{}, PodsMoved: len(r.Nominations)}
	for _, i := range step.Nodes {
		out.Removed = append(out.Removed, f.snapshot.Nodes[i].Name)
	}
	for i := range r.Nodes {
		out.Replacements = append(out.Replacements, f.described(&r.Nodes[i], names))
		out.PodsMoved += len(r.Nodes[i].Pods)
	}
	for _, n := range r.Nominations {
		on := cmp.Or(n.Node, n.Claim)
		out.Moved[on] = append(out.Moved[on], names.of(n.Namespace, n.Pod.Name))
	}
	for _, u := range r.Unplaced {
		for _, pod := range u.Pods {
			f.left[u.Namespace+"/"+pod.Name] = scenario.Reason(u.Rejections)
		}
	}
	return out
}

// christen tells the rounds what their nodes are called, which are in their order.
func christen(rounds []scenario.Round, nodes []scheduling.Node) {
	for i := range rounds {
		for j := range rounds[i].Replacements {
			rounds[i].Replacements[j].Name = nodes[0].Name
			nodes = nodes[1:]
		}
	}
}

// launchable are the options that the launch of a node would try. Where none is left,
// because reservations are not looked into here, they are those of the plan.
func (f *Shown) launchable(n *scheduling.PlannedNode) []scheduling.Option {
	exotic := map[string]bool{}
	for _, t := range f.stock.TypesOf(n.NodePool, n.NodeClass) {
		exotic[t.Name] = t.Exotic
	}
	if out := launchspec.Launchable(n, func(name string) bool { return exotic[name] }); len(out) > 0 {
		return out
	}
	return n.Options
}

// described is a planned node as results tell it.
func (f *Shown) described(n *scheduling.PlannedNode, names names) scenario.NewNode {
	first := n.Options[0]
	out := scenario.NewNode{
		NodePool: n.NodePool, InstanceType: first.InstanceType, Zone: first.Zone, CapacityType: first.CapacityType, Price: first.PricePerHour,
		Requests: n.Requests, Pods: []string{}, OptionTypes: []string{}, Labels: n.Requirements.Labels(),
	}
	maps.DeleteFunc(out.Labels, func(key, _ string) bool { return karpenter.WellKnownLabel(key) })
	for i := range f.snapshot.NodePools {
		if pool := &f.snapshot.NodePools[i]; pool.Name == n.NodePool {
			maps.DeleteFunc(out.Labels, func(key, _ string) bool { _, said := pool.Spec.Template.Labels[key]; return said })
		}
	}
	for _, pod := range n.Pods {
		out.Pods = append(out.Pods, names.of(pod.Namespace, pod.Pod.Name))
	}
	for _, o := range n.Options {
		if !slices.Contains(out.OptionTypes, o.InstanceType) {
			out.OptionTypes = append(out.OptionTypes, o.InstanceType)
		}
	}
	out.Options = len(out.OptionTypes)
	return out
}

// CostPerHour is what all nodes cost. Those whose price is not known cost nothing.
func (f *Shown) CostPerHour() (sum float64) {
	for i := range f.snapshot.Nodes {
		sum += f.prices.of(&f.snapshot.Nodes[i])
	}
	return sum
}

// FinalNodes lists the nodes with their pods.
func (f *Shown) FinalNodes() []scenario.FinalNode {
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

// names calls pods by their names, and those whose name two namespaces have by both.
type names map[string]bool

func (f *Shown) names() names {
	out := names{}
	for i := range f.snapshot.Nodes {
		for _, class := range f.snapshot.Nodes[i].Pods {
			for _, pod := range class.Pods {
				_, twice := out[pod.Name]
				out[pod.Name] = twice
			}
		}
	}
	return out
}

func (n names) of(namespace, name string) string {
	if n[name] {
		return namespace + "/" + name
	}
	return name
}
