package thresholds_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const day = 24 * time.Hour

// pods returns pods of a workload, created this long ago.
func pods(workload string, count int, age time.Duration, edits ...func(*planning.PodClass)) planning.PodClass {
	class := fixture.Pods(workload, count, "100m", "100Mi")
	for i := range class.Pods {
		class.Pods[i].Workload, class.Pods[i].Created = workload, fixture.Taken.Add(-age)
	}
	for _, edit := range edits {
		edit(&class)
	}
	return class
}

func going(class *planning.PodClass) { class.Pods[0].Terminating = true }

func stateful(class *planning.PodClass) { class.Spec.OwnerKind = "StatefulSet" }

// node returns a node that joined a day ago.
func node(name string, classes ...planning.PodClass) planning.Node {
	return fixture.Node(name, "t4g.large", fixture.With(classes...), joined(day))
}

func joined(ago time.Duration) func(*planning.Node) {
	return func(n *planning.Node) { n.InitializedAt = fixture.Taken.Add(-ago) }
}

// restrained returns the thresholds and candidates of a NodePool with these annotations.
func restrained(annotations map[string]string, nodes ...planning.Node) (thresholds.Thresholds, []*candidate.Candidate) {
	s := fixture.Snapshot(fixture.Pool(), nodes...)
	s.NodePools[0].Annotations = annotations
	return thresholds.New(&s), findAll(s)
}

func findAll(s planning.Snapshot) []*candidate.Candidate {
	list := candidate.FindAll(&s, fixture.Stock(s))
	var out []*candidate.Candidate
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

func TestCheckNodeThresholds(t *testing.T) {
	cool := map[string]string{policy.Cooldown: "30m"}
	two, fifth, none := map[string]string{policy.EvictionsPerHour: "2"}, map[string]string{policy.EvictionsPerHour: "20%"}, map[string]string{policy.EvictionsPerHour: "0"}
	young := func(n planning.Node, ago time.Duration) planning.Node { joined(ago)(&n); return n }
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		node        planning.Node
		others      []planning.Node
		rule, told  string
	}{
		{"no thresholds", nil, young(node("a", pods("web", 3, 0)), 0), nil, "", ""},
		{"a required saving", map[string]string{policy.MinSaving: "1"}, young(node("a", pods("web", 3, 0)), 0), nil, "", ""},
		{"cool-down: young pod", cool, node("a", pods("web", 1, 30*time.Minute-1)), nil, "cool-down", "pod default/web-0 was created 29m59s ago; joist.sh/consolidation-cooldown requires 30m0s"},
		{"cool-down: over", cool, node("a", pods("web", 1, 30*time.Minute)), nil, "", ""},
		{"cool-down: young pod is terminating", cool, node("a", pods("web", 1, time.Minute, going)), nil, "", ""},
		{"cool-down: young node", cool, young(node("a"), 20*time.Minute), nil, "cool-down", "it joined 20m0s ago"},
		{"cool-down: older node", cool, young(node("a"), 30*time.Minute), nil, "", ""},
		{"cool-down: pod created in the future", cool, node("a", pods("web", 1, -time.Minute)), nil, "cool-down", "created"},
		{"evictions: at the limit", two, node("a", pods("web", 2, day)), nil, "", ""},
		{"evictions: more", two, node("a", pods("web", 3, day)), nil, "evictions-per-hour", "3 pods of default/web would move after 0 within the hour; joist.sh/consolidation-evictions-per-hour allows 2 of its 3"},
		{"evictions: each workload has its own limit", two, node("a", pods("web", 2, day), pods("shop", 2, day)), nil, "", ""},
		{"evictions: one pod was created within the hour", two, node("a", pods("web", 2, day)), []planning.Node{node("b", pods("web", 1, 59*time.Minute))}, "evictions-per-hour", "2 pods of default/web would move after 1 "},
		{"evictions: one pod was created an hour ago", two, node("a", pods("web", 2, day)), []planning.Node{node("b", pods("web", 1, time.Hour))}, "", ""},
		{"evictions: a pod of the node was created within the hour", two, node("a", pods("web", 1, 59*time.Minute)), nil, "evictions-per-hour", "no pod is moved twice in an hour"},
		{"evictions: one pod is on a node being deleted", two, node("a", pods("web", 2, day)), []planning.Node{{Name: "b", MarkedForDeletion: true, Pods: []planning.PodClass{pods("web", 1, day)}}}, "evictions-per-hour", "after 1 "},
		{"evictions: a terminating pod and its replacement count once", two, node("a", pods("web", 2, day, going)), []planning.Node{node("b", pods("web", 1, 0))}, "", ""},
		{"evictions: a terminating StatefulSet pod counts", two, node("a", pods("db", 2, day, stateful)), []planning.Node{node("b", pods("db", 1, day, stateful, going))}, "evictions-per-hour", "after 1 "},
		{"evictions: a percentage, rounded up", fifth, node("a", pods("web", 2, day)), []planning.Node{node("b", pods("web", 4, day))}, "", ""},
		{"evictions: more than a percentage", fifth, node("a", pods("web", 2, day)), []planning.Node{node("b", pods("web", 3, day))}, "evictions-per-hour", "allows 1 of its 5"},
		{"evictions: a limit of zero", none, node("a", pods("web", 1, day)), nil, "evictions-per-hour", "allows 0 of its 1"},
		{"evictions: a limit of zero, no pods", none, node("a"), nil, "", ""},
		{"evictions: pods without a workload are separate", two, node("a", pods("", 3, day)), nil, "", ""},
	} {
		r, list := restrained(tt.annotations, append([]planning.Node{tt.node}, tt.others...)...)
		if no := r.CheckNode(list[0]); no.Rule != tt.rule || !strings.Contains(no.Detail, tt.told) {
			t.Errorf("%s: got %+v, want %s: %s", tt.name, no, tt.rule, tt.told)
		}
		// For a node removed as empty only the limit of evictions applies.
		wanted := tt.rule
		if wanted == thresholds.RuleCooldown {
			wanted = ""
		}
		if no := r.CheckEmpty(list[0]); no.Rule != wanted {
			t.Errorf("%s, empty: got %+v, want %q", tt.name, no, wanted)
		}
	}
}

