package disruption

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// BenchmarkEvaluate evaluates clusters in which much can be saved. In idle clusters the budget
// allows one node, and consolidation tries each node alone:
// go test -run '^$' -bench Evaluate -benchmem .
func BenchmarkEvaluate(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{1000, 9000}, {5000, 100_000}} {
		for _, budget := range []string{"100%", "10%", "1"} {
			b.Run(fmt.Sprintf("nodes=%d/pods=%d/budget=%s", size.nodes, size.pods, budget), func(b *testing.B) {
				s := planningtest.GenerateCluster(rand.New(rand.NewPCG(uint64(size.nodes), uint64(size.pods))), size.nodes, size.pods)
				fixture.Budgets(budget)(&s.NodePools[0])
				stock := instancetypes.New(s, planningtest.NewCatalogue())
				var found Findings
				b.ReportAllocs()
				for b.Loop() {
					found = Evaluate(s, stock, Options{})
				}
				saved := 0.0
				for _, c := range found.Commands {
					saved += c.SavedPerHour
				}
				b.ReportMetric(float64(len(found.Commands)), "commands")
				b.ReportMetric(saved, "dollars/h")
			})
		}
	}
}
