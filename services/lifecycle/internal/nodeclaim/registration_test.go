package nodeclaim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// synced sets that the node already has the claim's metadata, but the claim's status does not show
// it yet.
func synced(t *testing.T) change {
	return change(joined).and(func(v *nodeclaim.View) { nodes(v, written[*corev1.Node](t, *v)) })
}

func inited(v *nodeclaim.View) { v.Node.Labels[karpenter.NodeInitializedLabelKey] = "true" }

func TestUnregisteredClaim(t *testing.T) {
	unlabelled := func(v *nodeclaim.View) { delete(v.Claim.Labels, karpenter.CapacityTypeLabelKey) }
	timeout := []string{"update c"}
	reported := []string{"status c"}
	both := []string{"update n", "status c"}
	ready := nodeReady(corev1.ConditionTrue).and(func(v *nodeclaim.View) { v.Node.Spec.Taints = []corev1.Taint{karpenter.UnregisteredTaint()} })
	slow := corev1.Taint{Key: "slow", Effect: corev1.TaintEffectNoSchedule}
	two := func(v *nodeclaim.View) { nodes(v, v.Node, v.Node.DeepCopy()) }
	run(t, []row{
		{"no node yet", view(launched), nil},
		{"no node, before the registration timeout", view(launched, withAge(nodeclaim.RegistrationTimeout-1)), nil},
		{"no node, after the registration timeout", view(launched, withAge(nodeclaim.RegistrationTimeout)), timeout},
		{"no node, after the registration timeout, marked", view(launched, annotated(nodeclaim.FailedAnnotation, nodeclaim.FailedRegistration)), []string{"delete c claim-uid: its registration took too long"}},
		{"a node, but no labels on the claim", view(joined, unlabelled), nil},
		{"no labels after the registration timeout", view(joined, unlabelled, withAge(nodeclaim.RegistrationTimeout)), timeout},
		{"a node", view(joined), both},
		{"a labelled node", view(synced(t)), reported},
		{"a node after the registration timeout is registered", view(joined, withAge(time.Hour)), both},
		{"two nodes", view(joined, two), reported},
		{"two nodes, after the registration timeout", view(joined, two, withAge(nodeclaim.RegistrationTimeout)), timeout},
		{"one of two nodes remains", view(joined, two, func(v *nodeclaim.View) { nodes(v, v.Node) }), both},
		{"without the unregistered taint", view(joined, func(v *nodeclaim.View) { v.Node.Spec.Taints = nil }), []string{"report UnregisteredTaintMissing", "update n", "status c"}},
		{"with the unregistered taint, but another effect", view(joined, func(v *nodeclaim.View) { v.Node.Spec.Taints[0].Effect = corev1.TaintEffectNoSchedule }), []string{"report UnregisteredTaintMissing", "update n", "status c"}},
		{"registered, so without the taint", view(synced(t), func(v *nodeclaim.View) { v.Claim.Labels["new"] = "label" }), both},
	})
	for name, c := range map[string]struct {
		view        nodeclaim.View
		initialized bool
	}{
		"not ready":               {view(joined), false},
		"ready":                   {view(joined, ready), true},
		"ready, with startup":     {view(joined, ready, startup(slow)), false},
		"ready, waits for device": {view(joined, ready, requests("nvidia.com/gpu", "1")), false},
	} {
		node, claim := written[*corev1.Node](t, c.view), written[*karpenter.NodeClaim](t, c.view)
		if is := node.Labels[karpenter.NodeInitializedLabelKey] == "true"; is != c.initialized || claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) != is ||
			claim.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) != is || !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered) || claim.Status.NodeName != "n" {
			t.Errorf("%s: initialized: %t, want %t: %+v", name, is, c.initialized, claim.Status)
		}
	}
}

// While a hook waits, the node gets everything but stays tainted, at most until the registration
// timeout.
func TestRegistrationHooks(t *testing.T) {
	waits := func(v *nodeclaim.View) {
		v.Claim.Labels[karpenter.LabelPlacementGroupID], v.Claim.Labels[karpenter.LabelPlacementGroupPartition] = "pg-1", ""
	}
	knows := func(v *nodeclaim.View) { v.Claim.Labels[karpenter.LabelPlacementGroupPartition] = "3" }
	v := view(joined, waits)
	node := written[*corev1.Node](t, v)
	if !karpenter.HasTaint(node.Spec.Taints, karpenter.UnregisteredTaint()) || node.Labels[karpenter.NodeRegisteredLabelKey] != "" {
		t.Errorf("the node accepts pods while a hook is pending: %v, %v", node.Spec.Taints, node.Labels)
	}
	if len(node.Finalizers) == 0 || node.Labels[karpenter.LabelPlacementGroupID] != "pg-1" {
		t.Errorf("the node was not synced while a hook is pending: %v", node.ObjectMeta)
	}
	says, _ := written[*karpenter.NodeClaim](t, v).Status.Conditions.Get(karpenter.ConditionTypeRegistered)
	if says.Reason != "RegistrationHookPending" || says.Message != "PlacementGroupRegistrationHook" {
		t.Errorf("got condition %+v", says)
	}
	nodes(&v, node)
	reported := func(v *nodeclaim.View) { v.Claim.Status = written[*karpenter.NodeClaim](t, *v).Status }
	synced := func(w *nodeclaim.View) { nodes(w, node) }
	run(t, []row{
		{"synced, and the condition is set", view(joined, waits, reported, synced), nil},
		{"pending after the registration timeout", view(joined, waits, reported, synced, withAge(nodeclaim.RegistrationTimeout)), []string{"update c"}},
		{"the partition is known", view(joined, waits, reported, synced, knows), []string{"update n", "status c"}},
	})
	node = written[*corev1.Node](t, view(joined, waits, reported, synced, knows))
	if node.Labels[karpenter.LabelPlacementGroupPartition] != "3" || node.Labels[karpenter.NodeRegisteredLabelKey] != "true" {
		t.Errorf("got labels %v", node.Labels)
	}
}