// Young pending pods count as moved; pending pods of a node being removed count with that node.
func TestPendingPodsCount(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), node("a", pods("web", 1, day)))
	s.NodePools[0].Annotations = map[string]string{policy.EvictionsPerHour: "2"}
	for _, tt := range []struct {
		name string
		edit func(*planning.PodClass)
		rule string
	}{
		{"pending", func(*planning.PodClass) {}, thresholds.RuleEvictions},
		{"pending on a node being deleted", func(c *planning.PodClass) { c.Pods[0].Node = "b" }, ""},
		{"placeholder of a CapacityBuffer", func(c *planning.PodClass) { c.Pods[0].Buffer = "spare" }, ""},
	} {
		s.PendingPods = []planning.PodClass{pods("web", 2, time.Minute, tt.edit)}
		r := thresholds.New(&s)
		if no := r.CheckNode(findAll(s)[0]); no.Rule != tt.rule {
			t.Errorf("%s: %+v", tt.name, no)
		}
	}
}

func TestUnreadableThresholds(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), node("a"), node("b", pods("web", 1, day)))
	s.NodePools[0].Annotations = map[string]string{policy.MinSaving: "1", policy.Cooldown: "soon", policy.EvictionCost: "dear"}
	r := thresholds.New(&s)
	list := findAll(s)
	if no := r.CheckNode(list[0]); no.Rule != thresholds.RuleUnreadable || !strings.HasPrefix(no.Detail, "the annotations of NodePool default cannot be read: annotation "+policy.EvictionCost) ||
		!strings.Contains(no.Detail, "; annotation "+policy.Cooldown) {
		t.Errorf("%+v", no)
	}
	if no := r.CheckEmpty(list[0]); !no.IsNone() {
		t.Errorf("for a node without pods got %+v", no)
	}
	if no := r.CheckEmpty(list[1]); no.Rule != thresholds.RuleUnreadable {
		t.Errorf("for a node with pods that cost nothing to move got %+v", no)
	}
	s.NodePools[0].Annotations = map[string]string{policy.PriceLimit: "invalid value", policy.Cooldown: "1h"}
	if no := thresholds.New(&s).CheckNode(list[1]); !no.IsNone() {
		t.Errorf("an annotation of another feature cannot be read: %+v", no)
	}
}

func TestCheckSavingThresholds(t *testing.T) {
	asks := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	// Two nodes of $0.0832 an hour.
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		saved, come float64
		pods        int
		rule, told  string
	}{
		{"no thresholds", nil, 1e-9, 0, 1000, "", ""},
		{"less than required", asks(policy.MinSaving, "0.05"), 0.0499, 0.1, 1, "min-saving", "it would save $0.0499 an hour; joist.sh/consolidation-min-saving requires $0.0500"},
		{"exactly as required", asks(policy.MinSaving, "0.05"), 0.05, 0.1, 1, "", ""},
		{"not a number", asks(policy.MinSaving, "0.05"), math.NaN(), 0, 1, "min-saving", "NaN"},
		{"smaller percentage than required", asks(policy.MinSavingPercent, "50%"), 0.0831, 0.08, 1, "min-saving", "it would save 49.9% of $0.1664 an hour; joist.sh/consolidation-min-saving-percent requires 50.0%"},
		{"exactly the required percentage", asks(policy.MinSavingPercent, "50%"), 0.0832, 0.08, 1, "", ""},
		// $0.08 for 3 minutes is $0.004, and four pods cost $0.004 more.
		{"payback too late", asks(policy.Payback, "1h", policy.EvictionCost, "0.001"), 0.0079, 0.08, 4, "payback",
			"it costs $0.0080 (new nodes for 3m0s, and moving 4 pods), which $0.0079 an hour pay back in 1.0 h; joist.sh/consolidation-payback requires 1.0 h"},
		{"payback in time", asks(policy.Payback, "1h", policy.EvictionCost, "0.001"), 0.0081, 0.08, 4, "", ""},
		{"payback, moving pods is free", asks(policy.Payback, "1h"), 0.0041, 0.08, 1000, "", ""},
		{"payback, no replacement", asks(policy.Payback, "1m", policy.EvictionCost, "0.001"), 0.1, 0, 1, "", ""},
		{"an eviction cost alone requires nothing", asks(policy.EvictionCost, "10"), 1e-9, 0, 1000, "", ""},
	} {
		r, list := restrained(tt.annotations, node("a"), node("b"))
		no := r.CheckSaving(thresholds.PlannedMove{Nodes: list, SavedPerHour: tt.saved, NewPerHour: tt.come, PodsMoved: tt.pods})
		if no.Rule != tt.rule || !strings.Contains(no.Detail, tt.told) {
			t.Errorf("%s: got %+v, want %s: %s", tt.name, no, tt.rule, tt.told)
		}
	}
}

