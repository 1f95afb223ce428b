package nodeclaim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// object returns the only written object.
func object[T cluster.Object](t *testing.T, v nodeclaim.View) T {
	t.Helper()
	effects := nodeclaim.Next(v)
	if len(effects) != 1 {
		t.Fatalf("got effects %v", formatEffects(effects))
	}
	var out cluster.Object
	switch e := effects[0].(type) {
	case effect.Update:
		out = e.Object
	case effect.UpdateStatus:
		out = e.Object
	}
	typed, ok := out.(T)
	if !ok {
		t.Fatalf("got effects %v", formatEffects(effects))
	}
	return typed
}

// A claim without an instance is removed when no launch is possible any more.
func TestUnlaunchedClaimIsFinalized(t *testing.T) {
	leaves := beingDeleted(time.Hour)
	run(t, []row{
		{"never launched", view(leaves, unadmitted), []string{"update c"}},
		{"refused, token spent", view(leaves, refused(nodeclaim.SpentMark)), []string{"update c"}},
		{"refused, token unspent", view(leaves, refused("unspent")), nil},
		{"a launch may be in flight", view(leaves), nil},
		{"absent from inventories", view(leaves, markedGone), []string{"update c"}},
		{"absent from inventories, like another claim of its intent", view(leaves, markedGone, withUnboundSibling), []string{"update c"}},
		{"without Joist's finalizer", view(leaves, unadmitted, func(v *nodeclaim.View) { v.Claim.Finalizers = []string{"other"} }), nil},
	})
	released := object[*karpenter.NodeClaim](t, view(leaves, unadmitted, func(v *nodeclaim.View) {
		v.Claim.Finalizers = []string{"other", karpenter.TerminationFinalizer}
	}))
	if diff := cmp.Diff([]string{"other"}, released.Finalizers); diff != "" {
		t.Error(diff)
	}
}

// Once EC2 reports the instance as terminated, the node is removed, and then the claim.
func TestTerminatedInstanceIsFinalized(t *testing.T) {
	leaves := change(initialized).and(beingDeleted(time.Minute), markedGone)
	deleted := func(v *nodeclaim.View) { at := metav1.NewTime(noon); v.Node.DeletionTimestamp = &at }
	bare := func(v *nodeclaim.View) { v.Node.Finalizers = nil }
	podDeleted := func(v *nodeclaim.View) { at := metav1.NewTime(noon); v.Pods[0].DeletionTimestamp = &at }
	run(t, []row{
		{"the node is deleted first", view(leaves), []string{"delete n node-uid: instance gone"}},
		{"the node's finalizer is removed", view(leaves, deleted), []string{"update n"}},
		{"pods of the terminated instance are evicted", view(leaves, pods("web", "api")), []string{"evict web", "evict api", "delete n node-uid: instance gone"}},
		{"a pod was bound after the instance terminated", view(leaves, deleted, pods("web")), []string{"evict web", "update n"}},
		{"the node does not wait for a refused eviction", view(leaves, deleted, pods("web"), noEviction), []string{"update n"}},
		{"a pod is being deleted", view(leaves, deleted, pods("web"), podDeleted), []string{"update n"}},
		{"another finalizer remains", view(leaves, deleted, bare), nil},
		{"the claim's finalizer is removed last", view(leaves, nodeless), []string{"send terminate.requested.v1", "update c"}},
		{"another claim of its intent has no instance yet", view(change(initialized).and(beingDeleted(59*time.Second), markedGone), nodeless, withUnboundSibling), nil},
		{"another claim has none after a minute", view(leaves, nodeless, withUnboundSibling), []string{"report AwaitingOtherNodeClaims"}},
		{"the other claims of its intent have their instances", view(leaves, nodeless, func(v *nodeclaim.View) { v.HasUnboundSibling = func() bool { return false } }), []string{"send terminate.requested.v1", "update c"}},
		{"no request during a zonal shift", view(leaves, nodeless, withZonalShift), []string{"update c"}},
		{"its termination was requested", view(leaves, nodeless, condition(karpenter.ConditionTypeInstanceTerminating)), []string{"update c"}},
		{"its termination is about to be requested", view(leaves, nodeless, condition(karpenter.ConditionTypeInstanceTerminating), func(v *nodeclaim.View) { v.Now = v.Now.Add(-55 * time.Second) }), []string{"send terminate.requested.v1", "update c"}},
		{"marked as gone before a crash", view(initialized, markedGone), []string{"delete c claim-uid: instance gone"}},
		{"marked as gone before registration", view(launched, markedGone), []string{"delete c claim-uid: instance gone"}},
	})
	node := object[*corev1.Node](t, view(leaves, deleted))
	if len(node.Finalizers) != 0 {
		t.Errorf("the node still has the finalizers %v", node.Finalizers)
	}
}

func TestTagRequest(t *testing.T) {
	v := view(initialized, annotated(karpenter.InstanceTaggedAnnotationKey, ""))
	send := nodeclaim.Next(v)[0].(effect.Send)
	want := event.TagRequested{
		InstanceID: "i-0123456789abcdef0", ClaimUID: "claim-uid",
		Tags: map[string]string{"Name": "n", "karpenter.sh/nodeclaim": "c", "eks:eks-cluster-name": "prod"},
	}
	if diff := cmp.Diff(want, send.Body); diff != "" {
		t.Error(diff)
	}
	v.Claim.Status.ProviderID = "kwok://n"
	for _, e := range nodeclaim.Next(v) {
		if _, sends := e.(effect.Send); sends {
			t.Error("requested tags for an instance that is not in EC2")
		}
	}
}
