package disruption

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// used binds a protected pod that requests this many cores, which keeps its node.
func used(cpu string) func(*node) {
	return func(n *node) {
		fixture.With(fixture.Pods("stays-"+n.Name, 1, cpu, "100Mi"))(n)
		n.Pods[0].Spec.DoNotDisrupt = "true"
	}
}

func pods(name string, count int, cpu string) func(*node) {
	return fixture.With(fixture.Pods(name, count, cpu, "100Mi"))
}

// tight returns a node whose pods fit on two others, which have 1.5 and 2 cores free, if the large
// pod is not placed on the emptier one.
func tight(second string) planning.Snapshot {
	n := fixture.Node
	return fixture.Snapshot(fixture.Pool(),
		n("full", "t4g.xlarge", pods("large", 1, "1500m"), pods("small", 2, "1")),
		n("x", "t4g.xlarge", used("2400m")), n("y", "t4g.xlarge", used(second)))
}

func TestUnplaceableNodesAreKept(t *testing.T) {
	for _, tt := range []struct{ name, second, want, kept string }{
		{"the large pod uses the capacity of two small ones", "1900m", "", "full scheduler-placement"},
		{"all pods fit in any order", "1400m", "SingleNodeConsolidation -full onto x,y", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tight(tt.second)
			found := Evaluate(s, fixture.Stock(s), Options{})
			if got := strings.Join(all(s, found), "; "); got != tt.want {
				t.Errorf("got %q", got)
			}
			kept := ""
			for _, k := range found.Kept {
				if k.Node == "full" {
					kept = k.Node + " " + k.Rule
					if k.Detail != "1 of 3 pods would not fit where kube-scheduler places the others" {
						t.Errorf("got detail %q", k.Detail)
					}
				}
			}
			if kept != tt.kept {
				t.Errorf("got kept %q", kept)
			}
		})
	}
}

// TestProposalIsSimulatedAgain uses a proposal in a snapshot in which a pod was added to one of the
// kept nodes.
func TestProposalIsSimulatedAgain(t *testing.T) {
	s := tight("1400m")
	proposed := Evaluate(s, fixture.Stock(s), Options{}).Commands[0]
	again := func(second string) Findings {
		s := tight(second)
		s.Nodes[0].Proposal = &planning.Proposal{
			ID: proposed.Proposal, Method: string(proposed.Method), Reason: string(proposed.Reason), ProposedAt: fixture.Taken.Add(-time.Minute),
		}
		return Evaluate(s, fixture.Stock(s), Options{})
	}
	if found := again("1400m"); len(found.Commands) != 1 || found.Commands[0].Since.IsZero() {
		t.Errorf("nothing changed, but it is no longer proposed: %+v", found)
	}
	if found := again("1900m"); len(found.Commands) > 0 || found.Kept[0].Rule != RuleSchedulerPlacement {
		t.Errorf("the pods no longer fit, but got %+v", found)
	}
}

// TestCommandsFitKubeScheduler replays the commands of large clusters with the kube-scheduler
// simulation, one after the other.
func TestCommandsFitKubeScheduler(t *testing.T) {
	commands, moved := 0, 0
	for seed := range uint64(4) {
		s := planningtest.GenerateCluster(rand.New(rand.NewPCG(seed, 0)), 60, 1200)
		fixture.Budgets("100%")(&s.NodePools[0])
		stock := instancetypes.New(s, planningtest.NewCatalogue())
		simulation := solver.NewSimulation(prepareSnapshot(s), stock)
		for _, c := range Evaluate(s, stock, Options{}).Commands {
			if left := simulation.FindStrandedPods(c.Result, c.Nodes...); len(left) > 0 && c.Method != Emptiness {
				t.Errorf("seed %d: %s leaves %d of %d pods without capacity", seed, describeFindings(s, c), len(left), c.PodsMoved)
			}
			simulation.Commit(c.Result, c.Nodes...)
			commands, moved = commands+1, moved+c.PodsMoved
		}
	}
	t.Logf("%d commands, %d pods moved", commands, moved)
	if commands < 8 || moved < 400 {
		t.Error("fewer than 8 commands or 400 moved pods")
	}
}
