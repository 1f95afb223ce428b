package sim

import (
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

// Pods that scaling removes add no eviction that did not take place, and each forgives one for at most an hour
// after its creation.
func TestEvictionRateForgivesUnwantedPods(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	aged := func(age time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
	}
	old := func(count int) []time.Duration { return slices.Repeat([]time.Duration{2 * time.Hour}, count) }
	for _, tt := range []struct {
		name string
		// there are the ages of the pods when a Deployment is scaled from six replicas to
		// wants, and gone the ages of the nodes that are removed for it.
		there, gone []time.Duration
		wants       int32
		now, later  int
	}{
		{"old pods go", old(6), old(2), 4, 0, 0},
		{"a young one goes", append(old(5), time.Minute), append(old(1), time.Minute), 4, 1, 0},
		{"one that moved is not there yet, and is not wanted", old(5), nil, 5, 1, 1},
		{"two that moved are not there yet, and one is wanted", old(4), nil, 5, 1, 1},
		{"one that moved is not there yet, and more are wanted", old(5), nil, 8, 0, 0},
	} {
		r, pods := newEvictionRate(1), map[cluster.Key]*corev1.Pod{}
		for i, age := range tt.there {
			pods[cluster.Key{Name: strconv.Itoa(i)}] = aged(age)
		}
		before, after := newDeployment("web", 1), newDeployment("web", 1)
		before.Spec.Replicas, after.Spec.Replicas = new(int32(6)), new(tt.wants)
		r.recordScaling(memcluster.Effect{At: noon, Key: cluster.KeyOf(after), Before: before, After: after}, pods)
		for _, age := range tt.gone {
			r.recordUnwanted(aged(age))
		}
		now, later := r.countForgiven("web", noon.Add(time.Second)), r.countForgiven("web", noon.Add(time.Hour))
		if now != tt.now || later != tt.later || r.countForgiven("web", noon.Add(time.Hour+2*time.Second)) != 0 || r.countForgiven("batch", noon) != 0 {
			t.Errorf("%s: %d moves are forgiven, want %d, and %d an hour later, want %d", tt.name, now, tt.now, later, tt.later)
		}
	}
}
