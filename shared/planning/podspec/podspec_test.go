package podspec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

const secret = "hunter2"

// podWithSecrets returns a pod with a secret in every field that planning does not need.
func podWithSecrets() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "u1", CreationTimestamp: metav1.NewTime(time.Unix(100, 0)),
			Labels:          map[string]string{"app": "web", "note": secret},
			Annotations:     map[string]string{"vault": secret, corev1.LastAppliedConfigAnnotation: secret, "karpenter.sh/do-not-disrupt": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: secret, Controller: new(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: secret}},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: secret, Hostname: secret, HostAliases: []corev1.HostAlias{{IP: secret}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: secret}},
			Volumes:          []corev1.Volume{{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}},
			SecurityContext:  &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: secret}},
			InitContainers:   []corev1.Container{{Name: secret, Args: []string{secret}}},
			Containers: []corev1.Container{{
				Name: secret, Image: secret, Command: []string{secret}, Args: []string{secret}, WorkingDir: secret,
				Env:          []corev1.EnvVar{{Name: "PASSWORD", Value: secret}},
				EnvFrom:      []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}},
				VolumeMounts: []corev1.VolumeMount{{Name: secret, MountPath: secret}},
				Ports:        []corev1.ContainerPort{{Name: secret, HostPort: 8080, ContainerPort: 80}},
				Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}},
				Lifecycle:    &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{secret}}}},
			}},
		},
		Status: corev1.PodStatus{Message: secret},
	}
}

func TestConvertDropsSecrets(t *testing.T) {
	pod := podWithSecrets()
	if whole, _ := json.Marshal(pod); !strings.Contains(string(whole), secret) {
		t.Fatal("the pod contains no secret, so the test cannot fail")
	}
	for name, spec := range map[string]planning.PodSpec{
		"pod":    podspec.Convert(pod, podspec.SelectorKeys{"app": true}, nil),
		"daemon": podspec.Daemon(pod, nil),
	} {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secret) {
			t.Errorf("%s: a secret is in the output: %s", name, text)
		}
	}
}

func TestConvert(t *testing.T) {
	got := podspec.Convert(podWithSecrets(), podspec.SelectorKeys{"app": true}, nil)
	want := planning.PodSpec{
		Namespace: "shop", OwnerKind: "ReplicaSet", Labels: map[string]string{"app": "web"},
		Requests:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourcePods: resource.MustParse("1")},
		HostPorts:    []planning.HostPort{{Port: 8080}},
		GraceSeconds: 30, DoNotDisrupt: "true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHostPorts checks that the containers that run while the pod runs count with their host ports, also
// in a trimmed pod.
func TestHostPorts(t *testing.T) {
	with := func(port int32, restart *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{RestartPolicy: restart, Ports: []corev1.ContainerPort{{HostPort: port, ContainerPort: port}, {ContainerPort: 1}}}
	}
	limited := with(1, nil)
	limited.Resources.Limits = cpu("1") // Without a request, Trim keeps the containers separate.
	for _, tt := range []struct {
		name       string
		init, main []corev1.Container
		want       []planning.HostPort
	}{
		{"containers", nil, []corev1.Container{with(1, nil), with(2, nil)}, []planning.HostPort{{Port: 1}, {Port: 2}}},
		{"a sidecar", []corev1.Container{with(9, new(corev1.ContainerRestartPolicyAlways))}, []corev1.Container{with(1, nil)}, []planning.HostPort{{Port: 9}, {Port: 1}}},
		{"a sidecar next to a limited container", []corev1.Container{with(9, new(corev1.ContainerRestartPolicyAlways))}, []corev1.Container{limited}, []planning.HostPort{{Port: 9}, {Port: 1}}},
		{"an init container", []corev1.Container{with(9, nil)}, []corev1.Container{with(1, nil)}, []planning.HostPort{{Port: 1}}},
		{"an init container that restarts on failure", []corev1.Container{with(9, new(corev1.ContainerRestartPolicyOnFailure))}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tt.init, Containers: tt.main}}
			if diff := cmp.Diff(tt.want, podspec.Convert(pod, nil, nil).HostPorts); diff != "" {
				t.Error(diff)
			}
			podspec.Trim(pod)
			if diff := cmp.Diff(tt.want, podspec.Convert(pod, nil, nil).HostPorts); diff != "" {
				t.Errorf("trimmed: %s", diff)
			}
		})
	}
}

