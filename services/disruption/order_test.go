package disruption

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestSetsThatSaveLittleAreDeferred has two nodes with many pods that fit on an expensive third
// node. The only pod of that node cannot be moved, which raises the fair saving above the saving of
// the two.
func TestSetsThatSaveLittleAreDeferred(t *testing.T) {
	replaced := func(reason karpenter.DisruptionReason, confirmed time.Time) func(*node) {
		return func(n *node) {
			n.Proposal = &planning.Proposal{ID: "1", Reason: string(reason), Method: string(MultiNode), ConfirmedAt: confirmed, Replacements: []string{"new"}}
			n.MarkedForDeletion = true
		}
	}
	joins := func(n *node) { n.Initialized = false }
	renamed := func(n *node) { n.Name, n.Claim = "other", "other" }
	earlier := func(ago time.Duration) func(*node) {
		return replaced(karpenter.DisruptionReasonUnderutilized, fixture.Taken.Add(-ago))
	}
	const both = "MultiNodeConsolidation -a,b onto dear"
	for _, tt := range []struct {
		name     string
		old, new func(*node)
		want     string
		changes  time.Duration
	}{
		{"no replacement is in progress", func(*node) {}, func(*node) {}, both, 0},
		{"a node is created for other pods", func(*node) {}, joins, both, 0},
		{"a consolidation's replacement is not initialized", earlier(0), joins, "", 0},
		{"a consolidation's replacement takes long to become initialized", earlier(8 * time.Minute), joins, "", 0},
		{"a consolidation's replacement is not created", earlier(planning.AdmissionTime - time.Second), renamed, "", time.Second},
		{"a consolidation's replacement is initialized", earlier(0), func(*node) {}, both, 0},
		{"a consolidation's replacement has ended while the old node drains", earlier(planning.AdmissionTime), renamed, both, 0},
		{"a drift replacement is not initialized", replaced(karpenter.DisruptionReasonDrifted, fixture.Taken), joins, both, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := fixture.Node
			s := fixture.Snapshot(fixture.Pool(fixture.Budgets("100%")),
				n("a", "t4g.large", pods("web", 4, "100m")), n("b", "t4g.large", pods("shop", 4, "100m")),
				n("dear", "t4g.xlarge", fixture.With(fixture.Pods("local", 1, "100m", "100Mi", func(spec *planning.PodSpec) {
					spec.NodeSelector = map[string]string{corev1.LabelHostname: "dear"}
				}))),
				n("old", "t4g.medium", used("1500m"), tt.old), n("new", "t4g.medium", used("1500m"), tt.new))
			found := Evaluate(s, fixture.Stock(s), Options{})
			if got := strings.Join(all(s, found), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			i := slices.IndexFunc(found.Kept, func(k Kept) bool { return k.Node == "a" })
			if waits := i >= 0 && found.Kept[i].Rule == RuleLowerPriority; waits != (tt.want == "") {
				t.Errorf("kept: %+v", found.Kept)
			}
			if changes := !found.NextChange.IsZero(); changes != (tt.changes > 0) || changes && !found.NextChange.Equal(fixture.Taken.Add(tt.changes)) {
				t.Errorf("the findings may change at %s, want %s after the snapshot", found.NextChange, tt.changes)
			}
		})
	}
}

// TestFirstSetsSaveMost checks that every set after the first saves the fair amount for each moved
// pod, and that nothing is deferred if no other set is in progress.
func TestFirstSetsSaveMost(t *testing.T) {
	several, late := 0, 0
	for seed := range uint64(8) {
		s := planningtest.GenerateCluster(rand.New(rand.NewPCG(seed, 7)), 60, 400)
		fixture.Budgets("100%")(&s.NodePools[0])
		p := newEvaluation(s, instancetypes.New(s, planningtest.NewCatalogue()), Options{})
		worth := consolidation.NewShadowPrices(&p.snapshot, p.stock)
		fair := worth.WastePerPod(p.availableCandidates(MultiNode))
		p.findSets()
		for i, c := range p.findings.Commands {
			if each := c.SavedPerHour / float64(c.PodsMoved); i > 0 && each < fair {
				t.Errorf("seed %d: set %d saves $%.5f per pod, the fair saving is $%.5f", seed, i, each, fair)
			}
		}
		if several += max(len(p.findings.Commands)-1, 0); !p.hasDeferred {
			continue
		}
		late++
		if len(p.findings.Commands) == 0 {
			t.Errorf("seed %d: a set was deferred, but there is no command", seed)
		}
	}
	if several == 0 || late == 0 {
		t.Errorf("%d passes had several sets and %d deferred a set, want at least one of each", several, late)
	}
}
