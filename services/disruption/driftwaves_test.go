package disruption

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/driftwaves"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// withAnnotations sets the NodePool's annotations.
func withAnnotations(annotations map[string]string) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Annotations = annotations }
}

// fleet simulates a cluster over time: drifted nodes are replaced, and a replacement is ready after
// two minutes, or never.
type fleet struct {
	planning.Snapshot
	stock    instancetypes.InstanceTypes
	launches planning.LaunchHistory
	// works reports whether launched instances become nodes.
	works bool
	began time.Time
	// replaced has the drifted nodes whose replacements are being launched, by the names of the
	// replacements.
	replaced map[string]node
	// waves records how many nodes were replaced, and when.
	waves []string
	count int
}

func newFleet(nodes int, annotations map[string]string) *fleet {
	f := &fleet{began: fixture.Taken, replaced: map[string]node{}}
	var all []node
	for i := range nodes {
		all = append(all, fixture.Node(fmt.Sprintf("old-%02d", i), "t4g.medium", with(3), drift(time.Minute)))
	}
	f.Snapshot = fixture.Snapshot(fixture.Pool(never, fixture.Budgets("100%"), withAnnotations(annotations)), all...)
	f.stock = fixture.Stock(f.Snapshot)
	return f
}

// run advances time minute by minute.
func (f *fleet) run(minutes int) *fleet {
	for range minutes {
		f.arrive()
		went := 0
		for _, c := range Evaluate(f.Snapshot, f.stock, Options{}).Commands {
			for _, i := range c.Nodes {
				went++
				f.replace(i)
			}
		}
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n node) bool { return n.MarkedForDeletion })
		if went > 0 {
			f.waves = append(f.waves, fmt.Sprintf("%s -%d", f.TakenAt.Sub(f.began), went))
		}
		f.TakenAt = f.TakenAt.Add(time.Minute)
	}
	return f
}

// replace adds a claim as the replacement of a node.
func (f *fleet) replace(i int) {
	f.count++
	came := fixture.Node(fmt.Sprintf("new-%02d", f.count), "t4g.medium", with(3))
	came.Initialized, came.Ready, came.Created = false, false, f.TakenAt
	f.replaced[came.Name] = f.Nodes[i]
	f.Nodes[i].MarkedForDeletion = true
	f.Nodes = append(f.Nodes, came)
}

// arrive makes replacements ready. If they do not work, it rolls back their proposals and later
// deletes the claims, as lifecycle does.
func (f *fleet) arrive() {
	for i := range f.Nodes {
		n := &f.Nodes[i]
		age := f.TakenAt.Sub(n.Created)
		old, waits := f.replaced[n.Name]
		switch {
		case n.Initialized:
		case f.works && age >= 2*time.Minute:
			n.Initialized, n.Ready, n.InitializedAt, n.ReadySince = true, true, f.TakenAt, f.TakenAt
			delete(f.replaced, n.Name)
		case age == 10*time.Minute && waits:
			f.Nodes = append(f.Nodes, old)
			delete(f.replaced, n.Name)
		case age >= 15*time.Minute:
			f.fails(planning.LaunchRecord{At: f.TakenAt, Reason: "RegistrationFailed", Message: "Failed to register node", Image: "ami-bad"})
			f.Nodes[i].MarkedForDeletion = true
		}
	}
	f.Nodes = slices.DeleteFunc(f.Nodes, func(n node) bool { return n.MarkedForDeletion })
}

func (f *fleet) fails(l planning.LaunchRecord) {
	f.launches.Records = append(f.launches.Records, l)
	text, err := json.Marshal(f.launches)
	if err != nil {
		panic(err)
	}
	f.annotate(planning.LaunchHistoryAnnotation, string(text))
}

func (f *fleet) annotate(key, value string) { f.NodePools[0].Annotations[key] = value }

// images sets the AMIs of the NodePool's class.
func (f *fleet) images(ids ...string) {
	class := &f.NodeClasses[0]
	class.Status.AMIs = nil
	for _, id := range ids {
		class.Status.AMIs = append(class.Status.AMIs, karpenter.AMI{ID: id})
	}
}

func canaries() map[string]string {
	return map[string]string{policy.DriftCanary: "10%", policy.DriftBake: "30m"}
}

