package consolidation

import (
	"cmp"
	"fmt"
	"maps"
	dice "math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const (
	// bootTime is the time until a node of the model is initialized, and startTime the
	// time until a pod is ready, as on the real control plane with kwok.
	bootTime, startTime = 5 * time.Second, 2 * time.Second
	// expected is how long lifecycle does not count a replacement as empty.
	expected = time.Minute
	// nominated is how long a node is not disrupted on which a plan expects pods.
	nominated = 20 * time.Second
)

// room is an amount of millicores, bytes and pods.
type room [3]int64

func roomOf(list corev1.ResourceList) room {
	return room{list.Cpu().MilliValue(), list.Memory().Value(), list.Pods().Value()}
}

func (r room) fits(in room) bool { return r[0] <= in[0] && r[1] <= in[1] && r[2] <= in[2] }

func (r room) plus(other room, times int64) room {
	for d := range r {
		r[d] += times * other[d]
	}
	return r
}

// deployment is an app of the crowd in the model.
type deployment struct {
	app
	spec planning.PodSpec
	need room
	pods []*replica
	// capacityType is that of the nodes that the pods select; empty for any.
	capacityType string
}

// replica is a pod; on is nil while it is pending.
type replica struct {
	name           string
	app            *deployment
	on             *host
	created, ready time.Time
	cause          cause
}

// host is a node of the model.
type host struct {
	node      planning.Node
	zone      string
	price     float64
	all, used room
	// counts are its numbers of pods by app.
	counts map[string]int
	pods   []*replica
	boots  time.Time
	// podEvent is the last pod event as Karpenter records it: at most every ten seconds.
	podEvent time.Time
	// cause is why it was launched. ended is when it was removed, zero if it was not.
	cause cause
	ended time.Time
	// going is its command while it is disrupted.
	going *replacing
}

// replacing is a command in progress.
type replacing struct{ nodes, came []*host }

func (h *host) room() room { return h.all.plus(h.used, -1) }

// open reports whether pods may be scheduled to the host.
func (h *host) open() bool { return h.node.Initialized && h.going == nil }

// model is a cluster in steps of one second: Deployments with PodDisruptionBudgets, whose
// pods are placed as Kubernetes places them, and nodes that Joist launches and removes.
type model struct {
	*testing.T
	rng      *dice.Rand
	now      time.Time
	base     planning.Snapshot
	stock    instancetypes.InstanceTypes
	types    map[string]instancetypes.Type
	apps     []*deployment
	hosts    []*host
	waiting  []*replica
	commands []*replacing

	// launches are all hosts ever, in the order of their launch.
	launches    []*host
	born, moved int
	// start is the time until a pod is ready.
	start time.Duration
	// planUpstream plans the waiting pods with Karpenter; nil plans with Joist.
	planUpstream func()
}

func newModel(t *testing.T, seed uint64, of size) *model {
	m := &model{T: t, start: startTime, rng: rand(seed), now: planningtest.Now, base: planningtest.NewBatch().Snapshot, types: map[string]instancetypes.Type{}}
	m.sell("4")
	for _, a := range of.apps {
		d := &deployment{app: a, spec: planningtest.NewPods(a.name, 0, a.cpu, a.memory).Spec}
		d.need = roomOf(d.spec.Requests)
		m.apps = append(m.apps, d)
	}
	return m
}

// sell sets the core counts of the instance types in the pool of testdata/pool.yaml.
func (m *model) sell(cores ...string) {
	p := pool()
	p.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceFamily, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6g", "m7g", "m6i", "m7i", "m5", "c6g", "c7g", "r6g"}},
		{Key: karpenter.LabelInstanceCPU, Operator: corev1.NodeSelectorOpIn, Values: cores},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeOnDemand}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.ArchitectureARM64, karpenter.ArchitectureAMD64}},
	}
	p.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(5 * time.Second)
	p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "10%"}}
	m.offer(p)
}

