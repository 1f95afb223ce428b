package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// describeFindings describes a command in one line: its method, the removed nodes, the nodes that
// receive their pods, and the cheapest options of the new nodes.
func describeFindings(s planning.Snapshot, c Command) string {
	var gone, onto, come []string
	for _, i := range c.Nodes {
		gone = append(gone, s.Nodes[i].Name)
	}
	for _, n := range c.Result.Nominations {
		if !slices.Contains(onto, n.Node) {
			onto = append(onto, n.Node)
		}
	}
	for _, n := range c.Result.Nodes {
		come = append(come, n.Offerings[0].InstanceType)
	}
	slices.Sort(onto)
	out := fmt.Sprintf("%s -%s", c.Method, strings.Join(gone, ","))
	if len(onto) > 0 {
		out += " onto " + strings.Join(onto, ",")
	}
	if len(come) > 0 {
		out += " +" + strings.Join(come, ",")
	}
	return out
}

func all(s planning.Snapshot, found Findings) (out []string) {
	for _, c := range found.Commands {
		out = append(out, describeFindings(s, c))
	}
	return out
}

type node = planning.Node

// with binds pods to a node, each with half a core.
func with(count int, edits ...func(*planning.PodSpec)) func(*node) {
	return func(n *node) { fixture.With(fixture.Pods(n.Name, count, "500m", "500Mi", edits...))(n) }
}

func drift(ago time.Duration) func(*node) {
	return func(n *node) {
		n.Drift = &planning.Drift{Reason: "NodePoolDrifted", Since: fixture.Taken.Add(-ago)}
	}
}

func protected(n *node) {
	n.Pods[0].Spec.DoNotDisrupt = "true"
}

func recentPodEvent(n *node) { n.LastPodEvent = fixture.Taken.Add(-30 * time.Second) }

// bounded lets a terminationGracePeriod bound the drain.
func bounded(n *node) { n.HasTerminationGracePeriod = true }

// ordered makes pods part of a StatefulSet. ending marks the node's pods as terminating.
func ordered(s *planning.PodSpec) { s.OwnerKind = "StatefulSet" }
func ending(n *node) {
	for i := range n.Pods {
		for k := range n.Pods[i].Pods {
			n.Pods[i].Pods[k].Terminating = true
		}
	}
}

// static makes a NodePool static with this number of replicas.
func static(replicas int64) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Spec.Replicas = &replicas }
}

