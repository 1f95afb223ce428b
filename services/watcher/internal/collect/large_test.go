package collect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Pods and DaemonSets with megabytes of affinity make no large document, whether the pods are
// pending or running. The resources of a running pod are still counted.
func TestLargeSpecsMakeSmallDocuments(t *testing.T) {
	objects := []cluster.Object{node("n"), claim("c", registered)}
	avoiding := func(i int) *corev1.Affinity {
		var hosts []string
		for j := range 1000 {
			hosts = append(hosts, fmt.Sprintf("%s-%d-%d", strings.Repeat("x", 40), i, j))
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: hosts}}},
		}}}}
	}
	for i := range 90 {
		avoids := func(p *corev1.Pod) { p.Spec.Affinity = avoiding(i) }
		set := &appsv1.DaemonSet{}
		set.Namespace, set.Name, set.Spec.Template.Spec.Affinity = "default", fmt.Sprint("set-", i), avoiding(i)
		objects = append(objects, pod(fmt.Sprint("waits-", i), "", avoids), pod(fmt.Sprint("runs-", i), "n", avoids), set)
	}
	view := collectAll(objects...)
	text, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 100<<10 {
		t.Errorf("the document has %d bytes", len(text))
	}
	if used := view.Snapshot.Nodes[0].Used[corev1.ResourceCPU]; used.Value() != 90 {
		t.Errorf("the pods on the node use %s CPUs, want 90", used.String())
	}
	if len(view.Pending) != 0 || len(view.Ignored) != 1 || len(view.Ignored[0].Pods) != 90 {
		t.Errorf("%d classes are pending, and %d groups are ignored", len(view.Pending), len(view.Ignored))
	}
}
