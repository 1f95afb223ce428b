package disruption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// asking sets a NodePool's annotations from pairs of names and values.
func asking(pairs ...string) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) {
		p.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// aged assigns a node's pods to a workload and sets their age.
func aged(workload string, age time.Duration) func(*node) {
	return func(n *node) {
		n.InitializedAt = fixture.Taken.Add(-24 * time.Hour)
		for i := range n.Pods {
			for k := range n.Pods[i].Pods {
				n.Pods[i].Pods[k].Workload, n.Pods[i].Pods[k].Created = workload, fixture.Taken.Add(-age)
			}
		}
	}
}

func TestThresholds(t *testing.T) {
	n := func(name, size string, edits ...func(*node)) node {
		return fixture.Node(name, size, append(edits, aged("web", 2*time.Hour))...)
	}
	cheap := func(s *planning.PodSpec) { s.DeletionCost = "-2147483647" }
	// The pods of two nodes of $0.1664 fit on one node of $0.0416.
	two := []node{n("a", "t4g.xlarge", with(1)), n("b", "t4g.xlarge", with(1))}
	both, none := []string{"MultiNodeConsolidation -a,b +t4g.medium"}, []string(nil)
	one := []string{"SingleNodeConsolidation -a onto b"}
	kept := func(rule string) []string { return []string{"a " + rule, "b " + rule} }
	young := []node{n("a", "t4g.xlarge", with(1)), fixture.Node("b", "t4g.xlarge", with(1), aged("web", 10*time.Minute))}
	for _, tt := range []struct {
		name       string
		asks       []string
		nodes      []node
		want, kept []string
		problem    bool
	}{
		{"nothing", nil, two, both, none, false},
		{"a saving above the threshold", []string{policy.MinSaving, "0.29"}, two, both, none, false},
		{"a saving below the threshold", []string{policy.MinSaving, "0.30"}, two, none, kept(thresholds.RuleMinSaving), false},
		{"a percentage above the threshold", []string{policy.MinSavingPercent, "87%"}, two, both, none, false},
		{"a percentage below the threshold; one node alone saves 100%", []string{policy.MinSavingPercent, "88%"}, two, one, []string{"b receives-pods"}, false},
		{"payback in time", []string{policy.Payback, "1h", policy.EvictionCost, "0.14"}, two, both, none, false},
		{"payback too late; one node alone pays back in time", []string{policy.Payback, "1h", policy.EvictionCost, "0.15"}, two, one, []string{"b receives-pods"}, false},
		{"payback too late for one node alone", []string{policy.Payback, "1h", policy.EvictionCost, "0.17"}, two, none, kept(thresholds.RulePayback), false},
		{"no young pods", []string{policy.Cooldown, "1h"}, two, both, none, false},
		{"a node with young pods receives pods", []string{policy.Cooldown, "1h"}, young, one, []string{"b cool-down"}, false},
		{"two pods may move", []string{policy.EvictionsPerHour, "2"}, two, both, none, false},
		{"one of two pods may move", []string{policy.EvictionsPerHour, "50%"}, two, one, []string{"b receives-pods"}, false},
		{"one of two pods has moved", []string{policy.EvictionsPerHour, "50%"}, young, none, kept(thresholds.RuleEvictions), false},
		{"empty nodes have no cool-down", []string{policy.Cooldown, "48h", policy.MinSaving, "100", policy.EvictionsPerHour, "0"}, []node{n("a", "t4g.large")}, []string{"Emptiness -a"}, none, false},
		{"pods that cost nothing to move count", []string{policy.EvictionsPerHour, "0"}, []node{n("a", "t4g.large", with(1, cheap))}, none, []string{"a " + thresholds.RuleEvictions}, false},
		{"a threshold that cannot be read", []string{policy.MinSaving, "a lot"}, append(slices.Clone(two), n("c", "t4g.large")), []string{"Emptiness -c"}, kept(thresholds.RuleUnreadable), true},
		{"thresholds do not apply to drift", []string{policy.MinSaving, "a lot"}, []node{n("a", "t4g.large", with(3), drift(time.Hour))}, []string{"Drift -a +t4g.medium"}, none, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.Snapshot(fixture.Pool(asking(tt.asks...)), tt.nodes...)
			found := Evaluate(s, fixture.Stock(s), Options{})
			if diff := cmp.Diff(tt.want, all(s, found)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			var stays []string
			for _, k := range found.Kept {
				stays = append(stays, k.Node+" "+k.Rule)
			}
			if diff := cmp.Diff(tt.kept, stays); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if len(found.Problems) > 0 != tt.problem || tt.problem && !strings.HasPrefix(found.Problems[0].Error(), "NodePool default: annotation "+policy.MinSaving) {
				t.Errorf("problems: %v", found.Problems)
			}
		})
	}
}

// Earlier proposals are checked again, with the pods that were moved since.
func TestThresholdsApplyToProposals(t *testing.T) {
	carries := func(id string) func(*node) {
		return func(n *node) {
			n.Proposal = &planning.Proposal{ID: id, Reason: "Underutilized", Method: string(MultiNode), ProposedAt: fixture.Taken.Add(-time.Minute)}
		}
	}
	nodes := func(edits ...func(*node)) []node {
		edits = append(edits, with(1), aged("web", 2*time.Hour))
		return []node{fixture.Node("a", "t4g.xlarge", edits...), fixture.Node("b", "t4g.xlarge", edits...)}
	}
	s := fixture.Snapshot(fixture.Pool(), nodes()...)
	id := Evaluate(s, fixture.Stock(s), Options{}).Commands[0].Proposal
	for asks, want := range map[string]string{"2": "", "50%": thresholds.RuleEvictions} {
		s := fixture.Snapshot(fixture.Pool(asking(policy.EvictionsPerHour, asks)), nodes(carries(id))...)
		found := Evaluate(s, fixture.Stock(s), Options{})
		if want == "" {
			if len(found.Commands) != 1 || found.Commands[0].Proposal != id {
				t.Errorf("%s: %v", asks, all(s, found))
			}
			continue
		}
		if len(found.Commands) > 0 || len(found.Kept) != 2 || found.Kept[0].Rule != want {
			t.Errorf("%s: %v, %+v", asks, all(s, found), found.Kept)
		}
	}
}

// A snapshot is not idle if nodes may become disruptable as time passes.
func TestThresholdsAndIdleSnapshots(t *testing.T) {
	n := func(name string, age time.Duration) node {
		return fixture.Node(name, "t4g.xlarge", with(2), aged("web", age))
	}
	for _, tt := range []struct {
		name  string
		asks  []string
		age   time.Duration
		still bool
	}{
		{"a saving that does not change with time", []string{policy.MinSaving, "100"}, 2 * time.Hour, true},
		{"cool-down", []string{policy.Cooldown, "1h"}, time.Minute, false},
		{"a pod may be moved later", []string{policy.EvictionsPerHour, "10"}, time.Minute, false},
		{"a smaller set is possible", []string{policy.EvictionsPerHour, "2", policy.MinSaving, "0.2"}, 2 * time.Hour, false},
	} {
		s := fixture.Snapshot(fixture.Pool(asking(tt.asks...)), n("a", tt.age), n("b", tt.age))
		body := event.ClusterSnapshot{Taken: s.TakenAt, Snapshot: event.Ref{Digest: "d"}}
		found := Evaluate(s, fixture.Stock(s), Options{})
		r := &LastIdle{}
		r.recordIdle(body, found, nil)
		if len(found.Commands) > 0 || r.isUnchanged(body) != tt.still {
			t.Errorf("%s: got unchanged %v, %v, %+v", tt.name, r.isUnchanged(body), all(s, found), found.Kept)
		}
	}
}