// Registration writes labels, annotations, taints and finalizer in one write.
func TestRegistrationWritesNodeOnce(t *testing.T) {
	dedicated := corev1.Taint{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}
	cilium := corev1.Taint{Key: "node.cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoExecute}
	v := view(joined, startup(cilium), func(v *nodeclaim.View) {
		v.Claim.Spec.Taints = []corev1.Taint{dedicated}
		v.Claim.Labels["mine"] = "yes"
		v.Claim.Annotations["team"] = "a"
		v.Node.Spec.Taints = append(v.Node.Spec.Taints, dedicated)
		v.Node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "their-uid"}}
	})
	node := written[*corev1.Node](t, v)
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if diff := cmp.Diff([]corev1.Taint{notReady, dedicated, cilium}, node.Spec.Taints); diff != "" {
		t.Errorf("taints:\n%s", diff)
	}
	labels := map[string]string{
		"kubelet": "set", "mine": "yes", karpenter.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m6i.large",
		karpenter.NodeRegisteredLabelKey: "true", corev1.LabelTopologyZone: "eu-west-1a", corev1.LabelTopologyRegion: "eu-west-1",
		karpenter.CapacityTypeLabelKey: "spot",
	}
	if diff := cmp.Diff(labels, node.Labels); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, node.Annotations); diff != "" {
		t.Errorf("annotations:\n%s", diff)
	}
	if diff := cmp.Diff([]string{karpenter.TerminationFinalizer}, node.Finalizers); diff != "" {
		t.Errorf("finalizers:\n%s", diff)
	}
	if len(node.OwnerReferences) != 2 || node.OwnerReferences[0].Name != "theirs" {
		t.Fatalf("the existing owner reference was removed: %+v", node.OwnerReferences)
	}
	owner := node.OwnerReferences[1]
	if owner.Kind != "NodeClaim" || owner.APIVersion != "karpenter.sh/v1" || owner.UID != "claim-uid" || !*owner.BlockOwnerDeletion {
		t.Errorf("got owner %+v", owner)
	}
	if len(v.Node.Finalizers) != 0 || len(v.Node.Spec.Taints) != 3 {
		t.Error("the node of the cache was changed")
	}

	v.Node.OwnerReferences = node.OwnerReferences
	if again := written[*corev1.Node](t, v); len(again.OwnerReferences) != 2 {
		t.Errorf("a second registration added an owner reference: %+v", again.OwnerReferences)
	}

	v.Node.Labels[karpenter.NodeDoNotSyncTaintsLabelKey] = "true"
	node = written[*corev1.Node](t, v)
	if diff := cmp.Diff([]corev1.Taint{notReady, dedicated}, node.Spec.Taints); diff != "" {
		t.Errorf("taints of a node that syncs none:\n%s", diff)
	}

	v = view(synced(t))
	done := object[*karpenter.NodeClaim](t, v)
	if done.Status.NodeName != "n" || !done.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered) {
		t.Errorf("got status %+v", done.Status)
	}
}

// rebooting is a claim whose reboot was issued.
func rebooting(v *nodeclaim.View) {
	for _, c := range []metav1.Condition{
		{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: karpenter.ConditionTypeRebooting, Message: "node is rebooting"},
		{Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionTrue, Reason: karpenter.RebootIssuedReason},
	} {
		v.Claim.Status.Conditions = conditions.With(v.Claim, c, noon)
	}
}

// Initialization waits for everything that the planned pods need.
func TestUninitializedClaim(t *testing.T) {
	ready := nodeReady(corev1.ConditionTrue)
	slow := corev1.Taint{Key: "slow", Effect: corev1.TaintEffectNoSchedule}
	label, waits := []string{"update n", "status c"}, []string{"status c"}
	run(t, []row{
		{"not ready, condition already set", view(registered), nil},
		{"NotReady reported by the kubelet", view(registered, nodeReady(corev1.ConditionFalse)), nil},
		{"the node is gone", view(registered, ready, nodeless), waits},
		{"ready", view(registered, ready), label},
		{"ready and labelled", view(registered, ready, inited), []string{"status c"}},
		{"a startup taint", view(registered, ready, startup(slow), tainted(slow)), waits},
		{"a startup taint with another effect", view(registered, ready, startup(slow), tainted(corev1.Taint{Key: "slow", Effect: corev1.TaintEffectNoExecute})), label},
		{"another taint", view(registered, ready, tainted(slow)), label},
		{"a not-ready taint", view(registered, ready, tainted(corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute})), waits},
		{"a device that is not registered", view(registered, ready, requests("nvidia.com/gpu", "1")), waits},
		{"a registered device", view(registered, ready, requests("nvidia.com/gpu", "4"), allocatable("nvidia.com/gpu", "1")), label},
		{"rebooting", view(registered, ready, rebooting), nil},
		{"not tagged yet", view(registered, annotated(karpenter.InstanceTaggedAnnotationKey, "")), []string{"send tag.requested.v1"}},
	})
	done := object[*karpenter.NodeClaim](t, view(registered, ready, inited))
	if !done.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || !done.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("got conditions %+v", done.Status.Conditions)
	}
}
