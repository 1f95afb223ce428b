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
// has a cheaper replacement:
//
//	go test -run '^$' -bench Evaluate -benchmem .
//
// On a shared machine, compare cpu-s/op instead of elapsed time. It is the CPU time of the whole
// process, including garbage collection.
func BenchmarkEvaluate(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{1000, 9000}, {5000, 100_000}, {20_000, 400_000}} {
		for _, budget := range []string{"100%", "10%", "1"} {
			b.Run(fmt.Sprintf("nodes=%d/pods=%d/budget=%s", size.nodes, size.pods, budget), func(b *testing.B) {
				s := planningtest.GenerateCluster(rand.New(rand.NewPCG(uint64(size.nodes), uint64(size.pods))), size.nodes, size.pods)
				fixture.Budgets(budget)(&s.NodePools[0])
				measureEvaluate(b, s)
			})
		}
		b.Run(fmt.Sprintf("nodes=%d/alone", size.nodes), func(b *testing.B) { measureEvaluate(b, replaceableAlone(size.nodes)) })
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
