package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// TestStores reads stores that were filled once. A kind without a store has no objects and no changes.
func TestStores(t *testing.T) {
	trims := cluster.Trims{cluster.Pods: {Clear: func(o cluster.Object) { o.SetAnnotations(nil) }}}
	s := cluster.NewStores([]cluster.Kind{cluster.Pods, cluster.Nodes}, trims)
	if s.Synced() {
		t.Error("empty stores are synced")
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: map[string]string{"secret": "x"}}}
	pod.Spec.NodeName = "n"
	s[cluster.Pods].Replace([]cluster.Object{pod})
	s[cluster.Nodes].Replace(nil)
	if !s.Synced() {
		t.Error("full stores are not synced")
	}
	got, ok := s.Get(cluster.Pods, cluster.KeyOf(pod))
	if !ok || got.GetAnnotations() != nil || len(s.List(cluster.Pods)) != 1 || len(s.ListBy(cluster.Pods, cluster.ByNode, "n")) != 1 {
		t.Errorf("%v, %t", got, ok)
	}
	if !s.TakeChanges(cluster.Pods).All || !s.TakeChanges(cluster.Pods).Empty() {
		t.Error("the first changes are not all of them, or are taken twice")
	}
	_, ok = s.Get(cluster.Volumes, cluster.Key{Name: "v"})
	if ok || s.List(cluster.Volumes) != nil || s.ListBy(cluster.Volumes, cluster.ByNode, "n") != nil || !s.TakeChanges(cluster.Volumes).Empty() {
		t.Error("a kind without a store has objects or changes")
	}
}
