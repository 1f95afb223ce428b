package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/scheduling"
	"github.com/joist-autoscaler/joist/shared/scheduling/schedulingtest"
)

func seoul(t *testing.T) catalog.Catalogue {
	t.Helper()
	cat, err := catalog.Embedded(schedulingtest.Region)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func TestSeed(t *testing.T) {
	batch := schedulingtest.Seed(schedulingtest.Pods("inflate", 5, "1", "0"))
	result := scheduling.Solve(batch, seoul(t))
	for _, n := range result.Nodes {
		fmt.Println(n.NodePool, n.Options, len(n.Pods), n.Requests, n.Requirements)
	}
	fmt.Println(result.Unplaced, result.PricePerHour)
}
