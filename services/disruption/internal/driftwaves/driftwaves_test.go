package driftwaves_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/driftwaves"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

const bake = 30 * time.Minute

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// old returns a node that drifted an hour ago.
func old(edits ...func(*planning.Node)) planning.Node {
	return built(planning.Node{Name: "old", Created: ago(99 * time.Hour), Drift: &planning.Drift{Reason: "AMIDrift", Since: ago(time.Hour)}}, edits)
}

// replacement returns a node that was created this long ago and was initialized and ready at once.
func replacement(since time.Duration, edits ...func(*planning.Node)) planning.Node {
	return built(planning.Node{Name: "new", Created: ago(since), InitializedAt: ago(since), ReadySince: ago(since)}, edits)
}

func built(n planning.Node, edits []func(*planning.Node)) planning.Node {
	n.Claim, n.NodePool, n.Initialized, n.Ready = n.Name, "web", true, true
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func coming(n *planning.Node)   { n.Initialized, n.Ready = false, false }
func notReady(n *planning.Node) { n.Ready = false }
func going(n *planning.Node)    { n.MarkedForDeletion = true }

func acting(replacements ...string) func(*planning.Node) {
	return func(n *planning.Node) {
		n.MarkedForDeletion, n.Proposal = true, &planning.Proposal{ID: "p", ConfirmedAt: ago(time.Minute), Replacements: replacements}
	}
}

func confirmedAgo(d time.Duration) func(*planning.Node) {
	return func(n *planning.Node) { n.Proposal.ConfirmedAt = ago(d) }
}

func share(t testing.TB, text string) policy.Drift {
	t.Helper()
	p, err := policy.Read(map[string]string{policy.DriftCanary: text, policy.DriftBake: bake.String()})
	if err != nil {
		t.Fatal(err)
	}
	return p.Drift
}

func TestWaveObjections(t *testing.T) {
	late := func(n *planning.Node) { n.Drift.Since = ago(10 * time.Minute) }
	ancient := func(n *planning.Node) { n.Drift.Since = ago(50 * time.Hour) }
	elsewhere := func(n *planning.Node) { n.NodePool = "other" }
	for _, tt := range []struct {
		name  string
		nodes []planning.Node
		// want is the rule for the first node.
		want, says string
	}{
		{"the canary may start", []planning.Node{old(), old()}, "", ""},
		{"the canary's replacement is not initialized", []planning.Node{old(), replacement(time.Minute, coming)}, driftwaves.RuleCanary, "0 of the 1 nodes of this wave have been ready for 30m0s"},
		{"the canary's replacement is not created", []planning.Node{old(), old(acting("x"))}, driftwaves.RuleCanary, ""},
		{"the canary's replacement has ended while the canary drains", []planning.Node{old(), old(acting("x"), confirmedAgo(planning.AdmissionTime))}, "", ""},
		{"the canary's replacement may still be created", []planning.Node{old(), old(acting("x"), confirmedAgo(planning.AdmissionTime-time.Second))}, driftwaves.RuleCanary, ""},
		{"the canary's replacement is ready", []planning.Node{old(), old(acting("new")), replacement(31 * time.Minute)}, "", ""},
		{"the canary is being terminated first", []planning.Node{old(), old(acting(), func(n *planning.Node) { n.Proposal.TerminateFirst = "no-reserved-capacity" })}, driftwaves.RuleCanary, ""},
		{"an empty canary is being removed", []planning.Node{old(), old(acting())}, "", ""},
		{"replacements of another pool do not count", []planning.Node{old(), old(acting("x"), elsewhere)}, "", ""},
		{"the replacement is ready for less than the bake time", []planning.Node{old(), replacement(20 * time.Minute)}, driftwaves.RuleCanary, "the next node may be replaced at 2026-11-22T12:10:00Z"},
		{"the replacement is ready for the bake time", []planning.Node{old(), replacement(bake)}, "", ""},
		{"the replacement became ready again", []planning.Node{old(), replacement(50*time.Minute, func(n *planning.Node) { n.ReadySince = ago(time.Minute) })}, driftwaves.RuleCanary, "12:29:00Z"},
		{"the second wave has twice the size", []planning.Node{old(), replacement(40 * time.Minute), replacement(time.Minute)}, "", ""},
		{"the second wave is complete", []planning.Node{old(), replacement(40 * time.Minute), replacement(time.Minute), replacement(5 * time.Minute)}, driftwaves.RuleCanary, "1 of the 3 nodes of this wave have"},
		{"the second wave is ready for the bake time", []planning.Node{old(), replacement(40 * time.Minute), replacement(40 * time.Minute), replacement(40 * time.Minute)}, "", ""},
		{"earlier nodes do not count as ready replacements", []planning.Node{old(), replacement(2 * time.Hour), replacement(5 * time.Minute)}, driftwaves.RuleCanary, ""},
		{"earlier nodes that are not ready do not halt drift", []planning.Node{old(), replacement(2*time.Hour, notReady)}, "", ""},
		{"nodes of another pool do not halt drift", []planning.Node{old(), replacement(time.Minute, elsewhere)}, "", ""},
		{"nodes being deleted do not halt drift", []planning.Node{old(), replacement(time.Minute, going)}, "", ""},
		{"a node that drifted later counts the replacements since the rollout began", []planning.Node{old(late), old(), replacement(40 * time.Minute), replacement(35 * time.Minute)}, "", ""},
		{"a node that drifted later waits for the wave", []planning.Node{old(late), old(), replacement(40 * time.Minute), replacement(5 * time.Minute)}, driftwaves.RuleCanary, ""},
		{"replacements from before the rollout do not count", []planning.Node{old(), old(ancient), replacement(2 * time.Hour), replacement(3 * time.Hour), replacement(time.Minute)}, driftwaves.RuleCanary, ""},
		{"a replacement is not ready", []planning.Node{old(), replacement(40 * time.Minute), replacement(40*time.Minute, notReady)}, driftwaves.RuleHalted, "node new, created since then, is not ready. Drift resumes when"},
		{"a replacement is not initialized in time", []planning.Node{old(), replacement(11*time.Minute, coming)}, driftwaves.RuleHalted, "new, created since then, is not initialized after 10m0s. "},
		{"a replacement that is not ready is being replaced", []planning.Node{old(), replacement(40*time.Minute, notReady, going)}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := planning.Snapshot{TakenAt: noon, Nodes: tt.nodes}
			got := driftwaves.New(&s, &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, share(t, "1")).Objection(tt.nodes[0].Drift.Since)
			if got.Rule != tt.want || !strings.Contains(got.Detail, tt.says) || (got.Detail == "") != got.IsNone() {
				t.Errorf("got %+v, want %s: %s", got, tt.want, tt.says)
			}
		})
	}
}

