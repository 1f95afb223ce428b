package capacitybuffer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/capacitybuffer"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// pods returns a template of pods that request one CPU each.
func pods() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}}}
}

// there looks up these objects.
func there(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 4}
	switch {
	case key == cluster.Key{Namespace: "shop", Name: "web"} && kind == cluster.Deployments:
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(9)), Template: pods()}}, true
	case key == cluster.Key{Namespace: "shop", Name: "shape"} && kind == cluster.PodTemplates:
		return &corev1.PodTemplate{ObjectMeta: meta, Template: pods()}, true
	}
	return nil, false
}

func made(spec karpenter.CapacityBufferSpec) *karpenter.CapacityBuffer {
	return &karpenter.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "spare", Generation: 2}, Spec: spec}
}

// formatConditions returns the conditions as "type=status reason".
func formatConditions(s karpenter.CapacityBufferStatus) []string {
	var out []string
	for _, c := range s.Conditions {
		if c.ObservedGeneration != 2 || !c.LastTransitionTime.Time.Equal(noon) {
			out = append(out, "other time or generation:")
		}
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	return out
}

func TestResolveStatus(t *testing.T) {
	const ready = "ReadyForProvisioning=True Resolved"
	web := &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}
	shape := &karpenter.LocalObjectRef{Name: "shape"}
	unready := func(reason string) []string {
		return []string{"ReadyForProvisioning=False " + reason, "Provisioning=False NotReadyForProvisioning"}
	}
	for name, c := range map[string]struct {
		spec     karpenter.CapacityBufferSpec
		replicas int32
		template string
		want     []string
	}{
		"percentage of a workload":        {karpenter.CapacityBufferSpec{ScalableRef: web, Percentage: new(int32(50))}, 5, "", []string{ready}},
		"replicas of a template":          {karpenter.CapacityBufferSpec{PodTemplateRef: shape, Replicas: new(int32(3))}, 3, "shape", []string{ready}},
		"limit of a template":             {karpenter.CapacityBufferSpec{PodTemplateRef: shape, Limits: karpenter.Limits{"cpu": resource.MustParse("2")}}, 2, "shape", []string{ready}},
		"none":                            {karpenter.CapacityBufferSpec{PodTemplateRef: shape, Replicas: new(int32(0))}, 0, "shape", []string{ready, "Provisioning=False BufferEmpty"}},
		"missing template":                {karpenter.CapacityBufferSpec{PodTemplateRef: &karpenter.LocalObjectRef{Name: "gone"}, Replicas: new(int32(3))}, -1, "", unready("PodTemplateNotFound")},
		"missing workload":                {karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "gone"}}, -1, "", unready("ScalableRefNotFound")},
		"workload of an unsupported kind": {karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Job", Name: "web"}}, -1, "", unready("ResolutionFailed")},
		"neither template nor workload":   {karpenter.CapacityBufferSpec{Replicas: new(int32(3))}, -1, "", unready("ResolutionFailed")},
		"unknown strategy":                {karpenter.CapacityBufferSpec{ProvisioningStrategy: new("later"), PodTemplateRef: shape, Replicas: new(int32(3))}, -1, "", unready("ResolutionFailed")},
	} {
		t.Run(name, func(t *testing.T) {
			b := made(c.spec)
			got := capacitybuffer.ResolveStatus(b, there, noon)
			if diff := cmp.Diff(c.want, formatConditions(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			replicas := int32(-1)
			if got.Replicas != nil {
				replicas = *got.Replicas
			}
			if replicas != c.replicas || !cmp.Equal(got.ProvisioningStrategy, c.spec.ProvisioningStrategy) {
				t.Errorf("got %d replicas, strategy %v", replicas, got.ProvisioningStrategy)
			}
			switch ref := got.PodTemplateRef; {
			case c.template == "" && ref == nil && got.PodTemplateGeneration == nil:
			case c.template == "" || ref == nil || ref.Name != c.template || *got.PodTemplateGeneration != 4:
				t.Errorf("got template %+v", ref)
			}
			b.Status = got
			if again := capacitybuffer.ResolveStatus(b, there, noon.Add(time.Hour)); !cmp.Equal(again, got) {
				t.Errorf("a second resolution differs: %s", cmp.Diff(got, again))
			}
		})
	}
}

// The plan's result for a buffer of three replicas, and for a buffer that is not in the plan.
func TestStatusAfterPlan(t *testing.T) {
	pod := planning.PodRef{Buffer: "spare"}
	old, fresh := planning.Nomination{Namespace: "shop", Pod: pod, Claim: "old"}, planning.Nomination{Namespace: "shop", Pod: pod, Claim: "new"}
	node := planning.Nomination{Namespace: "shop", Pod: pod, Node: "mine"}
	real := planning.Nomination{Namespace: "shop", Claim: "new"}
	elsewhere := planning.Nomination{Namespace: "other", Pod: pod, Claim: "new"}
	unplaced := planning.UnplacedPods{Namespace: "shop", Pods: []planning.PodRef{pod, {}}}
	intent := planning.PlannedIntent{Claims: []planning.PlannedClaim{{Object: karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "new"}}}}}
	for name, c := range map[string]struct {
		nominations []planning.Nomination
		unplaced    []planning.UnplacedPods
		empty       bool
		want        string
	}{
		"all fit":                          {[]planning.Nomination{old, node, old, real, elsewhere}, nil, false, "Provisioning=True FitsExistingCapacity"},
		"one requires a launch":            {[]planning.Nomination{old, node, fresh}, nil, false, "Provisioning=False RequiresNewCapacity"},
		"one cannot be placed":             {[]planning.Nomination{old, node}, []planning.UnplacedPods{unplaced}, false, "Provisioning=False RequiresNewCapacity"},
		"the plan omits some pods":         {[]planning.Nomination{old, node}, nil, false, ""},
		"the plan omits the buffer":        {[]planning.Nomination{elsewhere, real}, nil, false, ""},
		"the buffer has zero replicas now": {[]planning.Nomination{old, node, fresh}, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := made(karpenter.CapacityBufferSpec{PodTemplateRef: &karpenter.LocalObjectRef{Name: "shape"}, Replicas: new(int32(3))})
			b.Status = capacitybuffer.ResolveStatus(b, there, noon)
			if c.empty {
				b.Status.Replicas = new(int32(0))
			}
			want := formatConditions(b.Status)
			if c.want != "" {
				want = append(want, c.want)
			}
			plan := planning.Plan{Intents: []planning.PlannedIntent{intent}, Nominations: c.nominations, Unplaced: c.unplaced}
			got := capacitybuffer.WithPlan(b, capacitybuffer.CountReserved(plan)[cluster.KeyOf(b)], noon)
			if diff := cmp.Diff(want, formatConditions(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
	unread := made(karpenter.CapacityBufferSpec{})
	unread.Status = capacitybuffer.ResolveStatus(unread, there, noon)
	if got := capacitybuffer.WithPlan(unread, capacitybuffer.ReservedPods{Existing: 3}, noon); !cmp.Equal(got, unread.Status) {
		t.Errorf("a plan changed the status of an unresolved buffer: %v", formatConditions(got))
	}
}
