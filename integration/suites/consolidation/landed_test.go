package consolidation

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestConsolidationWithKubernetesPlacement consolidates TestConsolidation's fleet,
// in its full size, in a model with everything that takes time on a real control plane:
// proposals and their confirmation, booting nodes, drains that wait for
// PodDisruptionBudgets, and Kubernetes's scheduler, which does not follow the plan. The
// budget permits seven of 70 nodes at a time.
func TestConsolidationWithKubernetesPlacement(t *testing.T) {
	const seeds = 3
	dearer, moves := 0.0, 0.0
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			m := newModel(t, seed, full)
			fresh, took := m.play()
			pods := float64(full.pods(staying))
			t.Logf("after %s %d nodes cost %.3f times a new plan, with %.2f moves per pod", took, len(m.hosts), m.cost()/fresh, float64(m.moved)/pods)
			if m.cost() > 1.1*fresh || float64(m.moved) > 2*pods {
				t.Errorf("it ends at $%.2f/h, and a new plan costs $%.2f/h, with %d moves of %.0f pods", m.cost(), fresh, m.moved, pods)
			}
			dearer, moves = dearer+m.cost()/fresh/seeds, moves+float64(m.moved)/pods/seeds
		})
	}
	t.Logf("on average it ends at %.3f times a new plan, with %.2f moves per pod", dearer, moves)
	if dearer > 1.08 || moves > 1.8 {
		t.Errorf("on average it ends at %.3f times a new plan, with %.2f moves per pod", dearer, moves)
	}
}

// play scales the fleet down and lets Joist consolidate it until it is at rest. It
// returns the price of a new plan, in US dollars per hour, and the duration.
func (m *model) play() (fresh float64, took time.Duration) {
	const every, rest, limit = 10 * time.Second, 90 * time.Second, 40 * time.Minute
	m.up()
	m.apart()
	m.sell("2", "4", "8")
	fresh = m.fresh()
	began, busy := m.now, m.now
	for m.now.Sub(busy) < rest {
		if m.now.Sub(began) > limit {
			m.Fatalf("consolidation did not finish within %s", limit)
		}
		for range every / time.Second {
			m.second()
		}
		if m.consolidate() || len(m.commands)+len(m.waiting) > 0 {
			busy = m.now
		}
	}
	return fresh, busy.Sub(began)
}

// up creates the fleet.
func (m *model) up() {
	for _, d := range m.apps {
		for range d.replicas {
			m.create(d)
		}
	}
	m.rng.Shuffle(len(m.waiting), func(i, j int) { m.waiting[i], m.waiting[j] = m.waiting[j], m.waiting[i] })
	for range 90 {
		m.second()
	}
	if len(m.waiting) > 0 {
		m.Fatalf("%d pods are pending", len(m.waiting))
	}
}

// apart removes two of three pods in a ReplicaSet's order: first the pods that share a node
// with most pods of the same set.
func (m *model) apart() {
	for _, d := range m.apps {
		for len(d.pods) > d.stay {
			most := slices.MaxFunc(d.pods, func(a, b *replica) int { return a.on.counts[d.name] - b.on.counts[d.name] }).on.counts[d.name]
			var crowded []*replica
			for _, p := range d.pods {
				if p.on.counts[d.name] == most {
					crowded = append(crowded, p)
				}
			}
			m.remove(crowded[m.rng.IntN(len(crowded))])
		}
	}
}

// fresh returns the price of a plan for all pods, in US dollars per hour.
func (m *model) fresh() float64 {
	var pending []planning.PodClass
	for _, d := range m.apps {
		class := planning.PodClass{Spec: d.spec}
		for _, p := range d.pods {
			class.Pods = append(class.Pods, p.ref(false))
		}
		pending = append(pending, class)
	}
	return solver.SolveWithTypes(planning.Batch{Outbox: "model", Seq: 1, Snapshot: m.base, Pending: pending}, m.stock).PricePerHour
}

// cost returns the price of all nodes, in US dollars per hour.
func (m *model) cost() (sum float64) {
	for _, h := range m.hosts {
		sum += h.price
	}
	return sum
}

// consolidate runs disruption, and applies its proposals as lifecycle would. It reports
// whether there was a proposal.
func (m *model) consolidate() bool {
	s := m.snapshot()
	found := disruption.Evaluate(s, m.stock, disruption.Options{})
	if len(found.Problems) > 0 {
		m.Fatal(found.Problems)
	}
	kept := map[string]bool{}
	for i := range found.Commands {
		c := &found.Commands[i]
		kept[c.Proposal] = true
		switch {
		case c.Since.IsZero():
			for _, k := range c.Nodes {
				m.hosts[k].node.Proposal = &planning.Proposal{ID: c.Proposal, Method: string(c.Method), Reason: string(c.Reason), ProposedAt: m.now}
			}
		case m.now.Sub(c.Since) >= planning.ConfirmAfter:
			m.act(c)
		}
	}
	dropped := false
	for _, h := range m.hosts {
		if p := h.node.Proposal; p != nil && p.ConfirmedAt.IsZero() && !kept[p.ID] {
			h.node.Proposal, dropped = nil, true
		}
	}
	return dropped || len(found.Commands) > 0
}

// act launches replacements and disrupts nodes. The snapshot's nodes come first; new ones
// are appended.
func (m *model) act(c *disruption.Command) {
	out := &replacing{}
	for _, k := range c.Nodes {
		out.nodes = append(out.nodes, m.hosts[k])
	}
	var names []string
	for i := range c.Result.Nodes {
		h := m.launch(&c.Result.Nodes[i])
		h.cause = replacement
		out.came, names = append(out.came, h), append(names, h.node.Name)
	}
	for _, h := range out.nodes {
		acting := *h.node.Proposal
		acting.ConfirmedAt, acting.Replacements = m.now, names
		h.node.Proposal, h.going = &acting, out
	}
	m.commands = append(m.commands, out)
}