// pending returns a pod that kube-scheduler marked unschedulable.
func pending(edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func TestProvisionable(t *testing.T) {
	noPools := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpDoesNotExist},
	}}
	anyNode := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpExists},
	}}
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}},
	}}
	require := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	selects := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: "x"} }
	}
	host := func(operator corev1.NodeSelectorOperator) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: operator, Values: []string{"x"}}}}
	}
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		want   bool
		reason bool
	}{
		{"unschedulable", pending(), true, false},
		{"scheduled", pending(func(p *corev1.Pod) { p.Spec.NodeName = "n" }), false, false},
		{"gated", pending(func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated }), false, false},
		{"going", pending(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), false, false},
		{"completed pod", pending(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false, false},
		{"preempting", pending(func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }), false, true},
		{"daemon", pending(func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet"}}
		}), false, true},
		{"static pod", pending(func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node"}} }), false, true},
		{"mirror", pending(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), false, true},
		{"requires no NodePool label", pending(require(noPools)), false, true},
		{"one of two terms requires no NodePool label", pending(require(noPools, anyNode)), true, false},
		{"requires a node by name", pending(require(byName)), false, true},
		{"requires a node by name, or no NodePool label", pending(require(noPools, byName)), false, true},
		{"requires a node by name, or any node", pending(require(byName, anyNode)), true, false},
		{"requires an empty list of terms", pending(require()), true, false},
		{"selects a hostname", pending(selects("kubernetes.io/hostname")), false, true},
		{"selects a restricted Karpenter label", pending(selects("karpenter.sh/initialized")), false, true},
		{"selects a restricted label of a subdomain", pending(selects("sub.karpenter.k8s.aws/x")), false, true},
		{"selects a well-known label", pending(selects("karpenter.sh/capacity-type")), true, false},
		{"selects a NodePool", pending(selects("karpenter.sh/nodepool")), true, false},
		{"selects a custom label", pending(selects("example.com/team")), true, false},
		{"requires a hostname", pending(require(host(corev1.NodeSelectorOpIn))), false, true},
		{"requires a hostname, or any node", pending(require(host(corev1.NodeSelectorOpIn), anyNode)), true, false},
		{"requires a hostname, or no NodePool label", pending(require(host(corev1.NodeSelectorOpIn), noPools)), false, true},
		{"excludes a hostname", pending(require(host(corev1.NodeSelectorOpNotIn))), true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := podspec.Provisionable(tt.pod)
			if got.Provisionable != tt.want || (got.Reason != "") != tt.reason {
				t.Errorf("Provisionable = %+v, want %v with a reason: %v", got, tt.want, tt.reason)
			}
		})
	}
}

// The rules of DaemonSets, StatefulSets and static pods hold for the kinds of Kubernetes. A custom kind of the same name has no such rule, in
// documents as well.
func TestOwnersOfCustomKinds(t *testing.T) {
	for _, tt := range []struct {
		version, kind            string
		nodeBound, static, stays bool
		ownerKind                string
	}{
		{version: "v1", kind: "Node", nodeBound: true, static: true, ownerKind: "Node"},
		{version: "chain.example.com/v1", kind: "Node", ownerKind: "Node.chain.example.com"},
		{version: "apps/v1", kind: "DaemonSet", nodeBound: true, ownerKind: "DaemonSet"},
		{version: "apps.kruise.io/v1alpha1", kind: "DaemonSet", ownerKind: "DaemonSet.apps.kruise.io"},
		{version: "apps/v1", kind: "StatefulSet", stays: true, ownerKind: "StatefulSet"},
		{version: "apps.kruise.io/v1beta1", kind: "StatefulSet", ownerKind: "StatefulSet.apps.kruise.io"},
		{version: "apps/v1", kind: "ReplicaSet", ownerKind: "ReplicaSet"},
		{version: "batch/v1", kind: "Job", ownerKind: "Job"},
		{version: "v1", kind: "ReplicationController", ownerKind: "ReplicationController"},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: tt.version, Kind: tt.kind, Name: "o", Controller: new(true)}}
		if got := podspec.NodeBound(pod); got != tt.nodeBound {
			t.Errorf("%s of %s: its pods belong to their nodes: %t, want %t", tt.kind, tt.version, got, tt.nodeBound)
		}
		if got := podspec.IsStatic(pod); got != tt.static {
			t.Errorf("%s of %s: its pods are static: %t, want %t", tt.kind, tt.version, got, tt.static)
		}
		if got := podspec.Convert(pod, nil, nil).OwnerKind; got != tt.ownerKind {
			t.Errorf("%s of %s: the kind is %s, want %s", tt.kind, tt.version, got, tt.ownerKind)
		}
		pod.DeletionTimestamp = &metav1.Time{}
		if got := podspec.Reschedulable(pod); got != tt.stays {
			t.Errorf("%s of %s: its terminating pods are replaced later: %t, want %t", tt.kind, tt.version, got, tt.stays)
		}
	}
}

func TestReschedulable(t *testing.T) {
	running := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if !podspec.Reschedulable(running) {
		t.Error("a running pod is not reschedulable")
	}
	running.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet"}}
	if podspec.Reschedulable(running) {
		t.Error("a daemon is reschedulable")
	}
	running.OwnerReferences[0].Kind = "ReplicaSet"
	running.DeletionTimestamp = &metav1.Time{}
	if podspec.Reschedulable(running) {
		t.Error("a terminating pod is reschedulable")
	}
	running.OwnerReferences[0].Kind = "StatefulSet"
	if !podspec.Reschedulable(running) {
		t.Error("a terminating StatefulSet pod is not reschedulable")
	}
}

func TestGroupJoinsEqualPods(t *testing.T) {
	pod := func(name, cpu, note string, seconds int64) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", CreationTimestamp: metav1.NewTime(time.Unix(seconds, 0)),
				Labels: map[string]string{"pod-template-hash": note, "app": "a"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{container(cpu, nil)}},
		}
	}
	pods := []*corev1.Pod{pod("late", "1", "x", 9), pod("big", "2", "x", 5), pod("early", "1000m", "y", 1)}
	got := podspec.Group(pods, podspec.SelectorKeys{"app": true}, nil)
	var names [][]string
	for _, class := range got {
		var of []string
		for _, ref := range class.Pods {
			of = append(of, ref.Name)
		}
		names = append(names, of)
	}
	if diff := cmp.Diff([][]string{{"early", "late"}, {"big"}}, names); diff != "" {
		t.Errorf("unselected labels or the notation of quantities split a class (-want +got):\n%s", diff)
	}
}

func TestDaemonDropsNodeAffinity(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}},
		}}}}}}
	if got := podspec.Daemon(pod, nil); got.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Errorf("the daemon pod still has node affinity: %v", got.Affinity)
	}
	if pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		t.Error("Daemon changed its argument")
	}
}
