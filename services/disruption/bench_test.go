package disruption

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// BenchmarkEvaluate evaluates clusters in which much can be saved. If the budget allows one node,
// consolidation tries each node alone. In the clusters "alone", no set saves anything, but each node
// has a cheaper replacement. In the drifted clusters every node has drifted:
//
//	go test -run '^$' -bench 'Evaluate/nodes=5000/' -benchmem .
//
// On a shared machine, compare cpu-s/op instead of elapsed time. It is the CPU time of the whole
// process, including garbage collection.
func BenchmarkEvaluate(b *testing.B) {
	clusters := []struct {
		name, budget string
		podsPerNode  int
		drifted      bool
	}{
		{"half full", "100%", 20, false},
		{"half full, budget 10%", "10%", 20, false},
		{"half full, budget 1", "1", 20, false},
		{"full", "100%", 40, false},
		{"sparse", "100%", 3, false},
		{"empty", "100%", 0, false},
		{"drifted, half full", "100%", 20, true},
		{"drifted, full", "100%", 40, true},
		{"drifted, empty", "100%", 0, true},
	}
	for _, nodes := range []int{1000, 5000, 20_000} {
		for _, c := range clusters {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, c.name), func(b *testing.B) {
				s := planningtest.GenerateCluster(rand.New(rand.NewPCG(uint64(nodes), 1)), nodes, c.podsPerNode*nodes)
				fixture.Budgets(c.budget)(&s.NodePools[0])
				if c.drifted {
					driftAll(s.Nodes)
				}
				measureEvaluate(b, s)
			})
		}
		b.Run(fmt.Sprintf("nodes=%d/alone", nodes), func(b *testing.B) { measureEvaluate(b, replaceableAlone(nodes)) })
	}
}

// driftAll makes all nodes drifted. No node counts as empty yet, because a pod has just ended.
func driftAll(nodes []planning.Node) {
	for i := range nodes {
		nodes[i].Drift = &planning.Drift{Reason: "NodePoolDrifted", Since: planningtest.Now.Add(-time.Hour - time.Duration(i)*time.Second)}
		nodes[i].LastPodEvent = planningtest.Now
	}
}

// replaceableAlone returns a cluster whose nodes have cheaper replacements, but whose sets of nodes
// have none that save a tenth.
func replaceableAlone(size int) planning.Snapshot {
	nodes := make([]planning.Node, size)
	for i := range nodes {
		nodes[i] = fixture.Node(fmt.Sprintf("n%05d", i), "m7g.xlarge", fixture.With(fixture.Pods(fmt.Sprint("web", i), 6, "500m", "2Gi")))
	}
	return fixture.Snapshot(fixture.Pool(fixture.Budgets("100%")), nodes...)
}

func measureEvaluate(b *testing.B, s planning.Snapshot) {
	b.Helper()
	stock := instancetypes.New(s, planningtest.NewCatalogue())
	var found Findings
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		found = Evaluate(s, stock, Options{})
	}
	b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N), "cpu-s/op")
	saved := 0.0
	for _, c := range found.Commands {
		saved += c.SavedPerHour
	}
	b.ReportMetric(float64(len(found.Commands)), "commands")
	b.ReportMetric(saved, "dollars/h")
}

// cpu returns the CPU time of the process so far.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
