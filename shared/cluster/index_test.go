package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

func TestIndexes(t *testing.T) {
	for _, test := range []struct {
		name   string
		object cluster.Object
		want   string
		kept   bool
	}{
		{"a bound pod", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, "n", true},
		{"an unbound pod", &corev1.Pod{}, "", true},
		{"an attachment", &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "m"}}, "m", true},
		{"a kind without an index", &corev1.Node{}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind, _ := cluster.KindOf(test.object)
			if got := cluster.ByNode.Value(test.object); got != test.want {
				t.Errorf("Value = %q, want %q", got, test.want)
			}
			if got := len(cluster.Indexes(kind)) == 1; got != test.kept {
				t.Errorf("index exists: %t, want %t", got, test.kept)
			}
		})
	}
	if got := cluster.Index("spec.other").Value(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}); got != "" {
		t.Errorf("value of an unknown index = %q, want none", got)
	}
}