func TestEvaluate(t *testing.T) {
	n := fixture.Node
	small := func(s *planning.PodSpec) { s.DeletionCost = "-2147483647" }
	apart := func(s *planning.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelTopologyZone: "mars"} }
	huge := func(s *planning.PodSpec) { s.Requests[corev1.ResourceCPU] = resource.MustParse("1700m") }
	noneEmpty := func(pool *karpenter.NodePool) {
		pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0", Reasons: []karpenter.DisruptionReason{karpenter.DisruptionReasonEmpty}}}
	}
	for _, tt := range []struct {
		name  string
		pool  karpenter.NodePool
		nodes []node
		want  []string
		kept  []string
	}{
		{"nothing", fixture.Pool(), nil, nil, nil},
		{"empty nodes, the more expensive first", fixture.Pool(), []node{n("a", "t4g.large"), n("b", "t4g.xlarge")},
			[]string{"Emptiness -b", "Emptiness -a"}, nil},
		{"pods that cost nothing to move", fixture.Pool(), []node{n("a", "t4g.large", with(1, small)), n("b", "t4g.large", with(3, huge), protected)},
			[]string{"Emptiness -a +t4g.medium"}, []string{"b pod-do-not-disrupt"}},
		{"emptiness before drift", fixture.Pool(fixture.Budgets("1")), []node{n("a", "t4g.large", drift(time.Hour), with(1)), n("b", "t4g.large")},
			[]string{"Emptiness -b"}, []string{"a budget"}},
		{"the empty drifted node first, then the oldest", fixture.Pool(never), []node{n("a", "t4g.large", with(3), drift(time.Hour)), n("b", "t4g.large", with(3), drift(2*time.Hour)), n("c", "t4g.large", drift(time.Minute))},
			[]string{"Drift -c", "Drift -b +t4g.medium", "Drift -a +t4g.medium"}, nil},
		{"drift does not depend on prices", fixture.Pool(), []node{n("a", "t4g.medium", with(2), drift(time.Hour))},
			[]string{"Drift -a +t4g.medium"}, nil},
		{"drift evicts protected pods with a termination grace period", fixture.Pool(), []node{n("a", "t4g.medium", with(2), drift(1), protected, bounded), n("b", "t4g.medium", with(2), drift(1), protected)},
			[]string{"Drift -a onto b +t4g.medium"}, []string{"b pod-do-not-disrupt"}},
		{"drift does not wait for a place for protected pods", fixture.Pool(never), []node{n("a", "t4g.medium", with(1, apart), drift(1), protected, bounded), n("b", "t4g.medium", with(1, apart), drift(1), bounded)},
			[]string{"Drift -a"}, []string{"b pods-unplaceable"}},
		{"drift within the budget", fixture.Pool(never, fixture.Budgets("1")), []node{n("a", "t4g.large", with(3), drift(time.Hour)), n("b", "t4g.large", with(3), drift(2*time.Hour))},
			[]string{"Drift -b +t4g.medium"}, []string{"a budget"}},
		{"drifted nodes of a static pool are replaced, with or without pods", fixture.Pool(static(2)), []node{n("a", "t4g.medium", drift(1), with(1)), n("b", "t4g.medium")},
			[]string{"StaticDrift -a +t4g.medium"}, []string{"b static-nodepool"}},
		{"no drift of a static pool with too many nodes", fixture.Pool(static(1)), []node{n("a", "t4g.medium", drift(1)), n("b", "t4g.medium")},
			nil, []string{"a no-replacement", "b static-nodepool"}},
		{"one node replaced by a smaller one", fixture.Pool(), []node{n("a", "t4g.large", with(1)), n("b", "t4g.large", with(2, huge), protected)},
			[]string{"SingleNodeConsolidation -a +t4g.medium"}, []string{"b pod-do-not-disrupt"}},
		{"no saving", fixture.Pool(), []node{n("a", "t4g.medium", with(3))}, nil, []string{"a no-saving"}},
		{"two nodes replaced by one", fixture.Pool(), []node{n("a", "t4g.xlarge", with(1)), n("b", "t4g.xlarge", with(1))},
			[]string{"MultiNodeConsolidation -a,b +t4g.medium"}, nil},
		{"a budget of one node", fixture.Pool(fixture.Budgets("1")), []node{n("a", "t4g.xlarge", with(1)), n("b", "t4g.xlarge", with(2))},
			[]string{"SingleNodeConsolidation -a onto b"}, []string{"b receives-pods"}},
		{"WhenEmpty", fixture.Pool(whenEmpty), []node{n("a", "t4g.xlarge", with(1)), n("b", "t4g.xlarge")},
			[]string{"Emptiness -b"}, []string{"a consolidation-policy"}},
		{"a budget of zero for empty nodes", fixture.Pool(noneEmpty), []node{n("a", "t4g.xlarge"), n("b", "t4g.xlarge", with(1)), n("c", "t4g.xlarge", with(1))},
			[]string{"MultiNodeConsolidation -b,c onto a"}, []string{"a budget"}},
		{"a budget of zero for empty nodes, no other node", fixture.Pool(noneEmpty), []node{n("a", "t4g.xlarge")}, nil, []string{"a budget"}},
		{"a budget that cannot be read", fixture.Pool(fixture.Budgets("lots")), []node{n("a", "t4g.xlarge")}, nil, []string{"a budget"}},
		{"pods that fit on no other node", fixture.Pool(), []node{n("a", "t4g.xlarge", with(1, apart))}, nil, []string{"a pods-unplaceable"}},
		{"pods that fit on no other node do not block others", fixture.Pool(), []node{n("a", "t4g.xlarge", with(1, apart)), n("b", "t4g.xlarge", with(1)), n("c", "t4g.xlarge", with(1))},
			[]string{"MultiNodeConsolidation -b,c onto a"}, []string{"a receives-pods"}},
		{"pods are not moved to a node with recent pod events", fixture.Pool(fixture.Budgets("1")), []node{n("a", "t4g.medium", with(1)), n("b", "t4g.medium", with(2), recentPodEvent)},
			nil, []string{"a no-saving", "b consolidate-after"}},
		{"pods of a drifted node are moved to a node with recent pod events", fixture.Pool(fixture.Budgets("1")), []node{n("a", "t4g.medium", with(1), drift(1)), n("b", "t4g.medium", with(2), recentPodEvent)},
			[]string{"Drift -a onto b"}, []string{"b consolidate-after"}},
		{"a StatefulSet pod occupies its node until it has ended", fixture.Pool(fixture.Budgets("1")), []node{n("a", "t4g.medium", with(1, ordered), ending), n("b", "t4g.medium", with(3), protected)},
			nil, []string{"a no-saving", "b pod-do-not-disrupt"}},
		{"a Deployment pod does not occupy its node while it ends", fixture.Pool(fixture.Budgets("1")), []node{n("a", "t4g.medium", with(1), ending), n("b", "t4g.medium", with(3), protected)},
			[]string{"Emptiness -a"}, []string{"b pod-do-not-disrupt"}},
		{"unmanaged nodes are not reported", fixture.Pool(), []node{n("a", "t4g.medium", func(n *node) { n.Claim = "" })}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.Snapshot(tt.pool, tt.nodes...)
			s.Settings.Gates.StaticCapacity = true
			found := Evaluate(s, fixture.Stock(s), Options{})
			if diff := cmp.Diff(tt.want, all(s, found)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			var kept []string
			for _, k := range found.Kept {
				kept = append(kept, k.Node+" "+k.Rule)
				if k.Detail == "" || s.Nodes[k.Index].Name != k.Node {
					t.Errorf("kept %+v", k)
				}
			}
			if diff := cmp.Diff(tt.kept, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if (len(found.Problems) > 0) != strings.Contains(tt.name, "cannot be read") {
				t.Errorf("problems %v", found.Problems)
			}
		})
	}
}

