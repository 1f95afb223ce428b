package collect

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// A pod that was seen pending counts once when it is bound and once when it is ready.
func TestTakeStarts(t *testing.T) {
	made := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	pod := func(phase corev1.PodPhase, node string, ready corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", CreationTimestamp: metav1.NewTime(made)}}
		p.Spec.NodeName, p.Status.Phase = node, phase
		if ready != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		}
		podspec.Trim(p)
		return p
	}
	waits, bound := pod(corev1.PodPending, "", ""), pod(corev1.PodPending, "n", corev1.ConditionFalse)
	unready, runs, done := pod(corev1.PodRunning, "n", corev1.ConditionFalse), pod(corev1.PodRunning, "n", corev1.ConditionTrue), pod(corev1.PodSucceeded, "n", corev1.ConditionFalse)
	named := func(p *corev1.Pod, uid types.UID) *corev1.Pod {
		p = p.DeepCopy()
		p.UID = uid
		return p
	}
	for _, test := range []struct {
		name         string
		seen         []*corev1.Pod
		bound, ready int
	}{
		{"all states", []*corev1.Pod{waits, waits, bound, unready, runs, runs}, 1, 1},
		{"skipped states", []*corev1.Pod{waits, runs}, 1, 1},
		{"running before the first observation", []*corev1.Pod{runs, unready, runs}, 0, 0},
		{"bound before the first observation", []*corev1.Pod{bound, runs}, 0, 0},
		{"deleted before it was bound", []*corev1.Pod{waits, nil}, 0, 0},
		{"ended before it was ready", []*corev1.Pod{waits, bound, done}, 1, 0},
		{"replaced by another pod of the name", []*corev1.Pod{waits, named(runs, "2")}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := NewState(nil)
			var old *corev1.Pod
			for _, now := range test.seen {
				s.starts.trackPod(old, now)
				old = now
			}
			if bound, ready := s.TakeStarts(); len(bound) != test.bound || len(ready) != test.ready || test.ready > 0 && ready[0] != (PodStart{Created: made, Node: "n"}) {
				t.Errorf("got bound %v, ready %v", bound, ready)
			}
			if bound, ready := s.TakeStarts(); len(bound)+len(ready) > 0 {
				t.Error("pods are counted twice")
			}
			if s.starts.trackPod(old, nil); len(s.starts.unbound)+len(s.starts.unready) > 0 {
				t.Errorf("a deleted pod is still tracked: %+v", s.starts)
			}
		})
	}
}
