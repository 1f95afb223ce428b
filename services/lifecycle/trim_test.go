package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/podevents"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// completePod returns a running pod with all fields that lifecycle reads.
func completePod() *corev1.Pod {
	at := metav1.NewTime(trimTime.Add(-time.Hour))
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", UID: "1", CreationTimestamp: metav1.NewTime(at.Add(-time.Minute)), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: new(true)}},
			Annotations:     map[string]string{"other": "x"},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{{Name: "app", Image: "app:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, Resources: corev1.ResourceRequirements{Requests: requests}}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}},
	}
}

var trimTime = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// decisions returns everything that lifecycle decides from a cached pod.
func decisions(pod *corev1.Pod) []string {
	pods := []*corev1.Pod{pod}
	out := []string{fmt.Sprint("last event: ", podevents.Tracker{}.Observe(pods, trimTime).Last)}
	for _, deadline := range []time.Time{{}, trimTime.Add(20 * time.Second), trimTime} {
		plan := termination.PlanDrain(termination.DrainingNode{Pods: pods, Began: trimTime, Deadline: deadline}, trimTime)
		out = append(out, fmt.Sprintf("drain: %d evicted, %d deleted, %d waiting, group of %d", len(plan.Evict), len(plan.Delete), len(plan.Waiting), len(plan.Group)))
	}
	// A critical pod is evicted after the others.
	other := completePod()
	other.Name, other.UID = "web-2", "2"
	group := termination.PlanDrain(termination.DrainingNode{Pods: []*corev1.Pod{pod, other}, Began: trimTime}, trimTime).Group
	out = append(out, fmt.Sprintf("group with another pod: %d", len(group)))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	blocked := termination.BlockedDrain{
		Pods: pods, Began: trimTime.Add(-time.Hour), Budgets: func(string) []*policyv1.PodDisruptionBudget { return []*policyv1.PodDisruptionBudget{budget} },
		EvictionResult: func(*corev1.Pod) (time.Time, error) { return trimTime.Add(-time.Hour), errors.New("refused") },
	}
	out = append(out, fmt.Sprint("blockers: ", termination.FindBlockers(blocked, trimTime)))
	volumes := termination.DrainedNode{Pods: pods, Claim: func(key cluster.Key) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-of-" + key.Name}}
	}}
	for _, volume := range []string{"pv-of-data", "pv-of-web-1-scratch", "pv-of-other"} {
		volumes.Attachments = append(volumes.Attachments, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}})
	}
	return append(out, fmt.Sprint("volumes: ", termination.PendingVolumes(volumes, trimTime)))
}

// Trimming a pod once or twice changes no decision. Each variant changes one field, and that
// changes a decision.
func TestTrimChangesNoDecision(t *testing.T) {
	plain := decisions(completePod())
	for name, change := range map[string]func(p *corev1.Pod){
		"scheduled later": func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(trimTime.Add(-time.Minute))
		},
		"ended": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"ended with a time": func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(trimTime.Add(-time.Second))}}}}
		},
		"a limit without a request, and ended with a time": func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(trimTime.Add(-time.Second))}}}}
		},
		"terminating": func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(trimTime.Add(25*time.Second))), new(int64(30))
		},
		"terminating with a finalizer": func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(trimTime.Add(-10*time.Second))), []string{"example.com/f"}
		},
		"critical":      func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" },
		"a long grace":  func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(10)) },
		"protected":     func(p *corev1.Pod) { p.Annotations[karpenter.DoNotDisruptAnnotationKey] = "true" },
		"another label": func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "web"; p.OwnerReferences[0].Name = "app-web" },
		"tolerating":    func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
		"of a DaemonSet": func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind = "DaemonSet"
		},
		"a mirror": func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			pod := completePod()
			change(pod)
			want := decisions(pod)
			if cmp.Equal(plain, want) {
				t.Fatalf("the variant changes nothing:\n%q", want)
			}
			trim := lifecycle.Trims()[cluster.Pods].Clear
			trim(pod)
			if diff := cmp.Diff(want, decisions(pod)); diff != "" {
				t.Errorf("trimming changed a decision (-want +got):\n%s", diff)
			}
			if pod.Spec.Containers[0].Env != nil {
				t.Error("the pod was not trimmed")
			}
			again := pod.DeepCopy()
			trim(again)
			if diff := cmp.Diff(pod, again); diff != "" {
				t.Errorf("trimming twice changed the pod (-once +twice):\n%s", diff)
			}
		})
	}
}

// A trimmed node can be updated: it keeps its version, and the update leaves the status alone. Of the status it keeps what
// lifecycle reads: resources, conditions without heartbeats, and the boot ID.
func TestTrimmedNodesAreUpdated(t *testing.T) {
	s := newTestCluster(t)
	at := metav1.NewTime(trimTime)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{karpenter.TerminationFinalizer}}}
	node.Spec = corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-1", Taints: []corev1.Taint{karpenter.UnregisteredTaint()}, PodCIDR: "10.0.0.0/24"}
	node.Status = corev1.NodeStatus{
		Capacity: corev1.ResourceList{"cpu": resource.MustParse("4")}, Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3")}, NodeInfo: corev1.NodeSystemInfo{BootID: "boot", KernelVersion: "6"},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "r", Message: "m", LastHeartbeatTime: at, LastTransitionTime: at}},
		Images:     []corev1.ContainerImage{{Names: []string{"app:1"}}}, Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}}, VolumesInUse: []corev1.UniqueVolumeName{"v"},
	}
	s.SeedObjects(node.DeepCopy())
	s.cache.DeliverAll()
	cached, _ := s.cache.Get(cluster.Nodes, cluster.Key{Name: "n"})
	stored := s.getNode("n")
	want := stored.DeepCopy()
	want.Status = corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable, Conditions: stored.DeepCopy().Status.Conditions, NodeInfo: corev1.NodeSystemInfo{BootID: "boot"}}
	want.Status.Conditions[0].LastHeartbeatTime = metav1.Time{}
	if diff := cmp.Diff(want, cached); diff != "" {
		t.Errorf("the trimmed node (-want +got):\n%s", diff)
	}
	changed := cached.(*corev1.Node).DeepCopy()
	changed.Labels["a"] = "changed"
	if _, err := s.ClientFor("lifecycle").Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if got := s.getNode("n"); got.Labels["a"] != "changed" || !cmp.Equal(got.Status, stored.Status) {
		t.Errorf("after the update the node has the labels %v and the status %+v", got.Labels, got.Status)
	}
}
