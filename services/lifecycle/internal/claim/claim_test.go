package claim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/outbox"
)

type row struct {
	name string
	view claim.View
	want []string
}

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			before := test.view.Claim.DeepCopy()
			got := told(claim.Next(test.view))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.view.Claim); diff != "" {
				t.Errorf("the claim, which belongs to the cache, was changed:\n%s", diff)
			}
		})
	}
}

func TestUnadmitted(t *testing.T) {
	waits := change(unadmitted)
	gone := []string{"delete c claim-uid: its plan was given up"}
	run(t, []row{
		{"nobody has looked", view(waits), nil},
		{"B131: of no plan", view(waits, held(t, 9, outbox.Done), planless), nil},
		{"B131: of no plan nearly too long", view(waits, planless, aged(claim.LaunchTimeout-1)), nil},
		{"B131: of no plan for too long", view(waits, planless, aged(claim.LaunchTimeout)), []string{"delete c claim-uid: of no plan, and not launched in 5m0s"}},
		{"its plan is being applied", view(waits, held(t, 7, outbox.Applying, "c")), nil},
		{"its plan is done", view(waits, held(t, 7, outbox.Done, "c")), nil},
		{"the next batch is under way", view(waits, held(t, 8, outbox.Sent)), nil},
		{"the next plan is being applied", view(waits, held(t, 8, outbox.Applying, "d")), nil},
		{"the next plan carries it along", view(waits, held(t, 8, outbox.Done, "c", "d")), nil},
		{"the next plan leaves it", view(waits, held(t, 8, outbox.Done, "d")), gone},
		{"another outbox is done", view(waits, annotated(launchspec.BatchAnnotation, "old/7"), held(t, 1, outbox.Done)), gone},
		{"another outbox is under way", view(waits, annotated(launchspec.BatchAnnotation, "old/7"), held(t, 1, outbox.Sent)), nil},
		{"of a batch to come", view(waits, held(t, 6, outbox.Done)), nil},
	})
}

func TestUnlaunched(t *testing.T) {
	run(t, []row{
		{"young", view(), nil},
		{"nearly too old", view(aged(claim.LaunchTimeout - 1)), nil},
		{"too old", view(aged(claim.LaunchTimeout)), []string{"delete c claim-uid: not launched in 5m0s"}},
		{"refused, and whoever marked it died", view(refused("unspent")), []string{"delete c claim-uid: its launch was refused"}},
		{"not admitted however old", view(unadmitted, aged(time.Hour)), nil},
	})
}

func TestUnregistered(t *testing.T) {
	unlabelled := func(v *claim.View) { delete(v.Claim.Labels, corev1.LabelInstanceTypeStable) }
	timeout := []string{"delete c claim-uid: no node registered in 15m0s"}
	run(t, []row{
		{"no node yet", view(launched), nil},
		{"no node nearly too long", view(launched, aged(claim.RegistrationTimeout-1)), nil},
		{"no node for too long", view(launched, aged(claim.RegistrationTimeout)), timeout},
		{"a node, and no labels to give it", view(joined, unlabelled), nil},
		{"a node, and no labels for too long", view(joined, unlabelled, aged(claim.RegistrationTimeout)), timeout},
		{"a node", view(joined), []string{"update n"}},
		{"a node that is labelled", view(joined, func(v *claim.View) { v.Node.Labels[karpenter.NodeRegisteredLabelKey] = "true" }), []string{"status c"}},
		{"a node that comes late is registered all the same", view(joined, aged(time.Hour)), []string{"update n"}},
	})
}

