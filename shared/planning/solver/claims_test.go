package solver_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestResourceClaims checks that pods with dynamic resource claims are rejected with a reason, and are
// planned by their other requests with IGNORE_DRA_REQUESTS=false.
func TestResourceClaims(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("gpu", 2, "1", "1Gi", func(s *planning.PodSpec) { s.ResourceClaims = 1 }))
	rules, detail := labelRule(t, batch)
	if len(rules) == 0 || !strings.Contains(detail, "IGNORE_DRA_REQUESTS") {
		t.Errorf("rejected by %v: %s", rules, detail)
	}
	batch.Snapshot.Settings.PlanDRARequests = true
	if got := solve(t, batch); len(got.Unplaced) > 0 || len(got.Nodes) == 0 {
		t.Errorf("%d nodes, unplaced: %+v", len(got.Nodes), got.Unplaced)
	}
}
