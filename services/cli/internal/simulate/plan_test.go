package simulate_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

func planFor(t *testing.T, text, region string) simulate.PlanResult {
	t.Helper()
	documents, err := manifest.Read("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := simulate.Plan(simulate.PlanRequest{Objects: manifest.Objects(documents), Region: region, Cluster: "c", Now: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// seedManifests returns a NodePool, its EC2NodeClass and five pods, as users write them.
func seedManifests(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, name := range []string{"nodepool", "nodeclass", "inflate"} {
		text, err := os.ReadFile("../../testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(text))
	}
	return out.String()
}

func TestPlanCountsEveryPod(t *testing.T) {
	a := planFor(t, seedManifests(t), "ap-northeast-2")
	if len(a.Built.Plan.Nominations) != 5 || len(a.Built.Plan.Unplaced) != 0 {
		t.Errorf("%d pods placed, %d pod groups unplaced", len(a.Built.Plan.Nominations), len(a.Built.Plan.Unplaced))
	}
	if a.Built.Plan.PricePerHour <= 0 {
		t.Errorf("price = %v", a.Built.Plan.PricePerHour)
	}
}

// A NodePool of EKS Auto Mode is left out, although its node class has the name of the EC2NodeClass.
func TestPlanLeavesOutOtherProviders(t *testing.T) {
	text := seedManifests(t)
	foreign := strings.NewReplacer("group: karpenter.k8s.aws", "group: eks.amazonaws.com", "kind: EC2NodeClass\n        name", "kind: NodeClass\n        name").Replace(text)
	if foreign == text {
		t.Fatal("the NodePool was not changed")
	}
	a := planFor(t, foreign, "ap-northeast-2")
	if len(a.Batch.Snapshot.NodePools) != 0 || len(a.Built.Plan.Intents) != 0 {
		t.Errorf("%d NodePools, %d launches", len(a.Batch.Snapshot.NodePools), len(a.Built.Plan.Intents))
	}
}

func TestPlanKeepsStatus(t *testing.T) {
	const status = `status:
  subnets: [{id: subnet-1, zone: ap-northeast-2c}]
  conditions: [{type: Ready, status: "False", reason: SubnetsNotFound, message: no subnets}]
`
	text := strings.Replace(seedManifests(t), `role: "${KARPENTER_NODE_ROLE}"`+"\n", `role: "${KARPENTER_NODE_ROLE}"`+"\n"+status, 1)
	a := planFor(t, text, "ap-northeast-2")
	if len(a.Built.Plan.Intents) != 0 || len(a.Built.Plan.Unplaced) != 1 {
		t.Fatalf("%d intents and %d unplaced pod groups with a class that is not ready", len(a.Built.Plan.Intents), len(a.Built.Plan.Unplaced))
	}
	if detail := a.Built.Plan.Unplaced[0].Rejections[0].Detail; !strings.Contains(detail, "no subnets") {
		t.Errorf("reason = %s", detail)
	}
	// Without the condition, the fields of the status are kept and the others assumed.
	text = strings.Replace(text, "  conditions: [{type: Ready, status: \"False\", reason: SubnetsNotFound, message: no subnets}]\n", "", 1)
	a = planFor(t, text, "ap-northeast-2")
	if subnets := a.Batch.Snapshot.NodeClasses[0].Status.Subnets; len(subnets) != 1 || subnets[0].ID != "subnet-1" {
		t.Errorf("subnets = %v", subnets)
	}
	if said := strings.Join(a.Assumptions, "\n"); strings.Contains(said, "a subnet in each zone") || !strings.Contains(said, "an image for each architecture") {
		t.Errorf("assumptions:\n%s", said)
	}
}

// TestPlanEvaluatesExpressions checks that expressions of a class apply to its plan, and that the gate is an assumption.
func TestPlanEvaluatesExpressions(t *testing.T) {
	for _, tt := range []struct{ expression, refusal string }{{"min(max_pods, 20)", ""}, {"1 / (vcpus - 2)", "division by zero"}} {
		text := strings.Replace(seedManifests(t), `role: "${KARPENTER_NODE_ROLE}"`+"\n", `role: "${KARPENTER_NODE_ROLE}"`+"\n  kubelet: {maxPods: '"+tt.expression+"'}\n", 1)
		a := planFor(t, text, "ap-northeast-2")
		if all := strings.Join(a.Assumptions, "\n"); !strings.Contains(all, "as with the AWS feature gate NodeClassCEL") {
			t.Errorf("%s: assumptions:\n%s", tt.expression, all)
		}
		switch unplaced := a.Built.Plan.Unplaced; {
		case tt.refusal == "" && len(unplaced) > 0:
			t.Errorf("%s: unplaced: %+v", tt.expression, unplaced)
		case tt.refusal != "" && (len(unplaced) != 1 || !strings.Contains(unplaced[0].Rejections[0].Detail, tt.refusal)):
			t.Errorf("%s: unplaced: %+v", tt.expression, unplaced)
		}
	}
}

func TestPlanUnknownRegion(t *testing.T) {
	if _, err := simulate.Plan(simulate.PlanRequest{Region: "mars-1"}); err == nil {
		t.Error("an unknown region has prices")
	}
}