func never(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{} }
func whenEmpty(p *karpenter.NodePool) {
	p.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty
}

// carrying returns the snapshot with the proposals of its commands on its nodes. They were made
// this long ago, one after another.
func carrying(s planning.Snapshot, found Findings, ago time.Duration) planning.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for k, c := range found.Commands {
		proposed := s.TakenAt.Add(-ago).Add(time.Duration(k + 1 - len(found.Commands)))
		for _, i := range c.Nodes {
			s.Nodes[i].Proposal = &planning.Proposal{ID: c.Proposal, Reason: string(c.Reason), Method: string(c.Method), ProposedAt: proposed}
		}
	}
	return s
}

// phases describes the decisions for a snapshot.
func phases(s planning.Snapshot) []string {
	var out []string
	for _, d := range decidePhases(&s, Evaluate(s, fixture.Stock(s), Options{}).Commands) {
		out = append(out, fmt.Sprintf("%s %s %s", d.phase, d.Method, strings.Join(d.claims, ",")))
	}
	return out
}

func TestConfirmProposals(t *testing.T) {
	n := fixture.Node
	pair := func() planning.Snapshot {
		return fixture.Snapshot(fixture.Pool(), n("a", "t4g.xlarge", with(1)), n("b", "t4g.xlarge", with(1)))
	}
	alone := func() planning.Snapshot { return fixture.Snapshot(fixture.Pool(), n("a", "t4g.xlarge")) }
	second := func() planning.Snapshot {
		return fixture.Snapshot(fixture.Pool(fixture.Budgets("1")), n("a", "t4g.xlarge"), n("b", "t4g.large"))
	}
	drifted := func() planning.Snapshot {
		return fixture.Snapshot(fixture.Pool(), n("a", "t4g.medium", with(2), drift(1)))
	}
	const old = time.Minute
	for _, tt := range []struct {
		name string
		of   func() planning.Snapshot
		ago  time.Duration
		then func(s *planning.Snapshot)
		want []string
	}{
		{"proposed less than ConfirmAfter ago", pair, planning.ConfirmAfter - 1, nil, nil},
		{"confirmed", pair, planning.ConfirmAfter, nil, []string{"confirmed MultiNodeConsolidation a,b"}},
		{"confirmed, empty", alone, planning.ConfirmAfter, nil, []string{"confirmed Emptiness a"}},
		{"confirmed, drifted", drifted, planning.ConfirmAfter, nil, []string{"confirmed Drift a"}},
		{"proposed in the future", alone, -old, nil, nil},
		{"proposed without a method, by an older version", alone, old, func(s *planning.Snapshot) { s.Nodes[0].Proposal.Method = "" }, []string{"confirmed Emptiness a"}},
		{"the latest proposal of the claims counts", pair, old, func(s *planning.Snapshot) { s.Nodes[1].Proposal.ProposedAt = s.TakenAt }, nil},
		{"a pod was bound to an empty node", alone, old, func(s *planning.Snapshot) { with(1)(&s.Nodes[0]) }, []string{"dropped Emptiness a"}},
		{"a pod was bound and removed", alone, old, func(s *planning.Snapshot) { s.Nodes[0].LastPodEvent = s.TakenAt.Add(-time.Minute) }, []string{"dropped Emptiness a"}},
		{"a node has do-not-disrupt now", pair, old, func(s *planning.Snapshot) { s.Nodes[1].DoNotDisrupt = true }, []string{"dropped MultiNodeConsolidation a,b"}},
		{"a node is nominated now", pair, old, func(s *planning.Snapshot) { s.Nodes[0].NominatedUntil = s.TakenAt.Add(time.Minute) }, []string{"dropped MultiNodeConsolidation a,b"}},
		{"a node was deleted", pair, old, func(s *planning.Snapshot) { s.Nodes = s.Nodes[:1] }, []string{"dropped MultiNodeConsolidation a"}},
		{"a node is being deleted", pair, old, func(s *planning.Snapshot) { s.Nodes[1].MarkedForDeletion = true }, []string{"dropped MultiNodeConsolidation a"}},
		{"a replacement is needed now", func() planning.Snapshot {
			return fixture.Snapshot(fixture.Pool(fixture.Budgets("1")), n("a", "t4g.xlarge", with(1)), n("b", "t4g.large", with(1)))
		}, old, func(s *planning.Snapshot) { with(2)(&s.Nodes[1]) }, []string{"proposed SingleNodeConsolidation b", "dropped SingleNodeConsolidation a"}},
		{"the price is unknown now", pair, old, func(s *planning.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Labels[corev1.LabelTopologyZone] = "mars"
			}
		}, []string{"dropped MultiNodeConsolidation a,b"}},
		{"the budget is too small now", pair, old, func(s *planning.Snapshot) { fixture.Budgets("1")(&s.NodePools[0]) }, []string{"dropped MultiNodeConsolidation a,b"}},
		{"the pool is static now", alone, old, func(s *planning.Snapshot) { static(1)(&s.NodePools[0]) }, []string{"dropped Emptiness a"}},
		{"no longer drifted", drifted, old, func(s *planning.Snapshot) { s.Nodes[0].Drift = nil }, []string{"dropped Drift a"}},
		{"already in execution", pair, old, func(s *planning.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Proposal.ConfirmedAt = s.TakenAt
			}
		}, nil},
		{"a proposal is kept although another node saves more", second, old, func(s *planning.Snapshot) {
			s.Nodes = append(s.Nodes, n("c", "t4g.2xlarge"))
		}, []string{"confirmed Emptiness a"}},
		{"the older proposal has precedence", second, old, func(s *planning.Snapshot) {
			younger := *s.Nodes[0].Proposal
			younger.ID, younger.ProposedAt = "younger", younger.ProposedAt.Add(1)
			s.Nodes[1].Proposal = &younger
		}, []string{"confirmed Emptiness a", "dropped Emptiness b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.of()
			found := Evaluate(s, fixture.Stock(s), Options{})
			if len(found.Commands) == 0 {
				t.Fatalf("found no command: %+v", found)
			}
			later := carrying(s, found, tt.ago)
			if tt.then != nil {
				tt.then(&later)
			}
			if diff := cmp.Diff(tt.want, phases(later)); diff != "" {
				t.Fatalf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

// A proposal's ID depends on the action and the claims, not on the time when it is found.
func TestProposalID(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.xlarge", with(1)), fixture.Node("b", "t4g.xlarge", with(1)))
	first := Evaluate(s, fixture.Stock(s), Options{}).Commands[0]
	other := func(change func(*planning.Snapshot)) string {
		s := s
		s.Nodes = slices.Clone(s.Nodes)
		change(&s)
		return Evaluate(s, fixture.Stock(s), Options{}).Commands[0].Proposal
	}
	if other(func(s *planning.Snapshot) { s.TakenAt = s.TakenAt.Add(time.Hour) }) != first.Proposal {
		t.Error("another time gives another ID")
	}
	if other(func(s *planning.Snapshot) { s.Nodes[0], s.Nodes[1] = s.Nodes[1], s.Nodes[0] }) != first.Proposal {
		t.Error("another order gives another ID")
	}
	for name, change := range map[string]func(*planning.Snapshot){
		"another claim of the same name": func(s *planning.Snapshot) { s.Nodes[0].ClaimUID = "uid-2" },
		"another cluster":                func(s *planning.Snapshot) { s.UID = "v" },
		"one node fewer":                 func(s *planning.Snapshot) { s.Nodes = s.Nodes[:1] },
	} {
		if other(change) == first.Proposal {
			t.Errorf("%s: got the same ID", name)
		}
	}
	if first.Reason != karpenter.DisruptionReasonUnderutilized || first.PodsMoved != 2 || !first.Since.IsZero() || first.Why == "" {
		t.Errorf("got command %+v", first)
	}
}

// TestSpotToSpotGateOfSnapshot uses a NodePool that allows any spot instance type: more than 15
// types are cheaper than the node.
func TestSpotToSpotGateOfSnapshot(t *testing.T) {
	pool := fixture.Pool()
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeSpot}},
	}
	s := fixture.Snapshot(pool, fixture.Node("a", "m7g.4xlarge", with(1), func(n *node) { n.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeSpot }))
	if found := Evaluate(s, fixture.Stock(s), Options{}); len(found.Commands) > 0 || found.Kept[0].Rule != "spot-to-spot" {
		t.Fatalf("found %+v", found)
	}
	s.Settings.Gates.SpotToSpotConsolidation = true
	found := Evaluate(s, fixture.Stock(s), Options{})
	if len(found.Commands) != 1 {
		t.Fatalf("found %+v", found)
	}
	types := map[string]bool{}
	for _, o := range found.Commands[0].Result.Nodes[0].Offerings {
		if types[o.InstanceType] = true; o.CapacityType != karpenter.CapacityTypeSpot {
			t.Errorf("got option %+v", o)
		}
	}
	if len(types) != 15 {
		t.Errorf("%d instance types remain", len(types))
	}
}

