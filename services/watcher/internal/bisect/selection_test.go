package bisect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func class(namespace, cpu string, pods ...string) planning.PodClass {
	out := planning.PodClass{Spec: planning.PodSpec{
		Namespace: namespace, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}
	for _, name := range pods {
		out.Pods = append(out.Pods, planning.PodRef{Name: name, UID: name})
	}
	return out
}

// Each class is in the batch, deferred or parked. The batch has a reason for each pod that it
// leaves out, and the capacity that was launched for such a pod stays reserved.
func TestSelectClasses(t *testing.T) {
	tried, waits, kills := class("tried", "1", "t"), class("waits", "1500m", "w", "v"), class("kills", "2", "k")
	kills.Pods = append(kills.Pods, planning.PodRef{Name: "room", UID: "room", Buffer: "spare"})
	hash := func(c planning.PodClass) uint64 { return bisect.HashClass(c.Spec) }
	h := outbox.Bisection{
		Spans:  []outbox.Span{{From: hash(tried), To: hash(tried)}, {From: hash(waits), To: hash(waits)}},
		Parked: []outbox.Parked{{Class: hash(kills), Until: noon}},
	}
	cut := bisect.SelectClasses(h, []planning.PodClass{tried, waits, kills})
	names := func(classes []planning.PodClass) (out []string) {
		for _, c := range classes {
			out = append(out, c.Spec.Namespace)
		}
		return out
	}
	if diff := cmp.Diff([][]string{{"tried"}, {"waits"}, {"kills"}}, [][]string{names(cut.Pending), names(cut.Deferred), names(cut.Parked)}); diff != "" {
		t.Error(diff)
	}
	recorded := map[string]int{}
	for _, one := range cut.IgnoredPods() {
		recorded[one.Namespace] = len(one.Pods)
		if one.Reason == "" {
			t.Errorf("no reason for the pods %v", one.Pods)
		}
	}
	if diff := cmp.Diff(map[string]int{"waits": 2, "kills": 1}, recorded); diff != "" {
		t.Error(diff)
	}

	before := []planning.Node{{Name: "expects all", ExpectedPods: []string{"t", "w", "k", "gone"}}, {Name: "expects none"}}
	before[0].Used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	after := cut.ReserveCapacity(before)
	if got := after[0].Used.Cpu().MilliValue(); got != 250+1500+2000 || after[1].Used != nil {
		t.Errorf("reserved %dm CPU on the node, and %v on the other", got, after[1].Used)
	}
	if before[0].Used.Cpu().MilliValue() != 250 {
		t.Error("ReserveCapacity changed its input")
	}
	if all := bisect.SelectClasses(outbox.Bisection{Unanswered: 1, LastAnswered: true}, []planning.PodClass{tried}); len(all.Pending) != 1 || all.IgnoredPods() != nil {
		t.Errorf("without a bisection got %+v", all)
	}
}
