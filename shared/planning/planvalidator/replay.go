package planvalidator

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CheckConsolidation returns all violations of a consolidation, round by round. It carries out each round, checks
// the cluster after it like a plan for the moved pods, and checks that the NodePools allow the round and that it
// saves. Budgets with a schedule are ignored, because a scenario has no time.
func CheckConsolidation(s *Scenario, c *Consolidation) []Violation {
	p := &replay{now: *s, cost: s.nodesPrice()}
	p.now.Pods = nil
	p.compareCount("nodes", len(s.Nodes), c.Nodes)
	p.compareCount("pods", s.countBoundPods(), c.Pods)
	p.comparePrice("cost before", p.cost, c.CostBefore)
	moved := 0
	for i := range c.Rounds {
		p.prefix = fmt.Sprintf("round %d: ", i+1)
		p.replayRound(&c.Rounds[i])
		moved += c.Rounds[i].PodsMoved
	}
	p.prefix = ""
	p.compareCount("pods moved", moved, c.PodsMoved)
	p.compareCount("nodes after", len(p.now.Nodes), c.NodesAfter)
	p.comparePrice("cost after", p.cost, c.CostAfter)
	p.checkFinalNodes(c.FinalNodes)
	return p.out
}

// replay is a scenario during the replay of its rounds.
type replay struct {
	now    Scenario
	cost   float64
	prefix string
	out    report
}

func (p *replay) add(rule Rule, subject, detail string, args ...any) {
	p.out.add(rule, p.prefix+subject, detail, args...)
}

func (p *replay) compareCount(what string, are, says int) {
	if are != says {
		p.add(Sums, what, "the result says %d, want %d", says, are)
	}
}

func (p *replay) comparePrice(what string, is, says float64) {
	if math.Abs(is-says) > priceTolerance*float64(1+len(p.now.Nodes)) {
		p.add(Sums, what, "the result says %f, want %f", says, is)
	}
}

// replayRound carries out one command.
func (p *replay) replayRound(r *Round) {
	gone := p.removedNodes(r.Removed)
	p.checkBudgets(r, gone)
	p.checkPolicies(r, gone)
	next := p.now
	next.Nodes, next.Pods = nil, nil
	for _, n := range p.now.Nodes {
		n.Removing = gone[n.Name]
		next.Nodes = append(next.Nodes, n)
		if !n.Removing {
			continue
		}
		for i := range n.Pods {
			if !isDaemonPod(&n.Pods[i]) {
				next.Pods = append(next.Pods, n.Pods[i])
			}
		}
	}
	p.compareCount("pods moved", len(next.Pods), r.PodsMoved)
	found := &report{}
	w := newFinalCluster(&next, r.toResult(len(next.Pods)), found)
	w.checkAll(found)
	for _, v := range *found {
		p.add(v.Rule, v.Subject, "%s", v.Detail)
	}
	p.applyRound(w)
	p.checkSavings(r, len(gone))
}

// removedNodes returns the nodes that the round removes.
func (p *replay) removedNodes(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		if out[name] || !slices.ContainsFunc(p.now.Nodes, func(n Node) bool { return n.Name == name }) {
			p.add(Once, name, "the removed node does not exist")
		}
		out[name] = true
	}
	if len(names) == 0 {
		p.add(Once, "the command", "the command removes no node")
	}
	return out
}

// toResult returns the round as a plan for the moved pods.
func (r *Round) toResult(pods int) *Result {
	out := &Result{Pods: pods, NewNodes: r.Replacements, ExistingPods: r.Moved, ExistingNodes: map[string]int{}}
	for _, n := range r.Replacements {
		out.Summary.Scheduled += len(n.Pods)
		out.Summary.DollarsPerHour += n.Price
	}
	for name, moved := range r.Moved {
		out.ExistingNodes[name] = len(moved)
		out.Summary.Scheduled += len(moved)
	}
	out.Summary.NewNodes = len(r.Replacements)
	return out
}

// applyRound makes the cluster after the round the current one.
func (p *replay) applyRound(w *finalCluster) {
	names := map[string]bool{}
	p.now.Nodes, p.now.Pods = nil, nil
	for _, n := range w.nodes {
		one := Node{Name: n.name, NodePool: n.pool.Metadata.Name, InstanceType: n.machine.Name, Zone: n.offering.Zone, CapacityType: n.offering.CapacityType}
		if n.plan != nil {
			one.Name = n.plan.Name
		}
		if one.Name == "" || names[one.Name] {
			p.add(Once, n.name, "the node name %q is empty or already used", one.Name)
		}
		names[one.Name] = true
		for _, pod := range n.pods {
			one.Pods = append(one.Pods, *pod.Pod)
		}
		p.now.Nodes = append(p.now.Nodes, one)
	}
}

// checkSavings checks that the round made the cluster cheaper, or smaller at its price.
func (p *replay) checkSavings(r *Round, gone int) {
	was := p.cost
	p.cost = p.now.nodesPrice()
	p.comparePrice("cost after", p.cost, r.CostAfter)
	smaller := len(r.Replacements) < gone
	if disruptionReason(r.Method) != drifted && (p.cost > was+priceTolerance || p.cost > was-priceTolerance && !smaller) {
		p.add(Saves, "the command", "the nodes cost %f after and %f before", p.cost, was)
	}
}

// checkFinalNodes compares the reported final nodes with the replayed ones.
func (p *replay) checkFinalNodes(says []FinalNode) {
	said := map[string]FinalNode{}
	for _, n := range says {
		said[n.Name] = n
	}
	p.compareCount("final nodes", len(said), len(says))
	for _, n := range p.now.Nodes {
		want := FinalNode{Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType}
		for i := range n.Pods {
			if !isDaemonPod(&n.Pods[i]) {
				want.Pods = append(want.Pods, podKey(&n.Pods[i]))
			}
		}
		slices.Sort(want.Pods)
		got, there := said[n.Name]
		delete(said, n.Name)
		got.Pods = slices.Sorted(slices.Values(got.Pods))
		if !there || fmt.Sprint(got) != fmt.Sprint(want) {
			p.add(Final, n.Name, "the result says %v, want %v", got, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		p.add(Final, name, "the node is missing from the result")
	}
}

// nodesPrice returns the price of all nodes in US dollars per hour.
func (s *Scenario) nodesPrice() (sum float64) {
	prices := map[[3]string]float64{}
	for _, t := range s.InstanceTypes {
		for _, o := range t.Offerings {
			prices[[3]string{t.Name, o.Zone, o.CapacityType}] = o.Price
		}
	}
	for _, n := range s.Nodes {
		sum += prices[[3]string{n.InstanceType, n.Zone, n.CapacityType}]
	}
	return sum
}

// countBoundPods counts the pods on nodes without daemons.
func (s *Scenario) countBoundPods() (count int) {
	for _, n := range s.Nodes {
		for i := range n.Pods {
			if !isDaemonPod(&n.Pods[i]) {
				count++
			}
		}
	}
	return count
}

// isDaemonPod reports whether the pod belongs to its node.
func isDaemonPod(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.APIVersion == "apps/v1" && owner.Kind == "DaemonSet" {
			return true
		}
	}
	return false
}