// A node whose free capacity a CapacityBuffer uses is not removed as empty.
func TestNodesWithBufferCapacity(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.medium"))
	s.Settings.Gates.CapacityBuffer = true
	s.Buffers = []planning.Buffer{{Namespace: "default", Name: "spare", UID: "b", Replicas: new(int32(1)), Spec: fixture.Pods("x", 1, "1", "1Gi").Spec}}
	found := Evaluate(s, fixture.Stock(s), Options{})
	if len(found.Commands) > 0 || found.Kept[0].Rule != RuleBuffer {
		t.Fatalf("found %+v", found)
	}
	s.Buffers = nil
	if found := Evaluate(s, fixture.Stock(s), Options{}); len(found.Commands) != 1 {
		t.Fatalf("found %+v", found)
	}
}

func TestStaleProposalsAreDroppedOnce(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("b", "t4g.large"), fixture.Node("a", "t4g.large"), fixture.Node("c", "t4g.large"))
	for i, id := range []string{"x", "x", "y"} {
		s.Nodes[i].Proposal = &planning.Proposal{ID: id, Reason: "Underutilized", Method: string(MultiNode)}
	}
	got := decidePhases(&s, nil)
	if len(got) != 2 || got[0].phase != event.Dropped || got[0].Proposal != "x" || !slices.Equal(got[0].claims, []string{"a", "b"}) || got[1].Proposal != "y" {
		t.Fatalf("got decisions %+v", got)
	}
}

