package podspec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// lookup finds an object in a list, like a cache.
func lookup(objects ...cluster.Object) func(cluster.Kind, cluster.Key) (cluster.Object, bool) {
	return func(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
		for _, o := range objects {
			if is, _ := cluster.KindOf(o); is == kind && cluster.KeyOf(o) == key {
				return o, true
			}
		}
		return nil, false
	}
}

func TestConvertBuffer(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	template := corev1.PodTemplateSpec{Spec: podWithSecrets().Spec}
	template.Labels = map[string]string{"app": secret, "team": "shop", "tier": "web"}
	template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}},
	}}
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
	find := lookup(
		&corev1.PodTemplate{ObjectMeta: meta("shape"), Template: template},
		&appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Template: template, Replicas: new(int32(7))}},
		&appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Template: template}},
		&appsv1.ReplicaSet{ObjectMeta: meta("old"), Spec: appsv1.ReplicaSetSpec{Template: template, Replicas: new(int32(2))}},
	)
	scale := func(group, kind, name string) karpenter.CapacityBufferSpec {
		return karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{APIGroup: group, Kind: kind, Name: name}}
	}
	for _, tt := range []struct {
		name    string
		spec    karpenter.CapacityBufferSpec
		scale   int32
		problem string
	}{
		{"PodTemplate", karpenter.CapacityBufferSpec{PodTemplateRef: &karpenter.LocalObjectRef{Name: "shape"}}, 0, ""},
		{"Deployment", scale("apps", "Deployment", "web"), 7, ""},
		{"Deployment without API group", scale("", "Deployment", "web"), 7, ""},
		{"StatefulSet without replicas defaults to 1", scale("apps", "StatefulSet", "db"), 1, ""},
		{"ReplicaSet", scale("apps", "ReplicaSet", "old"), 2, ""},
		{"no reference", karpenter.CapacityBufferSpec{}, 0, "neither"},
		{"missing PodTemplate", karpenter.CapacityBufferSpec{PodTemplateRef: &karpenter.LocalObjectRef{Name: "gone"}}, 0, "PodTemplate gone does not exist"},
		{"missing Deployment", scale("apps", "Deployment", "gone"), 0, "Deployment gone does not exist"},
		{"unsupported kind", scale("batch", "Job", "web"), 0, `kind Job in API group "batch"`},
		{"unsupported API group", scale("argoproj.io", "Deployment", "web"), 0, "argoproj.io"},
		{"unknown strategy", karpenter.CapacityBufferSpec{ProvisioningStrategy: new("warm"), PodTemplateRef: &karpenter.LocalObjectRef{Name: "shape"}}, 0, `"warm"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := podspec.ConvertBuffer(&karpenter.CapacityBuffer{ObjectMeta: meta("spare"), Spec: tt.spec}, podspec.SelectorKeys{"team": true}, find, nil)
			if got.WorkloadReplicas != tt.scale || (got.Problem == "") != (tt.problem == "") || !strings.Contains(got.Problem, tt.problem) {
				t.Errorf("WorkloadReplicas = %d, Problem = %q", got.WorkloadReplicas, got.Problem)
			}
			if cpu := got.Spec.Requests.Cpu(); tt.problem == "" && (cpu.MilliValue() != 1500 || got.Spec.Namespace != "shop" || len(got.Spec.Volumes) != 0) {
				t.Errorf("converted pod: %+v", got.Spec)
			}
			if diff := cmp.Diff(map[string]string{"team": "shop", "tier": "web"}, got.Spec.Labels); tt.problem == "" && diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if text, _ := json.Marshal(got); strings.Contains(string(text), secret) {
				t.Errorf("a secret is in the output: %s", text)
			}
		})
	}
}