// After a user resumes drift, nodes that never become ready do not block it.
func TestResumeSkipsFailedNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		node   planning.Node
		resume time.Time
		want   string
	}{
		"a replacement that is not initialized":                   {replacement(20*time.Minute, coming), ago(time.Minute), ""},
		"a replacement that is not ready":                         {replacement(40*time.Minute, notReady), ago(time.Minute), ""},
		"a replacement created after the resume":                  {replacement(20*time.Minute, notReady), ago(30 * time.Minute), driftwaves.RuleHalted},
		"a replacement within the bake time":                      {replacement(20 * time.Minute), ago(time.Minute), driftwaves.RuleCanary},
		"a replacement created after the resume, not initialized": {replacement(2*time.Minute, coming), ago(3 * time.Minute), driftwaves.RuleCanary},
	} {
		s := planning.Snapshot{TakenAt: noon, Nodes: []planning.Node{old(), tt.node}}
		drift := share(t, "1")
		drift.Resume = tt.resume
		if got := driftwaves.New(&s, &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, drift).Objection(ago(time.Hour)); got.Rule != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCanarySize(t *testing.T) {
	s := planning.Snapshot{TakenAt: noon}
	for range 25 {
		s.Nodes = append(s.Nodes, old())
	}
	s.Nodes = append(s.Nodes, replacement(time.Minute, coming))
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for asked, want := range map[string]int{"10%": 2, "1": 0, "4": 3, "0": 0, "0%": 0, "100%": 24} {
		r, goes := driftwaves.New(&s, pool, share(t, asked)), 0
		for r.Objection(ago(time.Hour)).IsNone() {
			r.AddLaunches(1)
			goes++
		}
		if goes != want {
			t.Errorf("%s of 25 nodes, one replacement in progress: %d may be replaced, want %d", asked, goes, want)
		}
	}
	r := driftwaves.New(&s, pool, policy.Drift{})
	if r.AddLaunches(9); r != nil || !r.Objection(ago(time.Hour)).IsNone() {
		t.Errorf("without annotations got %+v", r)
	}
	if r := driftwaves.New(&s, pool, policy.Drift{Bake: bake}); r.Objection(ago(time.Hour)).Rule != driftwaves.RuleCanary {
		t.Error("without a canary size there is no canary")
	}
}

func TestLaunchFailuresHaltDrift(t *testing.T) {
	failed := planning.LaunchRecord{At: ago(20 * time.Minute), Reason: "RegistrationFailed", Message: "Failed to register node", Image: "ami-1"}
	good := planning.LaunchRecord{At: ago(10 * time.Minute), OK: true}
	nameless, before := failed, failed
	nameless.Image, before.At = "", ago(2*time.Hour)
	unhealthy := func(p *karpenter.NodePool) {
		p.Status.Conditions = p.Status.Conditions.With(metav1.Condition{
			Type: karpenter.ConditionTypeNodeRegistrationHealthy, Status: metav1.ConditionFalse, Reason: "RegistrationFailed", Message: "Failed to register node",
		}, ago(20*time.Minute))
	}
	for _, tt := range []struct {
		name     string
		launches []planning.LaunchRecord
		edit     func(*karpenter.NodePool)
		wanted   string
		resume   time.Time
		halted   bool
	}{
		{name: "none"},
		{name: "one", launches: []planning.LaunchRecord{failed}, halted: true},
		{name: "a failed launch before good ones", launches: []planning.LaunchRecord{failed, good, good}, halted: true},
		{name: "a failed launch with the current image", launches: []planning.LaunchRecord{failed}, wanted: "ami-1", halted: true},
		{name: "a failed launch with a former image", launches: []planning.LaunchRecord{failed}, wanted: "ami-2"},
		{name: "a failed launch without an image", launches: []planning.LaunchRecord{nameless}, wanted: "ami-2", halted: true},
		{name: "a failed launch before any node drifted", launches: []planning.LaunchRecord{before}},
		{name: "a failed launch before drift-resume", launches: []planning.LaunchRecord{failed}, resume: ago(19 * time.Minute)},
		{name: "a failed launch after drift-resume", launches: []planning.LaunchRecord{failed}, resume: ago(21 * time.Minute), halted: true},
		{name: "drift-resume in the future", launches: []planning.LaunchRecord{failed}, resume: noon.Add(time.Minute), halted: true},
		{name: "the condition is False, no launch history", edit: unhealthy, halted: true},
		{name: "the condition is False, before drift-resume", edit: unhealthy, resume: ago(time.Minute)},
		{name: "the condition is False, but the launch history is good", launches: []planning.LaunchRecord{good}, edit: unhealthy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Name: "default"}
			class := karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			if tt.launches != nil {
				text, err := json.Marshal(planning.LaunchHistory{Records: tt.launches})
				if err != nil {
					t.Fatal(err)
				}
				pool.Annotations = map[string]string{planning.LaunchHistoryAnnotation: string(text)}
			}
			if tt.edit != nil {
				tt.edit(pool)
			}
			if tt.wanted != "" {
				class.Status.AMIs = []karpenter.AMI{{ID: tt.wanted}}
			}
			s := planning.Snapshot{TakenAt: noon, Nodes: []planning.Node{old()}, NodeClasses: []karpenter.EC2NodeClass{class}}
			drift := share(t, "1")
			drift.Resume = tt.resume
			got := driftwaves.New(&s, pool, drift).Objection(ago(time.Hour))
			if (got.Rule == driftwaves.RuleHalted) != tt.halted || tt.halted && !strings.Contains(got.Detail, "RegistrationFailed: Failed to register node") {
				t.Errorf("got %+v, want halted %v", got, tt.halted)
			}
		})
	}
}

