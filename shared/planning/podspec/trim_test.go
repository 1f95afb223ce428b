package podspec_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

var started = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// computeAll returns everything that this package computes for a pod.
func computeAll(pod *corev1.Pod) map[string]any {
	out := map[string]any{}
	all := podspec.SelectorKeys{"app": true, "hash": true}
	keys, spaces := podspec.SelectorKeys{}, podspec.SelectorKeys{}
	keys.Add(pod)
	spaces.AddNamespaces(pod)
	out["named"], out["spaces"] = keys, spaces
	storage := podspec.NewStorage([]*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data"}}}, nil, nil)
	volumes := podspec.Volumes(pod, storage)
	out["volumes"], out["spec"], out["ref"] = volumes, podspec.Convert(pod, all, volumes), podspec.Ref(pod)
	out["requests"], out["daemon"] = podspec.Requests(pod), podspec.Daemon(pod, nil)
	out["provisionable"], out["reschedulable"], out["bound"] = podspec.Provisionable(pod), podspec.Reschedulable(pod), podspec.NodeBound(pod)
	out["grace"] = podspec.Grace(pod)
	for _, after := range []time.Duration{0, time.Hour} {
		now := started.Add(after)
		until, active, problem := podspec.Protected(pod, now)
		out[fmt.Sprint("protected ", after)] = []any{until, active, problem}
		for _, policy := range []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget} {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "b"}}
			budget.Spec.Selector, budget.Spec.MaxUnavailable = &metav1.LabelSelector{}, new(intstr.FromInt32(0))
			budget.Spec.UnhealthyPodEvictionPolicy = &policy
			key, fully := podspec.NewBudgets([]*policyv1.PodDisruptionBudget{budget}).Blocked(pod, now)
			out[fmt.Sprint("blocked ", after, policy)] = []any{key, fully}
		}
	}
	return out
}

// everyPod generates pods with all fields that may affect planning.
func everyPod(t *rapid.T, i int) *corev1.Pod {
	pick := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
	maybe := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	p := anyPod(t, i)
	p.CreationTimestamp, p.Status.StartTime = started, &started
	p.Spec.NodeName, p.Status.Phase = pick("node", "", "n"), corev1.PodPhase(pick("phase", "Pending", "Pending", "Running", "Failed"))
	p.Spec.HostNetwork = maybe("host network")
	p.Annotations = map[string]string{"other": "x"}
	for _, key := range []string{karpenter.DoNotDisruptAnnotationKey, karpenter.DisruptionCostAnnotationKey, corev1.PodDeletionCost, corev1.MirrorPodAnnotationKey} {
		if maybe(key) {
			p.Annotations[key] = pick("value", "true", "5m", "no")
		}
	}
	if maybe("owned") {
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: pick("owner version", "v1", "apps/v1"), Kind: pick("owner", "ReplicaSet", "DaemonSet", "StatefulSet", "Node"), Name: "o", UID: "o", Controller: new(true),
		}}
	}
	if maybe("going") {
		p.DeletionTimestamp = &started
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.PodResizePending, corev1.PodInitialized} {
		if rapid.Bool().Draw(t, string(kind)) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: kind, Status: corev1.ConditionStatus(pick("status", "True", "False")), Reason: pick("reason", corev1.PodReasonUnschedulable, corev1.PodReasonInfeasible),
			})
		}
	}
	containers(t, p, maybe, pick)
	if maybe("tolerates") {
		p.Spec.Tolerations = []corev1.Toleration{{Key: pick("taint", karpenter.DisruptedTaintKey, "other"), Operator: corev1.TolerationOpExists}}
	}
	if maybe("affinity") {
		p.Spec.Affinity = affine(pick)
	}
	if rapid.Bool().Draw(t, "preempts") {
		p.Status.NominatedNodeName = "m"
	}
	p.Spec.ResourceClaims = make([]corev1.PodResourceClaim, rapid.IntRange(0, 2).Draw(t, "resource claims"))
	p.Spec.Priority, p.Spec.TerminationGracePeriodSeconds = new(int32(i)), new(int64(i))
	p.Spec.Volumes = []corev1.Volume{
		{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick("claim", "data", "none")}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
	}
	return p
}

func containers(t *rapid.T, p *corev1.Pod, maybe func(string) bool, pick func(string, ...string) string) {
	amount := func(label string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(label, "250m", "0.3", "2", "1e30")), "example.com/gpu": resource.MustParse(pick(label, "0", "1"))}
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.Name = fmt.Sprint("c", i)
		if maybe("limited") {
			c.Resources.Limits = amount("limit")
		}
		if maybe("port") {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: rapid.SampledFrom([]int32{0, 80}).Draw(t, "host port"), Protocol: "TCP"}}
		}
		if maybe("resized") {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, AllocatedResources: amount("allocated"), Resources: &corev1.ResourceRequirements{Requests: amount("actual")},
			})
		}
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Name = fmt.Sprint("i", i)
		if maybe("init port") {
			p.Spec.InitContainers[i].Ports = []corev1.ContainerPort{{ContainerPort: 90, HostPort: rapid.SampledFrom([]int32{0, 90}).Draw(t, "init host port")}}
		}
		if maybe("sidecar") {
			p.Spec.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
	}
	if maybe("overhead") {
		p.Spec.Overhead = amount("over")
	}
	if maybe("whole") {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: amount("pod")}
	}
	if maybe("whole limit") {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: amount("pod limit")}
		p.Spec.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(pick("pod memory", "1Gi", "2Gi"))
		if maybe("whole request") {
			p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}
		if maybe("whole resize") {
			p.Status.Resources, p.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: amount("pod actual")}, amount("pod allocated")
		}
	}
}

