package disruption

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// drawPods returns one random class of pods for a node.
func drawPods(t *rapid.T, name string) planning.PodClass {
	class := fixture.Pods(name, rapid.IntRange(1, 3).Draw(t, "count"), rapid.SampledFrom([]string{"100m", "300m", "900m"}).Draw(t, "cpu"),
		rapid.SampledFrom([]string{"100Mi", "1Gi"}).Draw(t, "memory"))
	app := rapid.SampledFrom([]string{"web", "shop", "batch"}).Draw(t, "app")
	class.Spec.Labels = map[string]string{"app": app}
	switch rapid.IntRange(0, 29).Draw(t, "rule") {
	case 0:
		class.Spec.DoNotDisrupt = rapid.SampledFrom([]string{"true", "5m", "nonsense"}).Draw(t, "do-not-disrupt")
	case 1:
		class.Pods[0].BlockingPDB = "default/" + app
	case 2:
		class.Spec.DeletionCost = rapid.SampledFrom([]string{"-2147483647", "1000000"}).Draw(t, "deletion cost")
	case 3:
		class.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
		}}}
		class.Spec.Labels["app"] = "web"
		class.Pods = class.Pods[:1]
	}
	return class
}

func drawNode(t *rapid.T, i int) node {
	name := fmt.Sprint("n", i)
	n := fixture.Node(name, rapid.SampledFrom([]string{"t4g.medium", "t4g.large", "t4g.xlarge"}).Draw(t, "type"))
	for k := range rapid.IntRange(0, 3).Draw(t, "classes") {
		class := drawPods(t, fmt.Sprint(name, "-", k))
		was := n
		if fixture.With(class)(&was); fits(was) {
			n = was
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "drifts") == 0 {
		drift(time.Duration(i) * time.Minute)(&n)
	}
	switch rapid.IntRange(0, 30).Draw(t, "state") {
	case 0:
		n.MarkedForDeletion = true
	case 1:
		n.Ready = false
	case 2:
		n.Initialized = false
	case 3:
		n.DoNotDisrupt = true
	case 4:
		n.NominatedUntil = fixture.Taken.Add(time.Minute)
	case 5:
		n.HasTerminationGracePeriod = true
	case 6:
		n.Proposal = &planning.Proposal{ID: "x", Reason: "Empty", ConfirmedAt: fixture.Taken}
	case 7:
		n.LastPodEvent = fixture.Taken
	case 8, 9:
		unready(&n)
		n.Initialized = rapid.Bool().Draw(t, "initialized")
	case 10:
		unready(&n)
		n.Rebooting, n.Initialized = true, rapid.Bool().Draw(t, "initialized")
	}
	return n
}

// fits reports whether a node has capacity for its pods; With changes the sum in place.
func fits(n node) bool {
	for name, used := range n.Used {
		if has := n.Allocatable[name]; used.Cmp(has) > 0 {
			for _, class := range n.Pods[len(n.Pods)-1:] {
				for range class.Pods {
					for name, quantity := range class.Spec.Requests {
						left := n.Used[name]
						left.Sub(quantity)
						n.Used[name] = left
					}
				}
			}
			return false
		}
	}
	return true
}

func drawCluster(t *rapid.T) planning.Snapshot {
	pool := fixture.Pool(fixture.Budgets(rapid.SampledFrom([]string{"100%", "100%", "60%", "30%", "2"}).Draw(t, "budget")))
	pool.Spec.Disruption.Budgets = append(pool.Spec.Disruption.Budgets, karpenter.Budget{Nodes: "1", Reasons: []karpenter.DisruptionReason{
		rapid.SampledFrom([]karpenter.DisruptionReason{"Empty", "Drifted", "Underutilized", "None"}).Draw(t, "reason")}})
	pool.Spec.Disruption.ConsolidationPolicy = rapid.SampledFrom([]karpenter.ConsolidationPolicy{
		karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized, karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized,
		karpenter.ConsolidationPolicyBalanced, karpenter.ConsolidationPolicyWhenEmpty,
	}).Draw(t, "policy")
	s := fixture.Snapshot(pool)
	if rapid.Bool().Draw(t, "repair") {
		s = repaired(pool)
	}
	for i := range rapid.IntRange(1, 14).Draw(t, "nodes") {
		s.Nodes = append(s.Nodes, drawNode(t, i))
	}
	return s
}

// sound checks invariants of all findings, independent of how they were found.
func sound(t *rapid.T, s planning.Snapshot, found Findings) {
	seen, going := map[int]bool{}, 0
	disrupted, notReady, total := 0, 0, 0
	for _, n := range s.Nodes {
		if n.Initialized || n.Rebooting {
			total++
			if n.IsBeingRemoved() || n.Rebooting {
				disrupted++
			} else if !n.Ready {
				notReady++
			}
		}
	}
	for _, c := range found.Commands {
		busy := disrupted + notReady
		if c.Method == Repair {
			busy = disrupted
			if i := c.Nodes[0]; !s.Nodes[i].Initialized {
				if seen[i] {
					t.Fatalf("node %s is in two commands", s.Nodes[i].Name)
				}
				seen[i] = true
				continue
			}
		}
		going += len(c.Nodes)
		allowed, err := budget.AllowedDisruptions(&s.NodePools[0], total, c.Reason, s.TakenAt)
		if err != nil || busy+going > allowed {
			t.Fatalf("%s: %d nodes are removed or disrupted, the limit is %d (%v)", describeFindings(s, c), busy+going, allowed, err)
		}
		pods := map[string]bool{}
		for _, i := range c.Nodes {
			if seen[i] {
				t.Fatalf("node %s is in two commands", s.Nodes[i].Name)
			}
			seen[i] = true
			mayGo(t, s, c, s.Nodes[i], pods)
		}
		if c.Method != StaticDrift && c.PodsMoved > 0 {
			placed(t, s, c, pods, seen)
		}
		if (c.Method == MultiNode || c.Method == SingleNode) && c.SavedPerHour <= 0 {
			t.Fatalf("%s saves %v", describeFindings(s, c), c.SavedPerHour)
		}
	}
	for _, k := range found.Kept {
		if seen[k.Index] || k.Rule == "" {
			t.Fatalf("kept %+v", k)
		}
		seen[k.Index] = true
	}
	if len(seen) != len(s.Nodes) {
		t.Fatalf("%d of %d nodes have a command or a reason", len(seen), len(s.Nodes))
	}
}

func mayGo(t *rapid.T, s planning.Snapshot, c Command, n node, pods map[string]bool) {
	if n.MarkedForDeletion || n.Rebooting || !n.Initialized || n.DoNotDisrupt && c.Method != Repair || n.NominatedUntil.After(s.TakenAt) || n.Proposal != nil {
		t.Fatalf("%s removes %+v", describeFindings(s, c), n)
	}
	if quiet := s.TakenAt.Sub(n.LastPodEvent) >= time.Minute; !quiet && c.Method != Drift && c.Method != Repair {
		t.Fatalf("%s removes a node within consolidateAfter", describeFindings(s, c))
	}
	if (n.Drift != nil) != (c.Method == Drift) && c.Method == Drift {
		t.Fatalf("%s removes a node that has not drifted", describeFindings(s, c))
	}
	for _, class := range n.Pods {
		for _, pod := range class.Pods {
			pods[pod.UID] = true
			if (pod.BlockingPDB != "" || class.Spec.DoNotDisrupt == "true" || class.Spec.DoNotDisrupt == "5m") && c.Method != Repair && (c.Method != Drift || !n.HasTerminationGracePeriod) {
				t.Fatalf("%s moves pod %s, which is protected", describeFindings(s, c), pod.Name)
			}
		}
	}
}

// placed checks that each moved pod is placed once, on a node that is kept.
func placed(t *rapid.T, s planning.Snapshot, c Command, pods map[string]bool, gone map[int]bool) {
	if len(pods) != c.PodsMoved {
		t.Fatalf("%s reports %d moved pods, but moves %d", describeFindings(s, c), c.PodsMoved, len(pods))
	}
	for _, n := range c.Result.Nominations {
		for i, host := range s.Nodes {
			if host.Name == n.Node && (gone[i] || host.MarkedForDeletion || !host.Initialized || !host.Ready || host.Proposal != nil) {
				t.Fatalf("%s moves a pod to %s, which is removed or not ready", describeFindings(s, c), n.Node)
			}
		}
		delete(pods, n.Pod.UID)
	}
	price := 0.0
	for _, n := range c.Result.Nodes {
		price += n.Offerings[len(n.Offerings)-1].PricePerHour
		for _, pod := range n.Pods {
			delete(pods, pod.Pod.UID)
		}
	}
	if len(pods) > 0 || len(c.Result.Unplaced) > 0 {
		t.Fatalf("%s leaves the pods %v without a node", describeFindings(s, c), pods)
	}
	if worst := c.SavedPerHour + c.Result.PricePerHour - price; worst <= 0 && c.Method != Drift && c.Method != Repair {
		t.Fatalf("%s saves %v if the most expensive options are launched", describeFindings(s, c), worst)
	}
}

// stock has the instance types of all these clusters.
var stock = fixture.Stock(fixture.Snapshot(fixture.Pool()))

// kubernetes checks with Kubernetes' own rules where the first command places the pods. Pods of nodes that were being
// removed before are in the result if they were planned onto a node of the command.
func kubernetes(t *rapid.T, s planning.Snapshot, c Command) {
	inResult := map[string]bool{}
	for _, n := range c.Result.Nominations {
		inResult[n.Pod.UID] = true
	}
	for _, n := range c.Result.Nodes {
		for _, pod := range n.Pods {
			inResult[pod.Pod.UID] = true
		}
	}
	batch := planning.Batch{Snapshot: s}
	batch.Snapshot.Nodes = slices.Clone(s.Nodes)
	for i := range batch.Snapshot.Nodes {
		n, removed := &batch.Snapshot.Nodes[i], slices.Contains(c.Nodes, i)
		if n.MarkedForDeletion = removed || n.IsBeingRemoved(); !n.MarkedForDeletion {
			continue
		}
		for _, class := range n.Pods {
			class.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(p planning.PodRef) bool { return !removed && !inResult[p.UID] })
			batch.Pending = append(batch.Pending, class)
		}
	}
	if err := planningtest.CheckResult(batch, cat, c.Result); err != nil {
		t.Fatalf("%s:\n%v", describeFindings(s, c), err)
	}
}

