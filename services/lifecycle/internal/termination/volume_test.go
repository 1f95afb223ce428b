package termination_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// attached attaches the PersistentVolume, or an inline one for "".
func attached(name, pv string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if pv != "" {
		a.Spec.Source.PersistentVolumeName = &pv
	}
	return a
}

// podWithVolumes returns a pod with a volume of each claim.
func podWithVolumes(claims []string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	for _, c := range claims {
		v := corev1.Volume{Name: "data"}
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func stays(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func stuck(p *corev1.Pod) {
	at := metav1.NewTime(noon.Add(-2 * time.Minute))
	p.DeletionTimestamp = &at
}

func ended(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func ephemeral(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
}

func hostPath(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "logs", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
}

func TestPendingVolumes(t *testing.T) {
	// bound maps the claims of the namespace default to their volumes.
	bound := map[string]string{"data": "pv-data", "shared": "pv-shared", "p-scratch": "pv-scratch", "unbound": ""}
	two := []*storagev1.VolumeAttachment{attached("b", "pv-shared"), attached("a", "pv-data")}
	for _, test := range []struct {
		name        string
		attachments []*storagev1.VolumeAttachment
		pods        []*corev1.Pod
		want        []string
	}{
		{"nothing is attached", nil, []*corev1.Pod{podWithVolumes([]string{"data"})}, nil},
		{"volumes of removed pods", two, nil, []string{"a", "b"}},
		{"volumes of a pod that is evicted", two, []*corev1.Pod{podWithVolumes([]string{"data"})}, []string{"a", "b"}},
		{"volumes of an ended pod", two, []*corev1.Pod{podWithVolumes([]string{"data"}, ended)}, []string{"a", "b"}},
		{"volumes of a pod that is not evicted", two, []*corev1.Pod{podWithVolumes([]string{"data"}, stays)}, []string{"b"}},
		{"volumes of a stuck pod", two, []*corev1.Pod{podWithVolumes([]string{"data"}, stuck)}, []string{"b"}},
		{"volume shared by a pod that is evicted and one that is not", two, []*corev1.Pod{podWithVolumes([]string{"shared"}, stays), podWithVolumes([]string{"shared"})}, []string{"a"}},
		{"its PersistentVolumeClaim is missing", two, []*corev1.Pod{podWithVolumes([]string{"missing"}, stays)}, []string{"a", "b"}},
		{"its PersistentVolumeClaim is not bound", two, []*corev1.Pod{podWithVolumes([]string{"unbound"}, stays)}, []string{"a", "b"}},
		{"inline", []*storagev1.VolumeAttachment{attached("a", "")}, nil, nil},
		{"ephemeral volume of a pod that is not evicted", []*storagev1.VolumeAttachment{attached("a", "pv-scratch")}, []*corev1.Pod{podWithVolumes(nil, ephemeral, stays)}, nil},
		{"ephemeral volume of a pod that is evicted", []*storagev1.VolumeAttachment{attached("a", "pv-scratch")}, []*corev1.Pod{podWithVolumes(nil, ephemeral)}, []string{"a"}},
		{"volumes without a PersistentVolumeClaim", two, []*corev1.Pod{podWithVolumes(nil, hostPath, stays)}, []string{"a", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := termination.PendingVolumes(termination.DrainedNode{Attachments: test.attachments, Pods: test.pods, Claim: func(key cluster.Key) *corev1.PersistentVolumeClaim {
				name, there := bound[key.Name]
				if !there || key.Namespace != "default" {
					return nil
				}
				return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: name}}
			}}, noon)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