// kept returns the rules that keep nodes, and the first detail.
func (f *fleet) kept() (rules []string, detail string) {
	for _, k := range Evaluate(f.Snapshot, f.stock, Options{}).Kept {
		if strings.HasPrefix(k.Node, "old") {
			rules, detail = append(rules, k.Rule), k.Detail
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules), detail
}

func (f *fleet) want(t *testing.T, story ...string) {
	t.Helper()
	if diff := cmp.Diff(story, f.waves); diff != "" {
		t.Errorf("nodes went (-want +got):\n%s", diff)
	}
	f.waves = nil
}

// Each wave is twice the one before it, and begins when the nodes of that one have been ready for
// the bake time.
func TestDriftIsReplacedInWaves(t *testing.T) {
	f := newFleet(20, canaries())
	f.works = true
	f.run(240).want(t, "0s -2", "32m0s -4", "1h4m0s -8", "1h36m0s -6")
	all := newFleet(20, map[string]string{})
	all.works = true
	all.run(60).want(t, "0s -20")
	one := newFleet(4, map[string]string{policy.DriftBake: "30m"})
	one.works = true
	one.run(240).want(t, "0s -1", "32m0s -2", "1h4m0s -1")
}

// Budgets apply within a wave.
func TestWaveRespectsBudgets(t *testing.T) {
	f := newFleet(20, canaries())
	f.works = true
	fixture.Budgets("1")(&f.NodePools[0])
	f.run(20)
	for _, went := range f.waves {
		if !strings.HasSuffix(went, " -1") {
			t.Errorf("%s", went)
		}
	}
	if len(f.waves) != 2 {
		t.Errorf("got the first wave %v", f.waves)
	}
}

// Drift with a bad AMI stops after the canary and does not resume with time, only after another AMI
// is set or a user resumes it.
func TestBadImageStopsAfterCanary(t *testing.T) {
	bad := func() *fleet {
		f := newFleet(20, canaries())
		f.images("ami-bad")
		f.run(3*60).want(t, "0s -2")
		rules, detail := f.kept()
		if !slices.Equal(rules, []string{driftwaves.RuleHalted}) || !strings.Contains(detail, "RegistrationFailed") || !strings.Contains(detail, policy.DriftResume) {
			t.Fatalf("nodes are kept by the rules %v: %s", rules, detail)
		}
		if problems := Evaluate(f.Snapshot, f.stock, Options{}).Problems; len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "NodePool default: drift is halted: a launch failed") {
			t.Errorf("got problems %v", problems)
		}
		f.began = f.TakenAt
		return f
	}
	f := bad()
	f.images("ami-good")
	f.works = true
	f.run(40).want(t, "0s -2", "32m0s -4")

	f = bad()
	f.annotate(policy.DriftResume, f.TakenAt.Add(time.Hour).Format(time.RFC3339))
	f.run(55).want(t)
	f.run(3*60).want(t, "1h0m0s -2")

	f = bad()
	f.works = true
	for i := range 4 {
		f.fails(planning.LaunchRecord{At: f.TakenAt.Add(time.Duration(i)), OK: true})
	}
	f.launches.Records = f.launches.Records[len(f.launches.Records)-4:]
	f.fails(planning.LaunchRecord{At: f.TakenAt, OK: true})
	f.run(10).want(t, "0s -2")
}

// A change during a rollout starts again with the canary.
func TestSecondChangeStartsWithCanary(t *testing.T) {
	f := newFleet(20, canaries())
	f.works = true
	f.run(40).want(t, "0s -2", "32m0s -4")
	for i := range f.Nodes {
		if n := &f.Nodes[i]; n.Drift == nil {
			n.Drift = &planning.Drift{Reason: "AMIDrift", Since: f.TakenAt.Add(-time.Second)}
		}
	}
	f.began = f.TakenAt
	f.run(40).want(t, "0s -2", "32m0s -4")
}

// Drift pauses if the annotations cannot be parsed, because they may set waves.
func TestInvalidDriftAnnotationsPauseDrift(t *testing.T) {
	f := newFleet(3, map[string]string{policy.DriftCanary: "a few"})
	f.run(5).want(t)
	if rules, detail := f.kept(); !slices.Equal(rules, []string{"policy-unreadable"}) || !strings.Contains(detail, policy.DriftCanary) {
		t.Errorf("%v: %s", rules, detail)
	}
}