var cat = planningtest.NewCatalogue()

func TestCommandsKeepInvariants(t *testing.T) {
	methods := map[Method]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := drawCluster(t)
		before, _ := json.Marshal(s)
		found := Evaluate(s, stock, Options{})
		sound(t, s, found)
		for i, c := range found.Commands {
			if methods[c.Method]++; i == 0 {
				kubernetes(t, s, c)
			}
		}
		if again := Evaluate(s, stock, Options{}); fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", found) {
			t.Fatal("a second evaluation gives other findings")
		}
		if after, _ := json.Marshal(s); string(after) != string(before) {
			t.Fatal("the evaluation changed the snapshot")
		}
		// Proposed commands are found again in the next snapshot and confirmed.
		later := carrying(s, found, planning.ConfirmAfter)
		confirmed := 0
		for _, d := range decidePhases(&later, Evaluate(later, stock, Options{}).Commands) {
			if !d.Since.IsZero() {
				confirmed++
			}
		}
		if confirmed != len(found.Commands) {
			t.Fatalf("of %d proposals %d are confirmed: %v, then %v", len(found.Commands), confirmed, all(s, found), phases(later))
		}
	})
	t.Logf("commands: %v", methods)
	for _, m := range []Method{Emptiness, Drift, MultiNode, SingleNode} {
		if methods[m] == 0 {
			t.Errorf("the random clusters gave no command of %s", m)
		}
	}
}

// Each pass makes the cluster cheaper, until a pass finds nothing: no command is reverted later.
func TestConsolidationEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCluster(t)
		for i := range s.Nodes {
			s.Nodes[i].Drift, s.Nodes[i].MarkedForDeletion = nil, false
		}
		for pass := 0; ; pass++ {
			found := Evaluate(s, stock, Options{})
			if len(found.Commands) == 0 {
				return
			}
			if pass == 30 {
				t.Fatalf("consolidation does not end: %v", all(s, found))
			}
			simulation := solver.NewSimulation(s, stock)
			for _, c := range found.Commands {
				// A repair may cost the same.
				if c.SavedPerHour <= 0 && c.Method != Repair {
					t.Fatalf("%s saves %v", describeFindings(s, c), c.SavedPerHour)
				}
				simulation.Commit(c.Result, c.Nodes...)
			}
			s = simulation.ProjectSnapshot()
			s.TakenAt = s.TakenAt.Add(time.Hour)
		}
	})
}