// offer sets the NodePool.
func (m *model) offer(p karpenter.NodePool) {
	m.base.NodePools = []karpenter.NodePool{p}
	m.stock = instancetypes.New(m.base, planningtest.NewCatalogue())
	for _, kind := range m.stock.TypesForPool(p.Name, m.base.NodeClasses[0].Name) {
		m.types[kind.Name] = kind
	}
}

func (m *model) create(d *deployment) *replica {
	m.born++
	p := &replica{name: fmt.Sprintf("%s-%05d", d.name, m.born), app: d, created: m.now}
	d.pods, m.waiting = append(d.pods, p), append(m.waiting, p)
	return p
}

func (m *model) bind(p *replica, h *host) {
	p.on, p.ready = h, m.now.Add(m.start)
	h.pods, h.used = append(h.pods, p), h.used.plus(p.app.need, 1)
	h.counts[p.app.name]++
	m.recordPodEvent(h)
}

func (m *model) recordPodEvent(h *host) {
	h.node.LastPodEvent = m.now
	if m.now.Sub(h.podEvent) >= 10*time.Second {
		h.podEvent = m.now
	}
}

func (m *model) remove(p *replica) {
	same := func(other *replica) bool { return other == p }
	h := p.on
	h.pods, h.used = slices.DeleteFunc(h.pods, same), h.used.plus(p.app.need, -1)
	h.counts[p.app.name]--
	m.recordPodEvent(h)
	p.app.pods = slices.DeleteFunc(p.app.pods, same)
}

// spare returns how many pods of an app its PodDisruptionBudget permits to evict now.
func (m *model) spare(d *deployment) int {
	available := -d.kept
	for _, p := range d.pods {
		if m.isReady(p) {
			available++
		}
	}
	return available
}

// launch launches a planned node as the cheapest of its options.
func (m *model) launch(n *planning.PlannedNode) *host {
	o := n.Offerings[0]
	kind := m.types[o.InstanceType]
	name := fmt.Sprintf("node-%04d", len(m.launches))
	labels := maps.Clone(kind.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: o.Zone, corev1.LabelTopologyRegion: planningtest.Region,
		karpenter.CapacityTypeLabelKey: o.CapacityType, karpenter.NodePoolLabelKey: n.NodePool,
	})
	h := &host{
		zone: o.Zone, price: o.PricePerHour, all: roomOf(kind.Allocatable), counts: map[string]int{}, boots: m.now.Add(bootTime),
		node: planning.Node{
			Name: name, Claim: name, ClaimUID: "uid-" + name, NodePool: n.NodePool, Instance: "i-" + name, Labels: labels,
			Allocatable: kind.Allocatable, Capacity: kind.Capacity, Launched: true, Registered: true, Created: m.now,
			NominatedUntil: m.now.Add(nominated),
		},
	}
	m.hosts, m.launches = append(m.hosts, h), append(m.launches, h)
	return h
}

// second advances the model by one second.
func (m *model) second() {
	m.now = m.now.Add(time.Second)
	for _, h := range m.hosts {
		if n := &h.node; !n.Initialized && !m.now.Before(h.boots) {
			n.Initialized, n.Ready, n.InitializedAt, n.ExpectedPods = true, true, m.now, nil
		}
	}
	m.drain()
	m.schedule()
	m.plan()
}

// drain evicts the pods of nodes whose replacements are ready, as PodDisruptionBudgets
// permit, the largest pods first. A Deployment recreates each pod.
func (m *model) drain() {
	var leaving []*host
	for _, c := range m.commands {
		up := true
		for _, h := range c.came {
			up, h.node.NominatedUntil = up && h.node.Initialized, m.now.Add(expected)
		}
		if up {
			leaving = append(leaving, c.nodes...)
		}
	}
	m.rng.Shuffle(len(leaving), func(i, j int) { leaving[i], leaving[j] = leaving[j], leaving[i] })
	spare := map[*deployment]int{}
	for _, d := range m.apps {
		spare[d] = m.spare(d)
	}
	empty := map[*host]bool{}
	for _, h := range leaving {
		for _, p := range largestFirst(h.pods) {
			if spare[p.app] > 0 {
				spare[p.app]--
				m.remove(p)
				m.create(p.app).cause = eviction
				m.moved++
			}
		}
		empty[h] = len(h.pods) == 0
	}
	m.commands = slices.DeleteFunc(m.commands, func(c *replacing) bool {
		return !slices.ContainsFunc(c.nodes, func(h *host) bool { return !empty[h] })
	})
	m.hosts = slices.DeleteFunc(m.hosts, func(h *host) bool {
		gone := h.going != nil && !slices.Contains(m.commands, h.going)
		if gone {
			h.ended = m.now
		}
		return gone
	})
}

