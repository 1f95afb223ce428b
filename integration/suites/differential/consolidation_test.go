package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// TestConsolidationAgainstUpstream consolidates random small clusters of one NodePool
// with both, until there is nothing more to do. Every command of Joist is valid and saves
// money. The test logs both final prices; over all clusters Joist's is at most slightly
// higher.
func TestConsolidationAgainstUpstream(t *testing.T) {
	seen := &fleetTally{}
	rapid.Check(t, func(t *rapid.T) {
		s := fleet(t)
		text := written(s)
		compareFleets(t, text, seen)
	})
	t.Log(seen)
	if seen.ours > dearerMost*seen.theirs {
		t.Errorf("over all clusters Joist's nodes cost $%.2f an hour and Karpenter's $%.2f", seen.ours, seen.theirs)
	}
}

// dearerMost is the maximum ratio of Joist's price to upstream's over many clusters:
// sometimes either removes a set of nodes that leaves less for later sets.
const dearerMost = 1.03

// fleetTally sums up all clusters.
type fleetTally struct {
	clusters, changed, cheaper, alike, dearer, invalid int
	before, ours, theirs                               float64
	ourMoves, theirMoves                               int
	// example is a cluster in which Joist's result is more expensive.
	example string
}

func (f *fleetTally) String() string {
	return fmt.Sprintf("%d clusters, %d of them changed; ours is cheaper in %d, costs the same in %d and more in %d; upstream's is refused in %d; $%.2f an hour became %.2f of ours and %.2f of upstream's, by %d and %d moves\n%s",
		f.clusters, f.changed, f.cheaper, f.alike, f.dearer, f.invalid, f.before, f.ours, f.theirs, f.ourMoves, f.theirMoves, f.example)
}

func compareFleets(t fataler, text []byte, seen *fleetTally) {
	t.Helper()
	s, err := planvalidator.ParseScenario(text, nil)
	if err != nil {
		t.Fatalf("reading the scenario for the plan validator: %v", err)
	}
	us, err := ourFleet(text)
	if err != nil {
		t.Fatalf("%v\nscenario: %s", err, text)
	}
	if wrong := planvalidator.CheckConsolidation(s, us); len(wrong) > 0 || !us.Complete {
		t.Fatalf("ours is not valid, or not complete (%v): %v\nscenario: %s", us.Complete, wrong, text)
	}
	them, err := theirFleet(text)
	if err != nil {
		t.Fatalf("%v\nscenario: %s", err, text)
	}
	seen.clusters++
	if wrong := planvalidator.CheckConsolidation(s, them); len(wrong) > 0 || !them.Complete {
		seen.invalid++
		return
	}
	seen.add(us, them)
}

func (f *fleetTally) add(us, them *planvalidator.Consolidation) {
	if len(us.Rounds) > 0 {
		f.changed++
	}
	switch {
	case us.CostAfter < them.CostAfter-1e-9:
		f.cheaper++
	case us.CostAfter < them.CostAfter+1e-9:
		f.alike++
	default:
		f.dearer++
		f.example = fmt.Sprintf("ours: %s\ntheirs: %s", rounds(us), rounds(them))
	}
	f.before, f.ours, f.theirs = f.before+us.CostBefore, f.ours+us.CostAfter, f.theirs+them.CostAfter
	f.ourMoves, f.theirMoves = f.ourMoves+us.PodsMoved, f.theirMoves+them.PodsMoved
}

// rounds summarizes the commands.
func rounds(c *planvalidator.Consolidation) string {
	var out bytes.Buffer
	for _, r := range c.Rounds {
		fmt.Fprintf(&out, "%s %v →", r.Method, r.Removed)
		for _, n := range r.Replacements {
			fmt.Fprintf(&out, " %s/%s/%s", n.InstanceType, n.Zone, n.CapacityType)
		}
		fmt.Fprintf(&out, " %v $%.4f; ", r.Moved, r.CostAfter)
	}
	return out.String()
}

// ourFleet consolidates a scenario with the joist command.
func ourFleet(text []byte) (*planvalidator.Consolidation, error) {
	defer hurry(text)()
	var stdout, stderr bytes.Buffer
	code := cli.Run(context.Background(), cli.Env{
		Args:  []string{"consolidate", "--scenario", "-", "-o", "json"},
		Stdin: bytes.NewReader(text), Stdout: &stdout, Stderr: &stderr, Now: time.Now,
	})
	if code != cli.ExitNothing {
		return nil, errors.New(stderr.String())
	}
	return planvalidator.ParseConsolidation(stdout.Bytes())
}

// theirFleet consolidates it with upstream's methods.
func theirFleet(text []byte) (*planvalidator.Consolidation, error) {
	s, err := karpenterbaseline.Parse(text, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario for Karpenter: %w", err)
	}
	result, err := karpenterbaseline.Consolidate(context.Background(), s, karpenterbaseline.Options{Concurrency: 1, Timeout: patience})
	if err != nil {
		return nil, err
	}
	written, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encoding Karpenter's consolidation: %w", err)
	}
	return planvalidator.ParseConsolidation(written)
}

