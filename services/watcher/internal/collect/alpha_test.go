package collect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var allGates = planning.Gates{ReservedCapacity: true, NodeOverlay: true, CapacityBuffer: true, StaticCapacity: true}

func buffer(name string, spec karpenter.CapacityBufferSpec) *karpenter.CapacityBuffer {
	return &karpenter.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "b"}, Spec: spec}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	d.Spec.Replicas = &replicas
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}
	return d
}

func static(name string, replicas int64) *karpenter.NodePool {
	np := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpenter.NodePoolSpec{Replicas: &replicas}}
	np.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue}}
	return np
}

// Behind feature gates, placeholders of a buffer and missing nodes of a static NodePool are pending
// although no pod is.
func TestFeatureGates(t *testing.T) {
	objects := []cluster.Object{
		&karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "cheap", UID: "o"}},
		deployment("web", 4), buffer("spare", karpenter.CapacityBufferSpec{
			ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, Percentage: new(int32(50)),
		}),
		static("fixed", 2), node("n"), claim("c", registered, func(c *karpenter.NodeClaim) { c.Labels[karpenter.NodePoolLabelKey] = "fixed" }),
	}
	off, on := collectAll(objects...), gated(allGates, objects...)
	if keys := off.PendingKeys(); keys != nil || off.Snapshot.NodeOverlays != nil || off.Snapshot.Buffers != nil {
		t.Errorf("with the feature gates off got keys %v, snapshot %+v", keys, off.Snapshot)
	}
	if diff := cmp.Diff([]string{"b-1@", "b-2@", "static/fixed/0"}, on.PendingKeys()); diff != "" {
		t.Error(diff)
	}
	if len(on.Snapshot.NodeOverlays) != 1 || len(on.Snapshot.Buffers) != 1 || len(on.Pending) != 1 {
		t.Fatalf("%+v", on)
	}
	room := on.Pending[0]
	if room.Pods[0].Buffer != "spare" || room.Spec.Namespace != "default" || room.Spec.Priority != planning.BufferPriority || room.Spec.Requests.Cpu().Value() != 1 {
		t.Errorf("got placeholder %+v", room)
	}
	if off.SupplyKey() == on.SupplyKey() {
		t.Error("an overlay does not change the supply key")
	}
}

func gated(gates planning.Gates, objects ...cluster.Object) collect.View {
	return inputs(collect.Inputs{Settings: planning.Settings{Gates: gates}}, objects...)
}
