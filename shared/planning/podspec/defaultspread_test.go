package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// in is a requirement of one value.
func in(key, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}
}

func service(namespace string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.ServiceSpec{Selector: selector}}
}

func controlledBy(apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "x", Controller: new(true)}
}

// The selector of default constraints is the one that kube-scheduler and Karpenter deduce.
func TestDefaultSpreadSelector(t *testing.T) {
	type labels = map[string]string
	web, selected := labels{"app": "web"}, func(l labels) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: l} }
	replicaSet, controller := controlledBy("apps/v1", "ReplicaSet"), controlledBy("v1", "ReplicationController")
	notOther := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"other"}}}}
	replicas := func(s *metav1.LabelSelector) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: s}}
	}
	old := func(l labels) *corev1.ReplicationController {
		return &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Selector: l}}
	}
	for _, tt := range []struct {
		name     string
		labels   labels
		refers   []metav1.OwnerReference
		owner    cluster.Object
		services []*corev1.Service
		want     *metav1.LabelSelector
	}{
		{name: "nothing selects the pod", labels: web},
		{"a ReplicaSet, not the labels", labels{"app": "web", "pod-template-hash": "abc", "extra": "x"}, []metav1.OwnerReference{replicaSet}, replicas(selected(labels{"pod-template-hash": "abc", "app": "web"})), nil,
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("app", "web"), in("pod-template-hash", "abc")}}},
		{"a StatefulSet", labels{"app": "db", "apps.kubernetes.io/pod-index": "0"}, []metav1.OwnerReference{controlledBy("apps/v1", "StatefulSet")}, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selected(labels{"app": "db"})}}, nil,
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("app", "db")}}},
		{"expressions of a ReplicaSet", web, []metav1.OwnerReference{replicaSet}, replicas(notOther), nil, notOther},
		{"a ReplicationController", web, []metav1.OwnerReference{controller}, old(labels{"app": "web"}), nil, selected(web)},
		{"a ReplicationController without a selector", web, []metav1.OwnerReference{controller}, old(nil), nil, nil},
		{"a ReplicaSet without a selector", web, []metav1.OwnerReference{replicaSet}, replicas(nil), nil, nil},
		{"another kind of owner", web, []metav1.OwnerReference{controlledBy("batch/v1", "Job")}, replicas(selected(web)), nil, nil},
		{"the kind of another API group", web, []metav1.OwnerReference{controlledBy("example.com/v1", "ReplicaSet")}, replicas(selected(web)), nil, nil},
		{"an owner that is not the controller", web, []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x"}}, replicas(selected(web)), nil, nil},
		{"an owner that is gone", web, []metav1.OwnerReference{replicaSet}, nil, nil, nil},
		{"an owner that is gone, and a Service", web, []metav1.OwnerReference{replicaSet}, nil, []*corev1.Service{service("default", web)}, selected(web)},
		{"a Service", labels{"app": "web", "extra": "x"}, nil, nil, []*corev1.Service{service("default", web)}, selected(web)},
		{"two Services", labels{"app": "web", "tier": "front"}, nil, nil, []*corev1.Service{service("default", web), service("default", labels{"tier": "front"})}, selected(labels{"app": "web", "tier": "front"})},
		{"a Service of other pods", web, nil, nil, []*corev1.Service{service("default", labels{"app": "other"})}, nil},
		{"a Service without a selector", web, nil, nil, []*corev1.Service{service("default", nil)}, nil},
		{"a Service with an empty selector", web, nil, nil, []*corev1.Service{service("default", labels{})}, nil},
		{"a Service of another namespace", web, nil, nil, []*corev1.Service{service("other", web)}, nil},
		{"a Service and an owner", labels{"app": "web", "tier": "front"}, []metav1.OwnerReference{replicaSet}, replicas(selected(web)), []*corev1.Service{service("default", labels{"tier": "front"})},
			&metav1.LabelSelector{MatchLabels: labels{"tier": "front"}, MatchExpressions: []metav1.LabelSelectorRequirement{in("app", "web")}}},
		{"a ReplicationController against a Service", web, []metav1.OwnerReference{controller}, old(labels{"app": "old"}), []*corev1.Service{service("default", web)}, selected(labels{"app": "old"})},
		{"a ReplicaSet against a Service selects nothing", web, []metav1.OwnerReference{replicaSet}, replicas(selected(labels{"app": "other"})), []*corev1.Service{service("default", web)},
			&metav1.LabelSelector{MatchLabels: web, MatchExpressions: []metav1.LabelSelectorRequirement{in("app", "other")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			given := []corev1.TopologySpreadConstraint{{
				MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: new(int32(3)),
				NodeAffinityPolicy: new(corev1.NodeInclusionPolicyIgnore), NodeTaintsPolicy: new(corev1.NodeInclusionPolicyHonor),
			}, {MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: corev1.ScheduleAnyway}}
			d := DefaultSpread{
				Constraints: given,
				Services: func(namespace string) (out []*corev1.Service) {
					for _, s := range tt.services {
						if s.Namespace == namespace {
							out = append(out, s)
						}
					}
					return out
				},
				Find: func(_ cluster.Kind, key cluster.Key) (cluster.Object, bool) {
					if key != (cluster.Key{Namespace: "default", Name: "x"}) {
						t.Errorf("looked for %s", key)
					}
					return tt.owner, tt.owner != nil
				},
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: tt.labels, OwnerReferences: tt.refers}}
			if !d.Applies(pod) {
				t.Fatal("default constraints do not apply")
			}
			var want []corev1.TopologySpreadConstraint
			for _, c := range given {
				if c.LabelSelector = tt.want; tt.want != nil {
					want = append(want, c)
				}
			}
			got := d.ListConstraints(pod)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if given[0].LabelSelector != nil {
				t.Error("the configured constraints were changed")
			}
		})
	}
}

// A pod with constraints, a DaemonSet's pod and a mirror pod keep what they have. The result is marked, and shares
// nothing that is changed with the pod.
func TestDefaultSpreadApplies(t *testing.T) {
	own := []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"a pod":           {corev1.Pod{}, true},
		"own constraints": {corev1.Pod{Spec: corev1.PodSpec{TopologySpreadConstraints: own}}, false},
		"a daemon":        {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{controlledBy("apps/v1", "DaemonSet")}}}, false},
		"a mirror pod":    {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, false},
	} {
		if got := (DefaultSpread{}).Applies(&tt.pod); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, annotations := range []map[string]string{nil, {"karpenter.sh/do-not-disrupt": "true"}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Annotations: annotations}}
		spec := Convert(WithDefaultSpread(pod, own), nil, nil)
		if !spec.DefaultSpread || len(spec.Spread) != 1 || len(pod.Spec.TopologySpreadConstraints) != 0 || len(pod.Annotations) != len(annotations) || spec.DoNotDisrupt != annotations["karpenter.sh/do-not-disrupt"] {
			t.Errorf("%+v of %+v", spec, pod)
		}
	}
	// A user cannot claim that constraints are the defaults.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{defaultSpreadAnnotation: "true"}}}
	if Trim(pod); Convert(pod, nil, nil).DefaultSpread {
		t.Error("a user's annotation was kept")
	}
}
