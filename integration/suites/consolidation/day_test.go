package consolidation

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	dice "math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// step is the interval of changes in a replayed day.
const step = 10 * time.Minute

// change has the names of the pods that are created and deleted at one step.
type change struct{ born, died []string }

// apps are workloads, with the requests of a pod and the maximum number of pods.
var apps = []struct {
	name, cpu, memory string
	most              int
}{
	{"web", "500m", "1Gi", 40}, {"shop", "1", "2Gi", 20}, {"search", "2", "8Gi", 10}, {"mail", "250m", "512Mi", 30},
	{"image", "1500m", "1Gi", 16}, {"cart", "300m", "2Gi", 24}, {"feed", "700m", "3Gi", 20}, {"batch", "1", "4Gi", 24},
}

func rand(seed uint64) *dice.Rand { return dice.New(dice.NewPCG(seed, seed)) }

// write draws the changes of a day: each app follows the time of day, with noise, and
// sometimes some of its pods are replaced. Names are never reused.
func write(rng *dice.Rand) []change {
	alive, next := map[string][]string{}, 0
	var out []change
	for at := range int(24 * time.Hour / step) {
		var now change
		for i, app := range apps {
			hour := float64(at)*step.Hours() + 0.5*float64(i)
			wanted := int(float64(app.most) * (0.1 + 0.4*(1-math.Cos(hour*math.Pi/12)) + 0.1*rng.Float64()))
			pods := alive[app.name]
			for len(pods) > wanted || len(pods) > 0 && rng.IntN(12) == 0 {
				k := rng.IntN(len(pods))
				now.died = append(now.died, pods[k])
				pods = slices.Delete(pods, k, k+1)
			}
			for ; len(pods) < wanted; next++ {
				name := fmt.Sprintf("%s-%d", app.name, next)
				pods, now.born = append(pods, name), append(now.born, name)
			}
			alive[app.name] = pods
		}
		out = append(out, now)
	}
	return out
}

// pool returns a pool in which consolidation may remove every node, with pairs of
// annotations.
func pool(annotations ...string) karpenter.NodePool {
	p := planningtest.NewNodePool()
	p.Spec.Limits, p.Spec.Template.Spec.ExpireAfter = nil, karpenter.NillableDuration{}
	p.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceCategory, Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
		{Key: karpenter.LabelInstanceGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}},
		{Key: karpenter.LabelInstanceCPU, Operator: corev1.NodeSelectorOpIn, Values: []string{"2", "4", "8"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeOnDemand}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.ArchitectureARM64}},
	}
	p.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0)
	p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "20%"}}
	p.Annotations = map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

// calm returns a pool in which consolidation removes only empty nodes.
func calm() karpenter.NodePool {
	p := pool()
	p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty
	return p
}

// move is a pod that consolidation moved.
type move struct {
	at       time.Time
	pod, app string
	age      time.Duration
	// pods is the number of the app's pods.
	pods int
}

// day is a cluster during the day.
type day struct {
	now     time.Time
	base    planning.Snapshot
	stock   instancetypes.InstanceTypes
	types   map[string]instancetypes.Type
	nodes   []*machine
	replica map[string]int
	// died has the times at which pods were scaled down.
	died map[string]time.Time

	dollars                  float64
	moves                    []move
	commands, launched, born int
}

// machine is a node; pods has the pods' creation times by name.
type machine struct {
	node  planning.Node
	price float64
	pods  map[string]time.Time
}

// replay applies the changes of a day to a cluster with the pool.
func replay(t *testing.T, script []change, p karpenter.NodePool) *day {
	t.Helper()
	d := &day{now: planningtest.Now, base: planningtest.NewBatch().Snapshot, replica: map[string]int{}, died: map[string]time.Time{}, types: map[string]instancetypes.Type{}}
	d.base.NodePools = []karpenter.NodePool{p}
	d.stock = instancetypes.New(d.base, planningtest.NewCatalogue())
	for _, kind := range d.stock.TypesForPool(p.Name, d.base.NodeClasses[0].Name) {
		d.types[kind.Name] = kind
	}
	for _, now := range script {
		d.consolidate(t)
		d.change(t, now)
		for _, m := range d.nodes {
			d.dollars += m.price * step.Hours()
		}
		d.now = d.now.Add(step)
	}
	return d
}

// change deletes and creates pods.
func (d *day) change(t *testing.T, now change) {
	t.Helper()
	for _, name := range now.died {
		d.replica[appOf(name)]--
		d.died[name] = d.now
		for _, m := range d.nodes {
			delete(m.pods, name)
		}
	}
	batch := planning.Batch{Outbox: "day", Seq: 1, Snapshot: d.snapshot()}
	for _, name := range now.born {
		d.replica[appOf(name)]++
		batch.Pending = append(batch.Pending, planning.PodClass{Spec: specs[appOf(name)], Pods: []planning.PodRef{ref(name, d.now)}})
	}
	d.born += len(now.born)
	plan := solver.SolveWithTypes(batch, d.stock)
	if len(plan.Unplaced) > 0 {
		t.Fatalf("unplaced pods: %+v", plan.Unplaced[0])
	}
	d.settle(plan)
}

