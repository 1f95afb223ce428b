package collect_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// What a DaemonSet takes from a node is what its youngest living pod takes, and
// what its template says as long as there is none (B103).
func TestDaemonsB103(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "x"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}
	takes := func(amount string, age time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(noon.Add(-age))
			p.Spec.Containers[0].Resources.Requests = list("cpu", amount)
		}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	going := func(p *corev1.Pod) {
		at, grace := metav1.NewTime(noon), int64(60)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	other := func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }
	for _, tt := range []struct {
		name string
		pods []cluster.Object
		want int64
	}{
		{"no pod yet", nil, 1},
		{"a pod with more", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0))}, 2},
		{"the youngest counts", []cluster.Object{
			pod("a", "n", owner("DaemonSet"), takes("2", time.Hour)), pod("b", "m", owner("DaemonSet"), takes("3", time.Minute)),
			pod("c", "o", owner("DaemonSet"), takes("4", time.Hour)),
		}, 3},
		{"one that has ended does not", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), ended)}, 1},
		{"one that goes does not", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), going)}, 1},
		{"one of another set does not", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), other)}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := from(append(tt.pods, set.DeepCopy())...).Snapshot.DaemonSets
			if len(got) != 1 || got[0].Requests.Cpu().Value() != tt.want || got[0].OwnerKind != "DaemonSet" {
				t.Errorf("want %d cpu of one set: %+v", tt.want, got)
			}
		})
	}
}