// fleet draws a cluster of one pool.
func fleet(t *rapid.T) planvalidator.Scenario {
	s := planvalidator.Scenario{Name: "random", InstanceTypes: machines()}
	pool := onePool(t, features{}, "pool")
	pool.Spec.Template.Spec.Requirements = rapid.SampledFrom([][]planvalidator.Requirement{
		{wishes[1]}, {wishes[0]}, {wishes[1], wishes[4]}, {wishes[1], wishes[7]}, {wishes[0], wishes[11]},
	}).Draw(t, "requirements")
	pool.Spec.Disruption = planvalidator.Disruption{
		ConsolidateAfter: "0s", ConsolidationPolicy: rapid.SampledFrom([]string{"WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"}).Draw(t, "policy"),
		Budgets: []planvalidator.Budget{{Nodes: rapid.SampledFrom([]string{"100%", "100%", "50%", "1"}).Draw(t, "budget")}},
	}
	s.NodePools = []planvalidator.NodePool{pool}
	if rapid.Bool().Draw(t, "daemon") {
		s.DaemonSetPods = []corev1.Pod{sized("daemon", "100m", "128Mi")}
		s.DaemonSetPods[0].Namespace = "kube-system"
	}
	kinds := ordinary(pool)
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		s.Nodes = append(s.Nodes, inhabited(t, fmt.Sprintf("node-%d", i), kinds))
	}
	if rapid.Bool().Draw(t, "at its limits") {
		s.NodePools[0].Spec.Limits = taken(s)
	}
	return s
}

// taken returns how much of the limits a cluster's nodes use.
func taken(s planvalidator.Scenario) corev1.ResourceList {
	cpu := resource.Quantity{}
	for _, n := range s.Nodes {
		for _, m := range s.InstanceTypes {
			if m.Name == n.InstanceType {
				cpu.Add(*m.Capacity.Cpu())
			}
		}
	}
	return corev1.ResourceList{corev1.ResourceCPU: cpu, "nodes": *resource.NewQuantity(int64(len(s.Nodes)), resource.DecimalSI)}
}

// ordinary returns the offerings without devices that a pool could have launched.
func ordinary(pool planvalidator.NodePool) []planvalidator.Node {
	var all []planvalidator.Node
	for _, m := range machines() {
		for _, o := range m.Offerings {
			set := map[string]string{labelCapacityType: o.CapacityType, corev1.LabelArchStable: m.Arch, labelPrefix + "category": m.Labels[labelPrefix+"category"], labelPrefix + "cpu": m.Labels[labelPrefix+"cpu"]}
			fits := m.Labels[labelPrefix+"category"] != "g"
			for _, r := range pool.Spec.Template.Spec.Requirements {
				fits = fits && r.Matches(set)
			}
			if fits {
				all = append(all, planvalidator.Node{NodePool: pool.Metadata.Name, InstanceType: m.Name, Zone: o.Zone, CapacityType: o.CapacityType})
			}
		}
	}
	return all
}

// inhabited draws a node with pods that fit on it.
func inhabited(t *rapid.T, name string, kinds []planvalidator.Node) planvalidator.Node {
	n := rapid.SampledFrom(kinds).Draw(t, "kind")
	n.Name = name
	var kind planvalidator.InstanceType
	for _, m := range machines() {
		if m.Name == n.InstanceType {
			kind = m
		}
	}
	cpu, memory := kind.Capacity.Cpu().MilliValue()-180, kind.Capacity.Memory().Value()>>20-428
	apart := false
	for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
		size := rapid.SampledFrom([]struct{ cpu, memory int64 }{{100, 128}, {250, 512}, {500, 2048}, {900, 900}, {1500, 6000}, {3000, 3000}}).Draw(t, "size")
		if size.cpu > cpu || size.memory > memory {
			continue
		}
		cpu, memory = cpu-size.cpu, memory-size.memory
		p := sized(fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("%dm", size.cpu), fmt.Sprintf("%dMi", size.memory))
		switch rapid.IntRange(0, 9).Draw(t, "sort") {
		case 0:
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: n.Zone}
		case 1:
			p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: kind.Arch}
		case 2:
			if !apart {
				alone(&p)
			}
			apart = true
		case 3:
			if rapid.Bool().Draw(t, "protected") {
				p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
			}
		}
		n.Pods = append(n.Pods, p)
	}
	return n
}

func sized(name, cpu, memory string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "owner", UID: "owner"}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
		}}}}},
	}
}

// alone keeps pods of one kind on different nodes.
func alone(p *corev1.Pod) {
	p.Labels = map[string]string{"app": "alone"}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "alone"}},
	}}}}
}
