package collect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// A DaemonSet uses on a node the requests of its newest running pod, or of its template if there is
// none.
func TestDaemonSetRequests(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "x"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}
	takes := func(amount string, age time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(noon.Add(-age))
			p.Spec.Containers[0].Resources.Requests = list("cpu", amount)
		}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	going := func(p *corev1.Pod) {
		at, grace := metav1.NewTime(noon), int64(60)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	other := func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }
	custom := func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1" }
	for _, tt := range []struct {
		name string
		pods []cluster.Object
		want int64
	}{
		{"no pods", nil, 1},
		{"a pod with larger requests", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0))}, 2},
		{"the newest pod counts", []cluster.Object{
			pod("a", "n", owner("DaemonSet"), takes("2", time.Hour)), pod("b", "m", owner("DaemonSet"), takes("3", time.Minute)),
			pod("c", "o", owner("DaemonSet"), takes("4", time.Hour)),
		}, 3},
		{"an ended pod does not count", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), ended)}, 1},
		{"a terminating pod does not count", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), going)}, 1},
		{"a pod of another DaemonSet does not count", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), other)}, 1},
		{"a pod of a custom kind DaemonSet does not count", []cluster.Object{pod("a", "n", owner("DaemonSet"), takes("2", 0), custom)}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := collectAll(append(tt.pods, set.DeepCopy())...).Snapshot.DaemonSets
			if len(got) != 1 || got[0].Requests.Cpu().Value() != tt.want || got[0].OwnerKind != "DaemonSet" {
				t.Errorf("want one DaemonSet with %d CPUs, got %+v", tt.want, got)
			}
		})
	}
}

// Pods use addresses of their node's subnet if the Amazon VPC CNI runs without custom networking.
func TestPodsUseNodeSubnets(t *testing.T) {
	network := func(namespace, name string, env ...corev1.EnvVar) *appsv1.DaemonSet {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "network"}}
		set.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "aws-eks-nodeagent"}, {Name: "aws-node", Env: append([]corev1.EnvVar{{Name: "ENABLE_PREFIX_DELEGATION", Value: "true"}}, env...)},
		}
		return set
	}
	custom := func(value string) corev1.EnvVar {
		return corev1.EnvVar{Name: "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", Value: value}
	}
	for _, tt := range []struct {
		name string
		set  *appsv1.DaemonSet
		want bool
	}{
		{"the VPC CNI", network("kube-system", "aws-node"), true},
		{"custom networking is off", network("kube-system", "aws-node", custom("false")), true},
		{"custom networking", network("kube-system", "aws-node", custom("true")), false},
		{"another network plugin", network("kube-system", "cilium"), false},
		{"another DaemonSet of that name", network("default", "aws-node"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := collectAll(tt.set).Snapshot.PodsUseNodeSubnets; got != tt.want {
				t.Errorf("pods use the subnets of their nodes: %t, want %t", got, tt.want)
			}
		})
	}
}

// A DaemonSet's required node affinity is the one in its template: the controller has replaced a
// running pod's by the name of the pod's node. All other fields are the pod's.
func TestDaemonSetsKeepRequiredAffinity(t *testing.T) {
	required := func(key string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}},
		}}}
	}
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: required("disk").NodeSelectorTerms[0]}}
	bound := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}},
	}}}
	near := func(of *corev1.NodeSelector) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: of}}
	}
	living := near(bound)
	living.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred
	for _, tt := range []struct {
		name                string
		template, pod, want *corev1.Affinity
	}{
		{"replaced in the pod", near(required("gpu")), near(bound), near(required("gpu"))},
		{"missing in the pod", near(required("gpu")), nil, near(required("gpu"))},
		{"with preferences of the pod", near(required("gpu")), living, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required("gpu"), PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}}},
		{"none in the template", nil, near(bound), near(nil)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "x"}}
			set.Spec.Template.Spec.Affinity = tt.template
			alive := pod("a", "n", owner("DaemonSet"), func(p *corev1.Pod) { p.Spec.Affinity = tt.pod.DeepCopy() })
			before := alive.DeepCopy()
			got := collectAll(alive, set).Snapshot.DaemonSets
			if len(got) != 1 {
				t.Fatalf("%d sets", len(got))
			}
			if diff := cmp.Diff(tt.want, got[0].Affinity); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, alive); diff != "" {
				t.Errorf("the cached pod was changed:\n%s", diff)
			}
		})
	}
}