func affine(pick func(string, ...string) string) *corev1.Affinity {
	term := corev1.NodeSelectorTerm{}
	requirement := corev1.NodeSelectorRequirement{Key: pick("key", karpenter.NodePoolLabelKey, "zone"), Operator: corev1.NodeSelectorOpDoesNotExist}
	if pick("by", "labels", "fields") == "labels" {
		term.MatchExpressions = []corev1.NodeSelectorRequirement{requirement}
	} else {
		term.MatchFields = []corev1.NodeSelectorRequirement{requirement}
	}
	return &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selecting("app"), NamespaceSelector: selecting("team"), TopologyKey: "zone",
		}}},
	}
}

// TestTrimChangesNoDecision checks that trimming does not change any result, with or without a pool,
// once or twice, and that pods with shared parts stay distinct.
func TestTrimChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pool podspec.Pool
		var pods []*corev1.Pod
		var want []map[string]any
		for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
			pod := everyPod(t, i)
			want = append(want, computeAll(pod))
			alone := pod.DeepCopy()
			podspec.Trim(alone)
			if diff := cmp.Diff(want[i], computeAll(alone)); diff != "" {
				t.Fatalf("trimming changed a result (-want +got):\n%s", diff)
			}
			pool.Trim(pod)
			pods = append(pods, pod)
		}
		for i, pod := range pods {
			again := pod.DeepCopy()
			pool.Trim(again)
			if diff := cmp.Diff(pod, again); diff != "" {
				t.Fatalf("trimming twice changed a result (-once +twice):\n%s", diff)
			}
			if diff := cmp.Diff(want[i], computeAll(pod)); diff != "" {
				t.Fatalf("sharing values changed a result (-want +got):\n%s", diff)
			}
		}
	})
}

func TestTrimDropsSecrets(t *testing.T) {
	pod := podWithSecrets()
	// Trim keeps the owner's name and the labels, which stay in the process.
	pod.OwnerReferences[0].Name, pod.Labels["note"] = "web", ""
	podspec.Trim(pod)
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("a secret is in the trimmed pod: %s", text)
	}
}

// TestTrimTemplateChangesNoDecision checks that a trimmed template makes the same buffer and the same
// daemons.
func TestTrimTemplateChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := everyPod(t, 0)
		template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
		template.Spec.NodeName = ""
		shape := func() any {
			made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels, Annotations: template.Annotations}, Spec: *template.Spec.DeepCopy()}
			daemon := podspec.Daemon(made, nil)
			podspec.SetDefaults(&made.Spec)
			return []any{podspec.Convert(made, podspec.SelectorKeys{"app": true}, nil), daemon}
		}
		want := shape()
		podspec.TrimTemplate(template)
		if diff := cmp.Diff(want, shape()); diff != "" {
			t.Fatalf("trimming changed a result (-want +got):\n%s", diff)
		}
	})
}

// TestPoolShares checks that pods of one workload share its labels, and that a pool drops values that
// are not used for long.
func TestPoolShares(t *testing.T) {
	var pool podspec.Pool
	make := func(i int, app string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), UID: types.UID(strconv.Itoa(i)), Labels: map[string]string{"app": app}}}
		pool.Trim(pod)
		return pod
	}
	first, second := make(1, "web"), make(2, "web")
	first.Labels["probe"] = "x"
	if second.Labels["probe"] != "x" {
		t.Error("pods with equal labels do not share a map")
	}
	delete(first.Labels, "probe")
	if other := make(3, "db"); other.Labels["app"] != "db" {
		t.Errorf("labels of a pod with other labels: %v", other.Labels)
	}
	for i := range 40000 {
		make(i, fmt.Sprint("app-", i))
		make(i, "web")
	}
	if again := make(4, "web"); fmt.Sprintf("%p", again.Labels) != fmt.Sprintf("%p", first.Labels) {
		t.Error("the pool dropped a value that is in use")
	}
	before := make(5, "rare")
	for i := range 40000 {
		make(i, fmt.Sprint("batch-", i))
	}
	if after := make(6, "rare"); fmt.Sprintf("%p", after.Labels) == fmt.Sprintf("%p", before.Labels) {
		t.Error("the pool did not drop a value that was unused for long")
	}
}