// consolidate immediately applies disruption's command.
func (d *day) consolidate(t *testing.T) {
	t.Helper()
	s := d.snapshot()
	found := disruption.Evaluate(s, d.stock, disruption.Options{})
	if len(found.Problems) > 0 {
		t.Fatal(found.Problems)
	}
	gone := map[string]bool{}
	for _, c := range found.Commands {
		d.commands++
		for _, i := range c.Nodes {
			gone[s.Nodes[i].Name] = true
		}
	}
	for _, m := range d.nodes {
		if gone[m.node.Name] {
			for _, name := range slices.Sorted(maps.Keys(m.pods)) {
				app := appOf(name)
				d.moves = append(d.moves, move{d.now, name, app, d.now.Sub(m.pods[name]), d.replica[app]})
			}
		}
	}
	d.nodes = slices.DeleteFunc(d.nodes, func(m *machine) bool { return gone[m.node.Name] })
	for _, c := range found.Commands {
		d.settle(c.Result)
	}
}

// settle launches the result's nodes and binds its pods. A moved pod is a new pod.
func (d *day) settle(r planning.Result) {
	for _, n := range r.Nominations {
		at := slices.IndexFunc(d.nodes, func(m *machine) bool { return m.node.Name == n.Node })
		d.nodes[at].pods[n.Pod.Name] = d.now
	}
	for i := range r.Nodes {
		m := d.launch(&r.Nodes[i])
		for _, pod := range r.Nodes[i].Pods {
			m.pods[pod.Pod.Name] = d.now
		}
	}
}

func (d *day) launch(n *planning.PlannedNode) *machine {
	o := n.Offerings[0]
	kind := d.types[o.InstanceType]
	name := fmt.Sprintf("node-%04d", d.launched)
	d.launched++
	labels := maps.Clone(kind.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: o.Zone, corev1.LabelTopologyRegion: planningtest.Region,
		karpenter.CapacityTypeLabelKey: o.CapacityType, karpenter.NodePoolLabelKey: n.NodePool,
	})
	m := &machine{price: o.PricePerHour, pods: map[string]time.Time{}, node: planning.Node{
		Name: name, Claim: name, ClaimUID: "uid-" + name, NodePool: n.NodePool, Instance: "i-" + name, Labels: labels,
		Allocatable: kind.Allocatable, Capacity: kind.Capacity,
		Launched: true, Registered: true, Initialized: true, Ready: true, InitializedAt: d.now, Created: d.now,
	}}
	d.nodes = append(d.nodes, m)
	return m
}

// snapshot returns the watcher's snapshot.
func (d *day) snapshot() planning.Snapshot {
	s := d.base
	s.TakenAt, s.Nodes = d.now, nil
	for _, m := range d.nodes {
		n := m.node
		n.Used = corev1.ResourceList{}
		for _, name := range slices.SortedFunc(maps.Keys(m.pods), func(a, b string) int { return cmp.Or(cmp.Compare(appOf(a), appOf(b)), cmp.Compare(a, b)) }) {
			spec := specs[appOf(name)]
			for what, amount := range spec.Requests {
				sum := n.Used[what]
				sum.Add(amount)
				n.Used[what] = sum
			}
			if last := len(n.Pods) - 1; last < 0 || n.Pods[last].Pods[0].Workload != appOf(name) {
				n.Pods = append(n.Pods, planning.PodClass{Spec: spec})
			}
			class := &n.Pods[len(n.Pods)-1]
			class.Pods = append(class.Pods, ref(name, m.pods[name]))
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// specs are the specs of the apps' pods.
var specs = func() map[string]planning.PodSpec {
	out := map[string]planning.PodSpec{}
	for _, app := range apps {
		out[app.name] = planningtest.NewPods(app.name, 0, app.cpu, app.memory).Spec
	}
	return out
}()

func ref(name string, created time.Time) planning.PodRef {
	return planning.PodRef{Name: name, UID: name, Created: created, Workload: appOf(name)}
}

func appOf(pod string) string {
	for _, app := range apps {
		if len(pod) > len(app.name) && pod[:len(app.name)] == app.name {
			return app.name
		}
	}
	return ""
}

// beyond returns where more than a share of an app's pods were moved within an hour, or a
// pod younger than the cool-down was moved. Pods that were scaled down after a move are
// not counted.
func (d *day) beyond(part float64, cooldown time.Duration) string {
	for i, last := range d.moves {
		if last.age < cooldown {
			return fmt.Sprintf("at %s a pod of %s was moved at the age of %s", last.at, last.app, last.age)
		}
		count := 0
		for _, m := range d.moves[:i+1] {
			gone, died := d.died[m.pod]
			if m.app == last.app && last.at.Sub(m.at) < time.Hour && (!died || !gone.Before(last.at)) {
				count++
			}
		}
		if most := int(math.Ceil(part * float64(last.pods))); count > most {
			return fmt.Sprintf("until %s %d pods of %s were moved within an hour, the limit is %d of %d", last.at, count, last.app, most, last.pods)
		}
	}
	return ""
}