// Nothing is launched for a claim that could go without its instance being
// ended first (B028): whoever made or edited it by hand gets the finalizer.
func TestB028Finalizer(t *testing.T) {
	bare := func(v *claim.View) { v.Claim.Finalizers = []string{"other"} }
	for name, at := range map[string]change{"unadmitted": unadmitted, "unlaunched": func(*claim.View) {}, "launched": launched, "registered": registered, "initialized": initialized} {
		t.Run(name, func(t *testing.T) {
			c := object[*karpenter.NodeClaim](t, view(at, bare))
			if diff := cmp.Diff([]string{"other", karpenter.TerminationFinalizer}, c.Finalizers); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A claim of another provider's class is nobody's business here.
func TestForeignClaim(t *testing.T) {
	foreign := func(v *claim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	}
	ours := func(v *claim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	}
	run(t, []row{
		{"of ours, and too old", view(ours, aged(time.Hour)), []string{"delete c claim-uid: not launched in 5m0s"}},
		{"of another, and too old", view(foreign, aged(time.Hour)), nil},
		{"of another, and going", view(foreign, unadmitted, going(time.Hour)), nil},
	})
}

// Registration gives the node everything of the claim's in one write (B133).
func TestRegistration(t *testing.T) {
	dedicated := corev1.Taint{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}
	cilium := corev1.Taint{Key: "node.cilium.io/agent-not-ready", Effect: corev1.TaintEffectNoExecute}
	v := view(joined, startup(cilium), func(v *claim.View) {
		v.Claim.Spec.Taints = []corev1.Taint{dedicated}
		v.Claim.Labels["mine"] = "yes"
		v.Claim.Annotations["team"] = "a"
		v.Node.Spec.Taints = append(v.Node.Spec.Taints, dedicated)
		v.Node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "their-uid"}}
	})
	node := object[*corev1.Node](t, v)
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if diff := cmp.Diff([]corev1.Taint{notReady, dedicated, cilium}, node.Spec.Taints); diff != "" {
		t.Errorf("taints:\n%s", diff)
	}
	labels := map[string]string{
		"kubelet": "set", "mine": "yes", karpenter.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m6i.large",
		karpenter.NodeRegisteredLabelKey: "true",
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
		t.Fatalf("B133: another owner was taken off: %+v", node.OwnerReferences)
	}
	owner := node.OwnerReferences[1]
	if owner.Kind != "NodeClaim" || owner.APIVersion != "karpenter.sh/v1" || owner.UID != "claim-uid" || !*owner.BlockOwnerDeletion {
		t.Errorf("the owner is %+v", owner)
	}
	if len(v.Node.Finalizers) != 0 || len(v.Node.Spec.Taints) != 3 {
		t.Error("the node, which belongs to the cache, was changed")
	}

	v.Node.OwnerReferences = node.OwnerReferences
	if again := object[*corev1.Node](t, v); len(again.OwnerReferences) != 2 {
		t.Errorf("B133: owned twice: %+v", again.OwnerReferences)
	}

	v.Node.Labels[karpenter.NodeDoNotSyncTaintsLabelKey] = "true"
	node = object[*corev1.Node](t, v)
	if diff := cmp.Diff([]corev1.Taint{notReady, dedicated}, node.Spec.Taints); diff != "" {
		t.Errorf("taints of a node that syncs none:\n%s", diff)
	}

	v = view(joined, func(v *claim.View) { v.Node.Labels[karpenter.NodeRegisteredLabelKey] = "true" })
	done := object[*karpenter.NodeClaim](t, v)
	if done.Status.NodeName != "n" || !done.Status.Conditions.True(karpenter.ConditionTypeRegistered) {
		t.Errorf("the status is %+v", done.Status)
	}
}

// Initialization waits for all that the planned pods need (B135).
func TestUninitialized(t *testing.T) {
	ready := nodeReady(corev1.ConditionTrue)
	slow := corev1.Taint{Key: "slow", Effect: corev1.TaintEffectNoSchedule}
	run(t, []row{
		{"not ready", view(registered), nil},
		{"says that it is not", view(registered, nodeReady(corev1.ConditionFalse)), nil},
		{"the node is gone", view(registered, ready, func(v *claim.View) { v.Node = nil }), nil},
		{"ready", view(registered, ready), []string{"update n"}},
		{"ready and labelled", view(registered, ready, func(v *claim.View) { v.Node.Labels[karpenter.NodeInitializedLabelKey] = "true" }), []string{"status c"}},
		{"a startup taint", view(registered, ready, startup(slow), tainted(slow)), nil},
		{"a startup taint of another effect", view(registered, ready, startup(slow), tainted(corev1.Taint{Key: "slow", Effect: corev1.TaintEffectNoExecute})), []string{"update n"}},
		{"another taint", view(registered, ready, tainted(slow)), []string{"update n"}},
		{"tainted not ready", view(registered, ready, tainted(corev1.Taint{Key: corev1.TaintNodeNotReady})), nil},
		{"tainted unreachable", view(registered, ready, tainted(corev1.Taint{Key: corev1.TaintNodeUnreachable})), nil},
		{"tainted by the cloud provider", view(registered, ready, tainted(corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized"})), nil},
		{"a device that is late", view(registered, ready, requests("nvidia.com/gpu", "1")), nil},
		{"a device with none left", view(registered, ready, requests("nvidia.com/gpu", "1"), allocatable("nvidia.com/gpu", "0")), nil},
		{"a device that is there", view(registered, ready, requests("nvidia.com/gpu", "4"), allocatable("nvidia.com/gpu", "1")), []string{"update n"}},
		{"nothing is asked of it", view(registered, ready, requests("nvidia.com/gpu", "0")), []string{"update n"}},
	})
	done := object[*karpenter.NodeClaim](t, view(registered, ready, func(v *claim.View) { v.Node.Labels[karpenter.NodeInitializedLabelKey] = "true" }))
	if !done.Status.Conditions.True(karpenter.ConditionTypeInitialized) || !done.Status.Conditions.True(karpenter.ConditionTypeReady) {
		t.Errorf("the conditions are %+v", done.Status.Conditions)
	}
}

func TestRunning(t *testing.T) {
	after := func(d time.Duration) change {
		return func(v *claim.View) {
			v.Pool = &karpenter.NodePool{}
			v.Pool.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(d)
		}
	}
	changed := func(v *claim.View) { v.PodsChanged = true }
	last := func(ago time.Duration) change {
		return func(v *claim.View) { v.Claim.Status.LastPodEventTime = metav1.NewTime(noon.Add(-ago)) }
	}
	untagged := annotated(karpenter.InstanceTaggedAnnotationKey, "")
	run(t, []row{
		{"quiet", view(initialized), nil},
		{"its pool is gone", view(initialized, func(v *claim.View) { v.Pool = nil }), nil},
		{"not tagged", view(initialized, untagged), []string{"send tag.requested.v1"}},
		{"not tagged, and asked lately", view(initialized, untagged, asked), nil},
		{"not tagged, and its node is not there", view(initialized, untagged, func(v *claim.View) { v.Node = nil }), nil},
		{"pods came or went", view(initialized, changed), []string{"status c"}},
		{"pods came or went again", view(initialized, changed, last(10*time.Second-1)), nil},
		{"and ten seconds later", view(initialized, changed, last(10*time.Second)), []string{"status c"}},
		{"quiet for not long enough", view(initialized, after(time.Minute+1)), nil},
		{"quiet for as long as its pool wants", view(initialized, after(time.Minute)), []string{"status c"}},
		{"and said so", view(initialized, after(time.Minute), condition(karpenter.ConditionTypeConsolidatable)), nil},
		{"quiet since the last pod", view(initialized, after(30*time.Second), last(29*time.Second)), nil},
		{"never consolidated", view(initialized, func(v *claim.View) { v.Pool = &karpenter.NodePool{} }), nil},
		{"not tagged and pods came", view(initialized, untagged, changed), []string{"send tag.requested.v1", "status c"}},
	})
	busy := object[*karpenter.NodeClaim](t, view(initialized, changed, condition(karpenter.ConditionTypeConsolidatable)))
	if !busy.Status.LastPodEventTime.Time.Equal(noon) || busy.Status.Conditions.True(karpenter.ConditionTypeConsolidatable) {
		t.Errorf("after pods came the status is %+v", busy.Status)
	}
}

// What ends a claim at any phase.
func TestEnds(t *testing.T) {
	old := func(v *claim.View) { v.Claim.Spec.ExpireAfter = karpenter.DurationOf(time.Minute) }
	deleted := func(v *claim.View) { at := metav1.NewTime(noon); v.Node.DeletionTimestamp = &at }
	for phase, at := range map[string]change{"unlaunched": func(*claim.View) {}, "launched": launched, "joined": joined, "registered": registered, "initialized": initialized} {
		run(t, []row{{phase + " and expired", view(at, old), []string{"delete c claim-uid: expired"}}})
	}
	for phase, at := range map[string]change{"joined": joined, "registered": registered, "initialized": initialized} {
		run(t, []row{{phase + " and its node was deleted", view(at, deleted), []string{"delete c claim-uid: its node was deleted"}}})
	}
	run(t, []row{
		{"not expired yet", view(initialized, func(v *claim.View) { v.Claim.Spec.ExpireAfter = karpenter.DurationOf(time.Minute + 1) }), nil},
		{"never expires", view(initialized, aged(1e6*time.Hour)), nil},
	})
}
