package podevents_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/podevents"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// change modifies a pod.
type change func(*corev1.Pod)

// pod returns a pod that was bound an hour before noon, with these changes.
func pod(uid string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: uid, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Hour)),
	}}
	p.Status.Phase = corev1.PodRunning
	bound(noon.Add(-time.Hour))(p)
	for _, change := range changes {
		change(p)
	}
	return p
}

func bound(at time.Time) change {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func hasEnded(at time.Time) change {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)},
		}}}
	}
}

func terminating(at time.Time, grace int64) change {
	return func(p *corev1.Pod) {
		ends := metav1.NewTime(at.Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &ends, &grace
	}
}

func owned(api, kind string) change {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{APIVersion: api, Kind: kind}} }
}

// tolerating sets a toleration with which a drain ignores the pod.
func tolerating(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func pods(p ...*corev1.Pod) []*corev1.Pod { return p }

func TestObservedPodEvents(t *testing.T) {
	runs, ends, goes := pod("a"), pod("a", hasEnded(noon)), pod("a", terminating(noon, 30))
	daemon := pod("d", owned("apps/v1", "DaemonSet"))
	for _, test := range []struct {
		name          string
		before, after []*corev1.Pod
		want          bool
	}{
		{"nothing", nil, nil, false},
		{"still running", pods(runs), pods(runs), false},
		{"bound", nil, pods(runs), true},
		{"bound and ended between two reconciles", nil, pods(ends), true},
		{"ended", pods(runs), pods(ends), true},
		{"starts terminating", pods(runs), pods(goes), true},
		{"still terminating", pods(goes), pods(goes), false},
		{"ended while terminating", pods(goes), pods(pod("a", hasEnded(noon), terminating(noon, 30))), false},
		{"removed without terminating", pods(runs), nil, true},
		{"an ended pod was removed", pods(ends), nil, false},
		{"a terminating pod was removed", pods(goes), nil, false},
		{"replaced by another pod", pods(runs), pods(pod("b")), true},
		{"a DaemonSet's came", pods(runs), pods(runs, daemon), false},
		{"a DaemonSet's went", pods(daemon), nil, false},
		{"a pod of another API group's DaemonSet was bound", nil, pods(pod("d", owned("apps.kruise.io/v1", "DaemonSet"))), true},
		{"a pod that drains ignore was bound", nil, pods(pod("a", tolerating)), true},
		{"a static pod was bound", nil, pods(pod("a", owned("v1", "Node"))), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m podevents.Tracker
			m = m.Observe(test.before, noon)
			before := m.Last
			m = m.Observe(test.after, noon.Add(time.Minute))
			if moved := !m.Last.Equal(before); moved != test.want {
				t.Errorf("moved: %t", moved)
			}
			if test.want && !m.Last.Equal(noon.Add(time.Minute)) {
				t.Errorf("got last event at %s", m.Last)
			}
		})
	}
}

// A new process uses the times in the pods' status.
func TestObserveAfterRestart(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for _, test := range []struct {
		name string
		pods []*corev1.Pod
		want time.Time
	}{
		{"an empty node", nil, time.Time{}},
		{"a DaemonSet's pod", pods(pod("d", owned("apps/v1", "DaemonSet"))), time.Time{}},
		{"bound long ago", pods(pod("a"), pod("b", bound(ago(2*time.Hour)))), ago(time.Hour)},
		{"bound since", pods(pod("a"), pod("b", bound(ago(time.Minute)))), ago(time.Minute)},
		{"ended since", pods(pod("a", hasEnded(ago(time.Minute)))), ago(time.Minute)},
		{"deleted since", pods(pod("a", terminating(ago(time.Minute), 3600))), ago(time.Minute)},
		{"ended, by a clock that is ahead", pods(pod("a", hasEnded(noon.Add(time.Hour)))), noon},
		{"without a PodScheduled condition", pods(pod("a", func(p *corev1.Pod) { p.Status.Conditions = nil })), ago(2 * time.Hour)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (podevents.Tracker{}).Observe(test.pods, noon).Last; !got.Equal(test.want) {
				t.Errorf("got last event at %s, want %s", got, test.want)
			}
		})
	}
}

// A status has whole seconds, so a time with a fraction would always be later than its record.
func TestEventTimeHasWholeSeconds(t *testing.T) {
	m := (podevents.Tracker{}).Observe(nil, noon).Observe(pods(pod("a")), noon.Add(1500*time.Millisecond))
	if !m.Last.Equal(noon.Add(time.Second)) {
		t.Errorf("got last event at %s", m.Last)
	}
}
