package planvalidator

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CheckConsolidation returns everything that is wrong with a consolidation, round
// by round; none for a valid one. It carries out every round, asks of the cluster
// after it what it would ask of a plan for the pods that moved, and of the round
// whether the NodePools allow it and whether it saves. Budgets with a schedule are
// left out, because a scenario has no time.
func CheckConsolidation(s *Scenario, c *Consolidation) []Violation {
	p := &replay{now: *s, cost: s.nodesCost()}
	p.now.Pods = nil
	p.same("nodes", len(s.Nodes), c.Nodes)
	p.same("pods", s.running(), c.Pods)
	p.price("cost before", p.cost, c.CostBefore)
	moved := 0
	for i := range c.Rounds {
		p.prefix = fmt.Sprintf("round %d: ", i+1)
		p.round(&c.Rounds[i])
		moved += c.Rounds[i].PodsMoved
	}
	p.prefix = ""
	p.same("pods moved", moved, c.PodsMoved)
	p.same("nodes after", len(p.now.Nodes), c.NodesAfter)
	p.price("cost after", p.cost, c.CostAfter)
	p.final(c.FinalNodes)
	return p.out
}

// replay is a scenario under way.
type replay struct {
	now    Scenario
	cost   float64
	prefix string
	out    report
}

func (p *replay) add(rule Rule, subject, detail string, args ...any) {
	p.out.add(rule, p.prefix+subject, detail, args...)
}

func (p *replay) same(what string, are, says int) {
	if are != says {
		p.add(Sums, what, "it says %d and there are %d", says, are)
	}
}

func (p *replay) price(what string, is, says float64) {
	if math.Abs(is-says) > cent*float64(1+len(p.now.Nodes)) {
		p.add(Sums, what, "it says %f and it is %f", says, is)
	}
}

// round carries out one command.
func (p *replay) round(r *Round) {
	gone := p.gone(r.Removed)
	p.budgets(r, gone)
	p.policies(r, gone)
	next := p.now
	next.Nodes, next.Pods = nil, nil
	for _, n := range p.now.Nodes {
		if !gone[n.Name] {
			next.Nodes = append(next.Nodes, n)
			continue
		}
		for i := range n.Pods {
			if !ofDaemon(&n.Pods[i]) {
				next.Pods = append(next.Pods, n.Pods[i])
			}
		}
	}
	p.same("pods moved", len(next.Pods), r.PodsMoved)
	plan := r.plan(len(next.Pods))
	p.limits(plan, gone)
	found := &report{}
	w := newWorld(&next, plan, found)
	w.check(found)
	for _, v := range *found {
		p.add(v.Rule, v.Subject, "%s", v.Detail)
	}
	p.settle(w)
	p.saves(r, len(gone))
}

// gone are the nodes that are removed.
func (p *replay) gone(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		if out[name] || !slices.ContainsFunc(p.now.Nodes, func(n Node) bool { return n.Name == name }) {
			p.add(Once, name, "it is removed and is not there")
		}
		out[name] = true
	}
	if len(names) == 0 {
		p.add(Once, "the command", "it removes no node")
	}
	return out
}

// plan is the round as a plan for the pods that move.
func (r *Round) plan(pods int) *Result {
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

// limits hold while the nodes that go are still there, for pools that ask for it. For
// others they hold without these, as Karpenter has it.
func (p *replay) limits(plan *Result, gone map[string]bool) {
	both := p.now
	both.Nodes, both.Pods = nil, nil
	both.NodePools = slices.DeleteFunc(slices.Clone(both.NodePools), func(pool NodePool) bool { return pool.Metadata.Annotations["joist.sh/limits"] != "strict" })
	for _, n := range p.now.Nodes {
		if gone[n.Name] {
			both.Pods = append(both.Pods, n.Pods...)
			n.Pods = nil
		}
		both.Nodes = append(both.Nodes, n)
	}
	found := &report{}
	newWorld(&both, plan, &report{}).limits(found)
	for _, v := range *found {
		p.add(v.Rule, v.Subject, "%s, beside those that go", v.Detail)
	}
}

// settle makes the cluster after the round the one that is.
func (p *replay) settle(w *world) {
	names := map[string]bool{}
	p.now.Nodes, p.now.Pods = nil, nil
	for _, n := range w.nodes {
		one := Node{Name: n.name, NodePool: n.pool.Metadata.Name, InstanceType: n.machine.Name, Zone: n.place.offering.Zone, CapacityType: n.place.offering.CapacityType}
		if n.plan != nil {
			one.Name = n.plan.Name
		}
		if one.Name == "" || names[one.Name] {
			p.add(Once, n.name, "it is called %q, which is no name of its own", one.Name)
		}
		names[one.Name] = true
		for _, pod := range n.pods {
			one.Pods = append(one.Pods, *pod.Pod)
		}
		p.now.Nodes = append(p.now.Nodes, one)
	}
}

// saves asks whether the round made the cluster cheaper, or smaller at its price.
func (p *replay) saves(r *Round, gone int) {
	was := p.cost
	p.cost = p.now.nodesCost()
	p.price("cost after", p.cost, r.CostAfter)
	smaller := len(r.Replacements) < gone
	if reason(r.Method) != drifted && (p.cost > was+cent || p.cost > was-cent && !smaller) {
		p.add(Saves, "the command", "the nodes cost %f and cost %f before", p.cost, was)
	}
}

// final compares the nodes at the end with those that the rounds lead to.
func (p *replay) final(says []FinalNode) {
	said := map[string]FinalNode{}
	for _, n := range says {
		said[n.Name] = n
	}
	p.same("final nodes", len(said), len(says))
	for _, n := range p.now.Nodes {
		want := FinalNode{Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType}
		for i := range n.Pods {
			if !ofDaemon(&n.Pods[i]) {
				want.Pods = append(want.Pods, key(&n.Pods[i]))
			}
		}
		slices.Sort(want.Pods)
		got, there := said[n.Name]
		delete(said, n.Name)
		got.Pods = slices.Sorted(slices.Values(got.Pods))
		if !there || fmt.Sprint(got) != fmt.Sprint(want) {
			p.add(Final, n.Name, "it says %v and it is %v", got, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		p.add(Final, name, "it is not there")
	}
}

// nodesCost is what the nodes cost in US dollars an hour.
func (s *Scenario) nodesCost() (sum float64) {
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

// running counts the pods on nodes, daemons left out.
func (s *Scenario) running() (count int) {
	for _, n := range s.Nodes {
		for i := range n.Pods {
			if !ofDaemon(&n.Pods[i]) {
				count++
			}
		}
	}
	return count
}

// ofDaemon pods belong to their node and go with it.
func ofDaemon(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" {
			return true
		}
	}
	return false
}
