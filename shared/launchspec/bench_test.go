package launchspec_test

import (
	"fmt"
	"testing"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// BenchmarkBuild writes the requests of a large plan: a thousand pods of a hundred sizes in a pool
// that allows every type of the region.
func BenchmarkBuild(b *testing.B) {
	w := newWorld()
	w.require()
	w.pool().Spec.Limits = nil
	for i := range 100 {
		w.batch.Pending = append(w.batch.Pending, planningtest.NewPods(fmt.Sprintf("app-%d", i), 10, fmt.Sprintf("%dm", 200+97*i), fmt.Sprintf("%dMi", 100+331*(i%17))))
	}
	ref, _, err := blob.Encode(planning.BatchKind, w.batch)
	if err != nil {
		b.Fatal(err)
	}
	result := solver.Solve(w.batch, w.cat)
	b.ReportMetric(float64(len(result.Nodes)), "nodes")
	for b.Loop() {
		built, err := launchspec.Build(w.batch, ref, result, w.cat)
		if err != nil || len(built.Intents) == 0 {
			b.Fatal(len(built.Intents), err)
		}
		b.ReportMetric(float64(len(built.Intents)), "intents")
	}
}
