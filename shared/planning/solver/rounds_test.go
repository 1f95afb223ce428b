package solver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// TestCanRetry checks for which classes with unplaced pods there is another round.
func TestCanRetry(t *testing.T) {
	w := &state{feasibleByKey: map[feasibleKey]*feasibleSet{{}: {}, {anyOf: 1}: {}}}
	full := map[string]bool{"a": true}
	anyOf := make([]planning.Requirements, 2)
	for _, tt := range []struct {
		name      string
		class     podClass
		placedAny bool
		want      bool
		// full and blockedBy are those of the class afterwards.
		full      int
		blockedBy string
	}{
		{"no rules", podClass{}, true, false, 0, ""},
		{"a rule over zones, after pods were placed", podClass{rules: ownTerms{groups: make([]*group, 1)}}, true, true, 0, ""},
		{"a rule over nodes, after pods were placed", podClass{rules: ownTerms{hosts: make([]*hostRule, 1)}}, true, true, 0, ""},
		{"both rules, after pods were placed", podClass{rules: ownTerms{make([]*group, 1), make([]*hostRule, 1)}}, true, true, 0, ""},
		{"both rules, and no pod was placed", podClass{rules: ownTerms{make([]*group, 1), make([]*hostRule, 1)}}, false, false, 0, ""},
		{"other pods of its affinity come first", podClass{neverFirst: true}, false, true, 0, ""},
		{"a zone is full", podClass{fullSets: full}, false, true, 1, noMoreSets},
		{"no zone is left", podClass{fullSets: full, blockedBy: "zone"}, false, false, 1, "zone"},
		{"no zone is left, and a preference is dropped", podClass{fullSets: full, blockedBy: "zone", preferences: preferences{anyOf: anyOf}}, false, true, 0, "zone"},
		{"a preference is dropped", podClass{preferences: preferences{anyOf: anyOf}}, false, true, 0, ""},
	} {
		c := tt.class
		c.spec = &planning.PodSpec{}
		got := (&rounds{state: w, placedAny: tt.placedAny}).canRetry(&c)
		if got != tt.want || len(c.fullSets) != tt.full || c.blockedBy != tt.blockedBy {
			t.Errorf("%s: %t with %d full sets and blocked by %q, want %t, %d and %q", tt.name, got, len(c.fullSets), c.blockedBy, tt.want, tt.full, tt.blockedBy)
		}
	}
}

// TestSplitByPriority checks in which order pods are packed: by priority if the settings say so, pods of buffers last, and else by the rank
// of their class.
func TestSplitByPriority(t *testing.T) {
	var shares []assignment
	for i, priority := range []int32{0, planning.BufferPriority, 5, 0, -3} {
		shares = append(shares, assignment{class: &podClass{rank: i, spec: &planning.PodSpec{Priority: priority}}})
	}
	slices.Reverse(shares)
	for byPriority, want := range map[bool][][]int{false: {{0, 2, 3, 4}, {1}}, true: {{2}, {0, 3}, {4}, {1}}} {
		w := &state{snapshot: &planning.Snapshot{Settings: planning.Settings{PlanByPriority: byPriority}}}
		var got [][]int
		for _, part := range (&rounds{state: w}).splitByPriority(slices.Clone(shares)) {
			var ranks []int
			for _, s := range part {
				ranks = append(ranks, s.class.rank)
			}
			got = append(got, ranks)
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
			t.Errorf("by priority %t: %v, want %v", byPriority, got, want)
		}
	}
	if got := (&rounds{}).splitByPriority(nil); len(got) > 0 {
		t.Errorf("no pods are packed in %d parts", len(got))
	}
}