func largestFirst(pods []*replica) []*replica {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *replica) int {
		return cmp.Or(cmp.Compare(b.app.need[0], a.app.need[0]), cmp.Compare(b.app.need[1], a.app.need[1]))
	})
}

// schedule runs Kubernetes's scheduler.
func (m *model) schedule() {
	m.waiting = slices.DeleteFunc(m.waiting, func(p *replica) bool {
		h := scheduler{m.rng}.place(p, m.hosts)
		if h != nil {
			m.bind(p, h)
		}
		return h != nil
	})
}

// plan runs the planner for pods that have been pending for a second, unless a node that
// is not initialized yet was launched for all of them.
func (m *model) plan() {
	coming := map[string]bool{}
	for _, h := range m.hosts {
		for _, uid := range h.node.ExpectedPods {
			coming[uid] = true
		}
	}
	var pending []planning.PodClass
	anew := false
	for _, p := range m.waiting {
		if m.now.Sub(p.created) >= time.Second {
			pending = append(pending, planning.PodClass{Spec: p.app.spec, Pods: []planning.PodRef{p.ref(false)}})
			anew = anew || !coming[p.name]
		}
	}
	if !anew {
		return
	}
	if m.planUpstream != nil {
		m.planUpstream()
		return
	}
	s := m.snapshot()
	s.PendingPods = nil
	plan := solver.SolveWithTypes(planning.Batch{Outbox: "model", Seq: 1, Snapshot: s, Pending: pending}, m.stock)
	if len(plan.Unplaced) > 0 {
		m.Fatalf("unplaced pods: %+v", plan.Unplaced[0])
	}
	for _, n := range plan.Nominations {
		m.nominate(n.Claim)
	}
	for i := range plan.Nodes {
		h := m.launch(&plan.Nodes[i])
		for _, placed := range plan.Nodes[i].Pods {
			h.node.ExpectedPods = append(h.node.ExpectedPods, placed.Pod.UID)
		}
		m.recordCause(h)
	}
}

func (p *replica) ref(blocked bool) planning.PodRef {
	out := planning.PodRef{Name: p.name, UID: p.name, Created: p.created, Workload: p.app.name}
	if blocked {
		out.BlockingPDB = "default/" + p.app.name
	}
	return out
}

// snapshot returns the watcher's snapshot.
func (m *model) snapshot() planning.Snapshot {
	s := m.base
	s.TakenAt, s.Nodes = m.now, nil
	for _, h := range m.hosts {
		n := h.node
		n.Used, n.MarkedForDeletion = corev1.ResourceList{}, h.going != nil
		for _, d := range m.apps {
			class := planning.PodClass{Spec: d.spec}
			for _, p := range h.pods {
				if p.app != d {
					continue
				}
				class.Pods = append(class.Pods, p.ref(m.spare(d) <= 0))
				for what, amount := range d.spec.Requests {
					sum := n.Used[what]
					sum.Add(amount)
					n.Used[what] = sum
				}
			}
			if len(class.Pods) > 0 {
				n.Pods = append(n.Pods, class)
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	for _, p := range m.waiting {
		s.PendingPods = append(s.PendingPods, planning.PodClass{Spec: p.app.spec, Pods: []planning.PodRef{p.ref(false)}})
	}
	return s
}
