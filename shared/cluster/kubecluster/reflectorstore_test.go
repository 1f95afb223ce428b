package kubecluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// A reflectorStore returns an error for values that are not objects, and its transformer
// returns them unchanged.
func TestReflectorStoreRejectsNonObjects(t *testing.T) {
	shelf := reflectorStore{cluster.NewStore(cluster.Pods, cluster.Trim{}), func() {}}
	for what, err := range map[string]error{
		"adding": shelf.Add("x"), "deleting": shelf.Delete("x"), "listing": shelf.Replace([]any{"x"}, ""),
	} {
		if err == nil {
			t.Errorf("%s of a string succeeded", what)
		}
	}
	if _, err := shelf.Transformer()("no object"); err != nil {
		t.Error(err)
	}
}

// A reflectorStore notifies of each change and of each list, and not of an event without
// a change.
func TestReflectorStoreNotifies(t *testing.T) {
	notified := 0
	shelf := reflectorStore{cluster.NewStore(cluster.Pods, cluster.Trim{Clear: func(o cluster.Object) { o.(*corev1.Pod).Status.Message = "" }}), func() { notified++ }}
	pod := func(message string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.PodStatus{Message: message}}
	}
	for _, step := range []struct {
		what string
		do   func() error
		want int
	}{
		{"an empty list", func() error { return shelf.Replace(nil, "") }, 1},
		{"a new object", func() error { return shelf.Add(pod("x")) }, 1},
		{"a change of a trimmed field", func() error { return shelf.Update(pod("y")) }, 0},
		{"a removal", func() error { return shelf.Delete(pod("y")) }, 1},
	} {
		before := notified
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := notified - before; got != step.want {
			t.Errorf("%s: %d notifications, want %d", step.what, got, step.want)
		}
	}
}