// TestAllowsOwner checks in which domains a rule allows one more of its pods.
func TestAllowsOwner(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rule   group
		self   bool
		counts map[string]int
		least  int
		want   bool
	}{
		{"affinity to a pod", group{kind: affinityKind, hard: true}, false, map[string]int{"a": 1}, 0, true},
		{"affinity to no pod", group{kind: affinityKind, hard: true}, false, nil, 0, false},
		{"affinity to itself", group{kind: affinityKind, hard: true}, true, nil, 0, false}, // The caller knows whether all terms allow it.
		{"preferred affinity to itself", group{kind: affinityKind}, true, nil, 0, true},
		{"preferred affinity to itself, and a pod elsewhere", group{kind: affinityKind}, true, map[string]int{"b": 1}, 0, false},
		{"preferred affinity to other pods", group{kind: affinityKind}, false, nil, 0, false},
		{"anti-affinity to no pod", group{kind: antiAffinityKind, hard: true}, true, map[string]int{"b": 1}, 0, true},
		{"anti-affinity to a pod", group{kind: antiAffinityKind, hard: true}, false, map[string]int{"a": 1}, 0, false},
		{"spread below its skew", group{kind: spreadKind, skew: 2}, true, map[string]int{"a": 2}, 1, true},
		{"spread at its skew", group{kind: spreadKind, skew: 2}, true, map[string]int{"a": 3}, 1, false},
		{"spread of other pods at its skew", group{kind: spreadKind, skew: 2}, false, map[string]int{"a": 3}, 1, true},
		{"spread of other pods above its skew", group{kind: spreadKind, skew: 2}, false, map[string]int{"a": 4}, 1, false},
	} {
		set := &labelSet{}
		tt.rule.members, tt.rule.counts = map[*labelSet]bool{set: tt.self}, tt.counts
		if got := tt.rule.allowsOwner(set, "a", tt.least); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestMayBeFirst checks which pods may open a domain for their affinity.
func TestMayBeFirst(t *testing.T) {
	set := &labelSet{}
	rule := func(kind ruleKind, hard, self bool, counted int) *group {
		return &group{kind: kind, hard: hard, members: map[*labelSet]bool{set: self}, counts: map[string]int{"a": counted}}
	}
	for _, tt := range []struct {
		name  string
		rules []*group
		want  bool
	}{
		{"no affinity", nil, true},
		{"to itself", []*group{rule(affinityKind, true, true, 0)}, true},
		{"to itself, and a pod is placed", []*group{rule(affinityKind, true, true, 1)}, false},
		{"to other pods", []*group{rule(affinityKind, true, false, 0)}, false},
		{"to itself and to other pods", []*group{rule(affinityKind, true, true, 0), rule(affinityKind, true, false, 0)}, false},
		{"to other pods by preference", []*group{rule(affinityKind, false, false, 1)}, true},
		{"anti-affinity to other pods", []*group{rule(antiAffinityKind, true, false, 1)}, true},
		{"a spread of other pods", []*group{rule(spreadKind, true, false, 1)}, true},
	} {
		c := &podClass{set: set, rules: ownTerms{groups: tt.rules}}
		if got := c.mayBeFirst(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestWouldBreakSpread checks where one more pod violates the spread of pods that count it.
func TestWouldBreakSpread(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rule    group
		domains int
		want    bool
	}{
		{"within the skew", group{skew: 2, counts: map[string]int{"a": 2, "b": 1}, owners: map[string]int{"a": 1}}, 2, false},
		{"beyond the skew", group{skew: 1, counts: map[string]int{"a": 2, "b": 1}, owners: map[string]int{"a": 1}}, 2, true},
		{"beyond the skew, without pods of the spread", group{skew: 1, counts: map[string]int{"a": 2, "b": 1}, owners: map[string]int{"b": 1}}, 2, false},
		{"a domain is empty", group{skew: 2, counts: map[string]int{"a": 2, "b": 1}, owners: map[string]int{"a": 1}}, 3, true},
		{"fewer domains than minDomains", group{skew: 2, min: 3, counts: map[string]int{"a": 2, "b": 1}, owners: map[string]int{"a": 1}}, 2, true},
		{"as many domains as minDomains", group{skew: 2, min: 2, counts: map[string]int{"a": 2, "b": 1}, owners: map[string]int{"a": 1}}, 2, false},
		{"the emptiest domain", group{skew: 1, counts: map[string]int{"a": 1, "b": 1}, owners: map[string]int{"a": 1}}, 2, false},
	} {
		if got := tt.rule.wouldBreakSpread("a", tt.domains); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestRelaxationOrder drops all preferences of a pod, one after another.
func TestRelaxationOrder(t *testing.T) {
	two := make([]planning.Requirements, 2)
	p := preferences{
		anyOf: two, alternatives: two, affinity: make([]corev1.PodAffinityTerm, 2), antiAffinity: make([]corev1.PodAffinityTerm, 1),
		nodePreferences: make([]planning.Requirements, 1), softSpread: make([]corev1.TopologySpreadConstraint, 1),
	}
	count := func() [6]int {
		tolerates := 0
		if p.toleratesSoftTaints {
			tolerates = 1
		}
		return [6]int{len(p.anyOf), len(p.affinity), len(p.antiAffinity), len(p.nodePreferences), len(p.softSpread), tolerates}
	}
	want := [][6]int{{1, 2, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 0}, {1, 0, 1, 1, 1, 0}, {1, 0, 0, 1, 1, 0}, {1, 0, 0, 0, 1, 0}, {1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 1}}
	for i, one := range want {
		if !p.relaxNext(true) || count() != one {
			t.Fatalf("step %d: %v, want %v", i, count(), one)
		}
	}
	if p.relaxNext(true) {
		t.Errorf("another step: %v", count())
	}
	p = preferences{anyOf: two[:1], alternatives: two[:1]}
	if p.relaxNext(false) {
		t.Errorf("a pod without preferences: %v", count())
	}
}

// TestAssignOnceNotesWhoYields checks that a class which yields to pods that failed gets another round, also if this one places nothing.
func TestAssignOnceNotesWhoYields(t *testing.T) {
	nodes := packing.NewSet(1)
	nodes.Add(0)
	class := func() *podClass {
		c := &podClass{spec: &planning.PodSpec{}, set: &labelSet{}, pods: make([]planning.PodRef, 1), feasible: &feasibleSet{nonEmpty: true, nodes: nodes}}
		c.set.classes = []*podClass{c}
		return c
	}
	for _, yielding := range []bool{true, false} {
		c, other := class(), class()
		other.failed = true
		c.rules.groups = []*group{{kind: affinityKind, hard: true, members: map[*labelSet]bool{c.set: true, other.set: true}}}
		w := &state{othersFirst: true}
		w.topology.pass = 1
		shares, yielded := (&rounds{state: w}).assignOnce([]*podClass{c, other}, yielding, nil)
		if len(shares) > 0 || !yielded || c.neverFirst == yielding {
			t.Errorf("yielding %t: %d assignments, yielded %t, another round %t", yielding, len(shares), yielded, c.neverFirst)
		}
	}
}
