package scheduling_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
	"github.com/joist-autoscaler/joist/shared/scheduling/schedulingtest"
)

// However many values of an open label pods ask for, no two of them share a node, and each of them is planned within a few
// batches.
func TestManyValuesOfAnOpenLabel(t *testing.T) {
	const teams, batches = 150, 3
	waiting := map[string]scheduling.PodClass{}
	for i := range teams {
		team := fmt.Sprint("team-", i)
		waiting[team] = schedulingtest.Pods(team, 1, "50m", "16Mi", selecting("example.com/team", team))
	}
	for n := range batches {
		var classes []scheduling.PodClass
		for i := range teams {
			if class, waits := waiting[fmt.Sprint("team-", i)]; waits {
				classes = append(classes, class)
			}
		}
		batch := schedulingtest.Seed(classes...)
		pool := &batch.Snapshot.NodePools[0]
		pool.Spec.Limits, batch.Snapshot.Taken = nil, batch.Snapshot.Taken.Add(time.Duration(n)*30*time.Second)
		pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "example.com/team", Operator: "Exists"})
		result := solve(t, batch)
		for _, node := range result.Nodes {
			team, single := node.Requirements["example.com/team"].Single()
			if !single || len(node.Pods) != 1 {
				t.Errorf("a node has %d pods and the team %s", len(node.Pods), node.Requirements["example.com/team"])
			}
			delete(waiting, team)
		}
	}
	if len(waiting) > 0 {
		t.Errorf("%d of %d pods wait after %d batches", len(waiting), teams, batches)
	}
}
