package disruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// by sets the NodePool's consolidation policy.
func by(policy karpenter.ConsolidationPolicy) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidationPolicy = policy }
}

// Approved and rejected consolidation moves are counted for each NodePool, with a score for
// Balanced ones. Moves that were proposed before, and empty nodes, are not counted.
func TestMovesAreCounted(t *testing.T) {
	balanced, ordinary := by(karpenter.ConsolidationPolicyBalanced), by(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized)
	proposed := func(n *node) {
		n.Proposal = &planning.Proposal{ID: "other", Reason: "Underutilized", Method: string(SingleNode), ProposedAt: fixture.Taken.Add(-time.Minute)}
	}
	large := func(pods int, edits ...func(*node)) node {
		return fixture.Node("large", "t4g.large", append([]func(*node){with(pods)}, edits...)...)
	}
	stays := fixture.Node("stays", "t4g.xlarge", fixture.With(fixture.Pods("big", 2, "1700m", "4Gi")), func(n *node) { n.DoNotDisrupt = true })
	full := func(i int) node { return fixture.Node(fmt.Sprintf("full-%d", i), "t4g.medium", with(3)) }
	for _, tt := range []struct {
		name  string
		pool  func(*karpenter.NodePool)
		nodes []node
		want  []string
	}{
		{"a policy without a score", ordinary, []node{large(1)}, []string{"approved default WhenEmptyOrUnderutilized"}},
		{"the score is high enough", balanced, []node{large(1), stays}, []string{"approved default Balanced", "approved default Balanced scored"}},
		{"the score is too low", balanced, []node{large(3), stays}, []string{"rejected default Balanced", "rejected default Balanced scored"}},
		{"proposed before", ordinary, []node{large(1, proposed)}, nil},
		{"a set", balanced, []node{fixture.Node("a", "t4g.xlarge", with(1)), fixture.Node("b", "t4g.xlarge", with(1)), full(1)}, []string{"approved default Balanced", "approved default Balanced scored"}},
		{"an empty node", balanced, []node{fixture.Node("empty", "t4g.large")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.Snapshot(fixture.Pool(tt.pool, fixture.Budgets("100%")), tt.nodes...)
			found := Evaluate(s, fixture.Stock(s), Options{})
			var recorded []string
			Service{Metrics: func(m metric.Metric, value float64, labels ...string) {
				switch m.Name {
				case metric.ConsolidationMoves.Name:
					recorded = append(recorded, strings.Join(labels, " "))
				case metric.ConsolidationScore.Name:
					recorded = append(recorded, strings.Join(labels, " ")+" scored")
					if (value >= 1/float64(karpenter.BalancedK)) != (labels[0] == "approved") {
						t.Errorf("a move with score %g is %s", value, labels[0])
					}
				}
			}}.countFindings(found.Metrics)
			if diff := cmp.Diff(tt.want, recorded); diff != "" {
				t.Errorf("of %v (-want +got):\n%s\n%+v", all(s, found), diff, found.Kept)
			}
		})
	}
}
