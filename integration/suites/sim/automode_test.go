package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// seedAutoMode adds a static NodePool of EKS Auto Mode that lacks two of its three nodes, and whose node class has the name of the
// EC2NodeClass. Its one node is empty and drifted, and has a taint that no pod tolerates.
func seedAutoMode(w *embedded.EmbeddedCluster) {
	const id = "aws:///us-west-2a/i-0123456789abcdef0"
	ready := func(kinds ...string) (out karpenter.Conditions) {
		for _, kind := range kinds {
			out = out.With(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}, w.Now())
		}
		return out
	}
	pool := strictNodePool()
	pool.Name, pool.Spec.Replicas, pool.Spec.Disruption.Budgets = "general-purpose", new(int64(3)), []karpenter.Budget{{Nodes: "100%"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
	pool.Status.Conditions = ready(karpenter.ConditionTypeReady)
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("50")}
	labels := map[string]string{
		karpenter.NodePoolLabelKey: pool.Name, corev1.LabelInstanceTypeStable: "m6i.2xlarge", corev1.LabelTopologyZone: "us-west-2a",
		karpenter.CapacityTypeLabelKey: "on-demand", karpenter.NodeRegisteredLabelKey: "true", karpenter.NodeInitializedLabelKey: "true",
	}
	claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "auto", Labels: labels, Finalizers: []string{karpenter.TerminationFinalizer}}}
	claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	claim.Status = karpenter.NodeClaimStatus{ProviderID: id, NodeName: "auto", Capacity: capacity, Allocatable: capacity,
		Conditions: ready(append(karpenter.NodeClaimReady(), karpenter.ConditionTypeReady, karpenter.ConditionTypeDrifted)...)}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "auto", Labels: labels}}
	node.Spec = corev1.NodeSpec{ProviderID: id, Taints: []corev1.Taint{{Key: "team", Value: "auto", Effect: corev1.TaintEffectNoSchedule}}}
	node.Status = corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	w.Kube.SeedObjects(pool, claim, node)
}

// Joist launches, and consolidates its own nodes, next to EKS Auto Mode, and changes nothing of Auto Mode's.
func TestAutoModeInTheSameCluster(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}, Gates: planning.Gates{StaticCapacity: true}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Spec.Disruption = karpenter.Disruption{
		ConsolidationPolicy: karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: karpenter.DurationOf(30 * time.Second), Budgets: []karpenter.Budget{{Nodes: "100%"}},
	}
	seedAutoMode(w)
	if err := w.Apply(ctx, class, pool, web); err != nil {
		t.Fatal(err)
	}
	foreign := func() []cluster.Object {
		var out []cluster.Object
		for kind, name := range map[cluster.Kind]string{cluster.NodePools: "general-purpose", cluster.NodeClaims: "auto"} {
			o, err := w.Kube.Get(ctx, kind, cluster.Key{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, o)
		}
		if out[0].GetName() > out[1].GetName() {
			out[0], out[1] = out[1], out[0]
		}
		return out
	}
	before := foreign()
	for _, step := range []struct{ replicas, least, most int }{{5, 2, 5}, {1, 1, 1}} {
		w.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: "web"}, func(o cluster.Object) {
			o.(*appsv1.Deployment).Spec.Replicas = new(int32(step.replicas))
		})
		if _, err := w.Run(ctx, 15*time.Minute, func() bool { return false }); err != nil {
			t.Fatal(err)
		}
		claims, err := cluster.List[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims)
		if err != nil {
			t.Fatal(err)
		}
		own := 0
		for _, c := range claims {
			switch of := c.Labels[karpenter.NodePoolLabelKey]; {
			case of == pool.Name:
				own++
			case c.Name != "auto":
				t.Errorf("%d replicas: NodeClaim %s of NodePool %s was created", step.replicas, c.Name, of)
			}
		}
		if own < step.least || own > step.most {
			t.Errorf("%d replicas: Joist's NodePool has %d nodes, want %d to %d", step.replicas, own, step.least, step.most)
		}
		if diff := cmp.Diff(before, foreign()); diff != "" {
			t.Errorf("%d replicas: objects of Auto Mode were changed:\n%s", step.replicas, diff)
		}
	}
}
