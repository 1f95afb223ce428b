package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

func running(name, cpu string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": name}}}
	pod.Spec.NodeName, pod.Spec.Containers = "n", []corev1.Container{container(cpu, nil)}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func ofDaemon(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}
}

func mirrored(pod *corev1.Pod) {
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
}

func unlabelled(pod *corev1.Pod) { pod.Labels = nil }

func TestSetBoundPods(t *testing.T) {
	port := func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }
	elsewhere := func(pod *corev1.Pod) { pod.Namespace = "other" }
	repels := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	}
	leaves := func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }
	node := planning.Node{Name: "n"}
	podspec.SetBoundPods(&node, []*corev1.Pod{
		running("web", "1", port), running("web", "1", port), running("api", "500m", elsewhere),
		running("logs", "100m", ofDaemon), running("quiet", "100m", ofDaemon, unlabelled), running("alone", "100m", ofDaemon, unlabelled, repels),
		running("late", "100m", ofDaemon, leaves), running("static pod", "100m", mirrored, unlabelled),
	}, podspec.SelectorKeys{"app": true}, func(*corev1.Pod) []planning.Volume {
		return []planning.Volume{{Claim: "shared", Driver: "d"}, {Driver: "own"}}
	}, nil)
	names := func(classes []planning.PodClass) (out []string) {
		for _, class := range classes {
			for _, ref := range class.Pods {
				out = append(out, ref.Name)
			}
		}
		return out
	}
	if diff := cmp.Diff([][]string{{"api", "web", "web"}, {"alone", "logs"}}, [][]string{names(node.Pods), names(node.DaemonPods)}); diff != "" {
		t.Error(diff)
	}
	used, daemons := node.Used[corev1.ResourceCPU], node.DaemonRequests[corev1.ResourceCPU]
	pods, attached := node.Used[corev1.ResourcePods], node.Used[planning.AttachLimitResource("d")]
	if used.String() != "3" || daemons.String() != "400m" || pods.Value() != 8 || len(node.HostPorts) != 2 {
		t.Errorf("used cpu %s, by daemons %s, %s pods, ports %v", used.String(), daemons.String(), pods.String(), node.HostPorts)
	}
	own := node.Used[planning.AttachLimitResource("own")]
	// Claims are counted once per namespace, even if pods share them; claims without a name belong to
	// one pod each.
	if attached.Value() != 2 || own.Value() != 8 {
		t.Errorf("attached volumes: %s with a shared claim, %s of their own", attached.String(), own.String())
	}
}
