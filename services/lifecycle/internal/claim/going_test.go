package claim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// object is the one object that a view has written.
func object[T cluster.Object](t *testing.T, v claim.View) T {
	t.Helper()
	effects := claim.Next(v)
	if len(effects) != 1 {
		t.Fatalf("the effects are %v", told(effects))
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
		t.Fatalf("the effects are %v", told(effects))
	}
	return typed
}

// Without an instance a claim may go when none can come any more.
func TestGoingUnlaunched(t *testing.T) {
	leaves := going(time.Hour)
	run(t, []row{
		{"never launched", view(leaves, unadmitted), []string{"update c"}},
		{"refused for good", view(leaves, refused(claim.SpentMark)), []string{"update c"}},
		{"refused, and may be launched by a copy", view(leaves, refused("unspent")), nil},
		{"its launch may be under way", view(leaves), nil},
		{"nothing came of it", view(leaves, gone), []string{"update c"}},
		{"not ours to finish", view(leaves, unadmitted, func(v *claim.View) { v.Claim.Finalizers = []string{"other"} }), nil},
	})
	released := object[*karpenter.NodeClaim](t, view(leaves, unadmitted, func(v *claim.View) {
		v.Claim.Finalizers = []string{"other", karpenter.TerminationFinalizer}
	}))
	if diff := cmp.Diff([]string{"other"}, released.Finalizers); diff != "" {
		t.Error(diff)
	}
}

func disrupted(v *claim.View) {
	v.Node.Spec.Taints = append(v.Node.Spec.Taints, karpenter.DisruptedTaint())
	v.Node.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "karpenter"
}

func period(d time.Duration) change {
	return func(v *claim.View) { v.Claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: d} }
}

func due(in time.Duration) change {
	return annotated(karpenter.NodeClaimTerminationTimestampAnnotationKey, noon.Add(in).Format(time.RFC3339))
}

func TestDrain(t *testing.T) {
	leaves := change(initialized).and(going(time.Minute))
	drains := leaves.and(disrupted)
	terminating := condition(karpenter.ConditionTypeInstanceTerminating)
	run(t, []row{
		{"first the taint", view(leaves, pods("web")), []string{"update n"}},
		{"then the time by which it must be over", view(drains, period(time.Hour), pods("web")), []string{"update c"}},
		{"then pods go", view(drains, pods("web", "api")), []string{"evict web", "evict api"}},
		{"and not again at once", view(drains, pods("web"), func(v *claim.View) { v.MayEvict = func(*corev1.Pod) bool { return false } }), nil},
		{"past their budget when it is time", view(drains, pods("web"), due(20*time.Second)), []string{"delete pod web in 20 s"}},
		{"drained", view(drains), []string{"status c"}},
		{"drained too soon to be true", view(drains, going(time.Second)), nil},
		{"out of time", view(drains, pods("web"), due(0)), []string{"status c"}},
		{"no node ever joined", view(launched, going(time.Second)), []string{"status c"}},
		{"a node that is not registered", view(joined, going(time.Minute)), []string{"update n"}},
		{"then its instance ends", view(drains, terminating), []string{"send terminate.requested.v1"}},
		{"which was asked lately", view(drains, terminating, asked), nil},
		{"whatever pods are left", view(drains, terminating, pods("web")), []string{"send terminate.requested.v1"}},
	})

	node := object[*corev1.Node](t, view(leaves))
	if node.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] != "karpenter" || len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != karpenter.DisruptedTaint() {
		t.Errorf("the node has labels %v and taints %v", node.Labels, node.Spec.Taints)
	}
	timed := object[*karpenter.NodeClaim](t, view(drains, period(time.Hour)))
	if got, want := timed.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey], "2026-11-20T12:59:00Z"; got != want {
		t.Errorf("it must be over at %s, want %s: an hour after the deletion", got, want)
	}
	ended := object[*karpenter.NodeClaim](t, view(drains))
	for _, kind := range []string{karpenter.ConditionTypeDrained, karpenter.ConditionTypeInstanceTerminating} {
		if !ended.Status.Conditions.True(kind) {
			t.Errorf("%s is not said", kind)
		}
	}
	send := claim.Next(view(drains, terminating))[0].(effect.Send)
	want := event.TerminateRequested{InstanceID: "i-0123456789abcdef0", Claim: "c", ClaimUID: "claim-uid", Reason: "its NodeClaim is being deleted"}
	if diff := cmp.Diff(want, send.Body); diff != "" {
		t.Error(diff)
	}
}

// A time that was written by a notice holds, and the pool's own is not put in
// its place.
func TestDeadlineIsKept(t *testing.T) {
	v := view(change(initialized).and(going(time.Minute), disrupted, period(time.Hour), due(20*time.Second), pods("web")))
	if diff := cmp.Diff([]string{"delete pod web in 20 s"}, told(claim.Next(v))); diff != "" {
		t.Error(diff)
	}
}

// Once EC2 shows the instance terminated, the node goes, and the claim last.
func TestGone(t *testing.T) {
	leaves := change(initialized).and(going(time.Minute), gone)
	deleted := func(v *claim.View) { at := metav1.NewTime(noon); v.Node.DeletionTimestamp = &at }
	bare := func(v *claim.View) { v.Node.Finalizers = nil }
	run(t, []row{
		{"the node is deleted", view(leaves, pods("web")), []string{"delete n node-uid: instance gone"}},
		{"then let go", view(leaves, deleted), []string{"update n"}},
		{"somebody else holds it", view(leaves, deleted, bare), nil},
		{"then the claim", view(leaves, func(v *claim.View) { v.Node = nil }), []string{"update c"}},
		{"B137: marked gone, and whoever marked it died before deleting it", view(initialized, gone), []string{"delete c claim-uid: instance gone"}},
		{"B137: marked gone before it registered", view(launched, gone), []string{"delete c claim-uid: instance gone"}},
	})
	node := object[*corev1.Node](t, view(leaves, deleted))
	if len(node.Finalizers) != 0 {
		t.Errorf("the node keeps %v", node.Finalizers)
	}
}

func TestTags(t *testing.T) {
	v := view(initialized, annotated(karpenter.InstanceTaggedAnnotationKey, ""))
	send := claim.Next(v)[0].(effect.Send)
	want := event.TagRequested{
		InstanceID: "i-0123456789abcdef0", ClaimUID: "claim-uid",
		Tags: map[string]string{"Name": "n", "karpenter.sh/nodeclaim": "c", "eks:eks-cluster-name": "prod"},
	}
	if diff := cmp.Diff(want, send.Body); diff != "" {
		t.Error(diff)
	}
	v.Claim.Status.ProviderID = "kwok://n"
	for _, e := range claim.Next(v) {
		if _, sends := e.(effect.Send); sends {
			t.Error("an instance that is not of EC2 was to be tagged")
		}
	}
}
