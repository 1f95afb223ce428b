package solver_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestLabelsOfExistingNodes places a pod on a node by a label that the node has under another name, or has because it
// is a NodeClaim's.
func TestLabelsOfExistingNodes(t *testing.T) {
	const beta, ebs, zone = "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", corev1.LabelTopologyZone
	unmanaged := func(n *planning.Node) { n.Claim, n.NodePool = "", "" }
	labels := func(labels map[string]string) func(*planning.Node) {
		return func(n *planning.Node) { n.Labels = labels }
	}
	for _, tt := range []struct {
		name       string
		node       planning.Node
		key, value string
		fits       bool
	}{
		{"a NodeClaim's node is registered", node("n"), karpenter.NodeRegisteredLabelKey, "true", true},
		{"another node is not", node("n", unmanaged), karpenter.NodeRegisteredLabelKey, "true", false},
		{"another node with the label", node("n", unmanaged, labels(map[string]string{karpenter.NodeRegisteredLabelKey: "true"})), karpenter.NodeRegisteredLabelKey, "true", true},
		{"the pod has an older name", node("n"), beta, "ap-northeast-2a", true},
		{"the node has an older name", node("n", labels(map[string]string{ebs: "ap-northeast-2a"})), zone, "ap-northeast-2a", true},
		{"both have older names", node("n", labels(map[string]string{ebs: "ap-northeast-2a"})), beta, "ap-northeast-2a", true},
		{"the stable name counts", node("n", labels(map[string]string{zone: "ap-northeast-2a", beta: "ap-northeast-2c"})), beta, "ap-northeast-2a", true},
		{"the older name does not", node("n", labels(map[string]string{zone: "ap-northeast-2a", beta: "ap-northeast-2c"})), beta, "ap-northeast-2c", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 5 { // The order in which a map is read changes.
				batch := planningtest.NewBatch(planningtest.NewPods("w", 1, "1", "64Mi", selecting(tt.key, tt.value)))
				batch.Snapshot.Nodes = []planning.Node{tt.node}
				if got := len(solver.Solve(batch, planningtest.NewCatalogue()).Nominations) == 1; got != tt.fits {
					t.Fatalf("placed on the node: %v, want %v", got, tt.fits)
				}
			}
		})
	}
}

// TestTerminatingPodsRepelNone plans as if running pods with required anti-affinity to the pending ones were gone, if they are
// all terminating.
func TestTerminatingPodsRepelNone(t *testing.T) {
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		plan := func(running ...planning.PodClass) string {
			batch := planningtest.NewBatch(planningtest.NewPods("web", 4, "1", "1Gi", requireLabels("app", "web")))
			batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) { n.Pods = running })}
			text, err := json.MarshalIndent(solver.Solve(batch, planningtest.NewCatalogue()), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		repelling := planningtest.NewPods("old", 1, "100m", "64Mi", avoidingOver(key, "web", "old"))
		if plan(repelling) == plan() {
			t.Errorf("%s: a running pod that repels the pending ones changes nothing", key)
		}
		repelling.Pods[0].Terminating = true
		if diff := cmp.Diff(plan(), plan(repelling)); diff != "" {
			t.Errorf("%s: a terminating pod changes the plan (-without it, +with it):\n%s", key, diff)
		}
	}
}