// Nodes are created, deleted, fail and recover at random. Whenever a drifted node may be replaced,
// fewer nodes are unproven than are proven and in the canary together.
func TestWaveIsAtMostTwiceTheProvenNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 4).Draw(t, "canary")
		p, err := policy.Read(map[string]string{policy.DriftCanary: strconv.Itoa(size), policy.DriftBake: bake.String()})
		if err != nil {
			t.Fatal(err)
		}
		s := planning.Snapshot{Nodes: []planning.Node{old()}}
		for range rapid.IntRange(0, 20).Draw(t, "nodes") {
			n := replacement(time.Duration(rapid.IntRange(0, 59).Draw(t, "age")) * time.Minute)
			n.ReadySince = ago(time.Duration(rapid.IntRange(0, 59).Draw(t, "ready")) * time.Minute)
			if rapid.IntRange(0, 5).Draw(t, "coming") == 0 {
				coming(&n)
			}
			s.Nodes = append(s.Nodes, n)
		}
		s.TakenAt = noon.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "later")) * time.Minute)
		proved, unproved := 0, 0
		for _, n := range s.Nodes[1:] {
			if n.Ready && s.TakenAt.Sub(n.ReadySince) >= bake && s.TakenAt.Sub(n.Created) >= bake {
				proved++
			} else {
				unproved++
			}
		}
		r := driftwaves.New(&s, &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, p.Drift)
		for r.Objection(ago(time.Hour)).IsNone() {
			if unproved >= proved+size {
				t.Fatalf("with %d ready and %d unproven replacements another may be replaced", proved, unproved)
			}
			r.AddLaunches(1)
			unproved++
		}
	})
}

// TestTerminatedStaticNodesAreLaunching counts the nodes that a static NodePool lacks after nodes were terminated first.
func TestTerminatedStaticNodesAreLaunching(t *testing.T) {
	for _, tt := range []struct {
		gate     bool
		replicas int64
		want     string
	}{{true, 2, ""}, {true, 3, driftwaves.RuleCanary}, {false, 3, ""}} {
		pool := karpenter.NodePool{}
		pool.Name, pool.Spec.Replicas = "web", &tt.replicas
		pool.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue}}
		s := planning.Snapshot{TakenAt: noon, Nodes: []planning.Node{old(), old()}, NodePools: []karpenter.NodePool{pool}}
		s.Settings.Gates = planning.Gates{StaticCapacity: true, TerminateFirstDrift: tt.gate}
		if got := driftwaves.New(&s, &pool, share(t, "1")).Objection(s.Nodes[0].Drift.Since); got.Rule != tt.want {
			t.Errorf("%+v: objection %+v", tt, got)
		}
	}
}