// For a command with two NodePools, the stricter value of each threshold applies.
func TestStricterThresholdApplies(t *testing.T) {
	other := node("b", pods("web", 2, day))
	other.NodePool = "other"
	s := fixture.Snapshot(fixture.Pool(), node("a", pods("web", 2, day)), other)
	s.NodePools = append(s.NodePools, fixture.Pool())
	s.NodePools[1].Name = "other"
	s.NodePools[0].Annotations = map[string]string{policy.MinSaving: "0.01", policy.Payback: "1h", policy.EvictionsPerHour: "3"}
	s.NodePools[1].Annotations = map[string]string{policy.MinSavingPercent: "10%", policy.Payback: "2h", policy.EvictionCost: "0.01"}
	r := thresholds.New(&s)
	list := findAll(s)
	for _, tt := range []struct {
		saved float64
		pods  int
		rule  string
	}{
		{0.009, 0, thresholds.RuleMinSaving},
		{0.0166, 0, thresholds.RuleMinSaving},
		{0.0167, 0, ""},
		{0.0167, 2, thresholds.RulePayback},
	} {
		if no := r.CheckSaving(thresholds.PlannedMove{Nodes: list, SavedPerHour: tt.saved, PodsMoved: tt.pods}); no.Rule != tt.rule {
			t.Errorf("$%v saved, %d pods: %+v", tt.saved, tt.pods, no)
		}
	}
	// The NodePool without a limit moves pods of a workload that another NodePool limits.
	for _, order := range [][]*candidate.Candidate{{list[0], list[1]}, {list[1], list[0]}} {
		if no, spoilers := r.CheckSet(order); no.Rule != thresholds.RuleEvictions || len(spoilers) != 1 || spoilers[0] != order[1] {
			t.Errorf("4 pods with a limit of 3: %+v, %v", no, spoilers)
		}
	}
}

// However nodes are selected, no workload moves more pods than its limit, no pod younger than an
// hour is moved, and a set is allowed without the nodes that CheckSet returns.
func TestEvictionLimitIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]string{"0", "1", "4", "10%", "50%"}).Draw(t, "limit")
		var nodes []planning.Node
		total, fresh := 0, 0
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			count, age := rapid.IntRange(0, 3).Draw(t, "pods"), rapid.SampledFrom([]time.Duration{time.Minute, day, day, day}).Draw(t, "age")
			if total += count; age < time.Hour {
				fresh += count
			}
			nodes = append(nodes, node(string(rune('a'+i)), pods("web", count, age)))
		}
		r, list := restrained(map[string]string{policy.EvictionsPerHour: limit}, nodes...)
		p, err := policy.ReadConsolidation(map[string]string{policy.EvictionsPerHour: limit})
		if err != nil {
			t.Fatal(err)
		}
		most, moved := p.EvictionsPerHour.CountOf(total), fresh
		// Checking each node once, and then one set after the other, keeps the limit.
		list = slices.DeleteFunc(list, func(c *candidate.Candidate) bool { return !r.CheckNode(c).IsNone() })
		for len(list) > 0 {
			set := list[:min(len(list), rapid.IntRange(1, 8).Draw(t, "set"))]
			no, spoilers := r.CheckSet(set)
			if no.IsNone() != (len(spoilers) == 0) {
				t.Fatalf("got %+v with %d spoilers", no, len(spoilers))
			}
			rest := slices.DeleteFunc(slices.Clone(set), func(c *candidate.Candidate) bool { return slices.Contains(spoilers, c) })
			if no, _ := r.CheckSet(rest); !no.IsNone() {
				t.Fatalf("without the spoilers got %+v", no)
			}
			r.AddMoves(rest)
			for _, c := range rest {
				moved += c.Pods
				if c.Pods > 0 && fixture.Taken.Sub(c.Node.Pods[0].Pods[0].Created) < time.Hour {
					t.Fatal("a pod moves twice in an hour")
				}
			}
			if moved > max(most, fresh) {
				t.Fatalf("%d of %d pods move within the hour, the limit is %d", moved, total, most)
			}
			list = list[len(set):]
		}
	})
}