// One evaluation disrupts a limited number of nodes with pods one by one, so that its duration is
// limited; nodes without pods cost nothing.
func TestNodesDisruptedOneByOneAreLimited(t *testing.T) {
	drifted := func(n *planning.Node) {
		n.Drift = &planning.Drift{Reason: "NodePoolDrifted", Since: fixture.Taken.Add(-time.Hour)}
	}
	many := func(instanceType string, edits ...func(*planning.Node)) planning.Snapshot {
		var nodes []planning.Node
		for i := range maxNodes + 20 {
			nodes = append(nodes, fixture.Node(fmt.Sprintf("n%03d", i), instanceType, edits...))
		}
		return fixture.Snapshot(fixture.Pool(fixture.Budgets("100%")), nodes...)
	}
	for _, tt := range []struct {
		name     string
		snapshot planning.Snapshot
		method   Method
		want     int
	}{
		{"cheaper replacements", replaceableAlone(maxNodes + 20), SingleNode, maxNodes},
		{"drift", many("t4g.large", drifted, fixture.With(fixture.Pods("web", 2, "800m", "3Gi"))), Drift, maxNodes},
		{"drift without pods", many("t4g.large", drifted, func(n *planning.Node) { n.LastPodEvent = fixture.Taken }), Drift, maxNodes + 20},
		{"empty", many("t4g.large"), Emptiness, maxNodes + 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := Evaluate(tt.snapshot, fixture.Stock(tt.snapshot), Options{})
			got := 0
			for _, c := range found.Commands {
				if c.Method == tt.method {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d commands of %s, want %d", got, tt.method, tt.want)
			}
			for _, k := range found.Kept {
				if k.Rule != RuleLowerPriority {
					t.Errorf("node %s is kept by the rule %s: %s", k.Node, k.Rule, k.Detail)
				}
			}
		})
	}
}
