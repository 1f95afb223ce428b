package nodeclaim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

type row struct {
	name string
	view nodeclaim.View
	want []string
}

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			before := test.view.Claim.DeepCopy()
			got := formatEffects(nodeclaim.Next(test.view))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.view.Claim); diff != "" {
				t.Errorf("the claim of the cache was changed:\n%s", diff)
			}
		})
	}
}

func TestUnadmittedClaim(t *testing.T) {
	waits := change(unadmitted)
	gone := []string{"delete c claim-uid as read: its plan was abandoned"}
	run(t, []row{
		{"without conditions", view(waits), nil},
		{"a person's", view(waits, outboxAt(t, 9, outbox.Done), planless), nil},
		{"created by a user, cannot be launched", view(waits, planless, annotated(nodeclaim.RefusalAnnotation, "too large")), []string{"status c"}},
		{"created by a user, before the launch timeout", view(waits, planless, withAge(nodeclaim.LaunchTimeout-1)), nil},
		{"created by a user, after the launch timeout", view(waits, planless, withAge(nodeclaim.LaunchTimeout)), []string{"update c"}},
		{"created by a user, not in the next plan", view(waits, annotated(launchspec.UnplannedAnnotation, "true"), outboxAt(t, 8, outbox.Done, "d")), nil},
		{"its plan is being executed", view(waits, outboxAt(t, 7, outbox.Applying, "c")), nil},
		{"its plan was executed", view(waits, outboxAt(t, 7, outbox.Done, "c")), nil},
		{"the next batch is in flight", view(waits, outboxAt(t, 8, outbox.Sent)), nil},
		{"the next plan is being executed", view(waits, outboxAt(t, 8, outbox.Applying, "d")), nil},
		{"the next plan keeps it", view(waits, outboxAt(t, 8, outbox.Done, "c", "d")), nil},
		{"the next plan omits it", view(waits, outboxAt(t, 8, outbox.Done, "d")), gone},
		{"another outbox, executed", view(waits, annotated(launchspec.BatchAnnotation, "old/7"), outboxAt(t, 1, outbox.Done)), gone},
		{"another outbox, in flight", view(waits, annotated(launchspec.BatchAnnotation, "old/7"), outboxAt(t, 1, outbox.Sent)), nil},
		{"of a future batch", view(waits, outboxAt(t, 6, outbox.Done)), nil},
	})
}

// bare is a claim without a status.
func bare(v *nodeclaim.View) { v.Claim.Status.Conditions = nil }

func TestUnlaunchedClaim(t *testing.T) {
	run(t, []row{
		{"young", view(), nil},
		{"before the launch timeout", view(withAge(nodeclaim.LaunchTimeout - 1)), nil},
		{"after the launch timeout", view(withAge(nodeclaim.LaunchTimeout)), []string{"update c"}},
		{"after the launch timeout, marked", view(annotated(nodeclaim.FailedAnnotation, nodeclaim.FailedLaunch)), []string{"delete c claim-uid: its launch took too long"}},
		{"another claim of its intent is gone", view(func(v *nodeclaim.View) { v.HasMissingSibling = func() bool { return true } }), []string{"delete c claim-uid as read: other NodeClaims of its launch are gone"}},
		{"without conditions", view(bare), []string{"status c"}},
		{"without conditions, so young that its instance is expected", view(bare, withAge(nodeclaim.FirstStatusAfter-1)), nil},
		{"without conditions, young, cannot be launched", view(bare, withAge(0), unadmitted, planless, annotated(nodeclaim.RefusalAnnotation, "too large")), []string{"status c"}},
		{"refused, not deleted because of a crash", view(refused("unspent")), []string{"delete c claim-uid: its launch was refused"}},
		{"not admitted, after the launch timeout", view(unadmitted, withAge(time.Hour)), nil},
	})
}

// The conditions of a claim without an instance.
func TestLaunchedCondition(t *testing.T) {
	recorded := func(changes ...change) string {
		c := object[*karpenter.NodeClaim](t, view(changes...))
		launched, _ := c.Status.Conditions.Get(karpenter.ConditionTypeLaunched)
		return string(launched.Status) + " " + launched.Reason + ": " + launched.Message
	}
	leaves := beingDeleted(time.Minute)
	for _, test := range []struct{ name, got, want string }{
		{"new claim", recorded(bare), "Unknown AwaitingReconciliation: object is awaiting reconciliation"},
		{"created by a user, cannot be launched", recorded(unadmitted, planless, annotated(nodeclaim.RefusalAnnotation, "too large")), "Unknown LaunchFailed: too large"},
		{"refused, until its request expires", recorded(leaves, refused("unspent"), annotated(nodeclaim.RefusalAnnotation, "denied")), "Unknown LaunchFailed: denied"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s", test.name, test.got)
		}
	}
}

// A claim that timed out is marked before it is deleted, so that its failure is counted even
// after a crash in between.
func TestTimeoutIsMarkedBeforeDeletion(t *testing.T) {
	for _, test := range []struct {
		name string
		view nodeclaim.View
		want string
	}{
		{"not launched", view(withAge(nodeclaim.LaunchTimeout)), nodeclaim.FailedLaunch},
		{"a person's", view(unadmitted, planless, withAge(nodeclaim.LaunchTimeout)), nodeclaim.FailedLaunch},
		{"no node", view(launched, withAge(nodeclaim.RegistrationTimeout)), nodeclaim.FailedRegistration},
	} {
		if got := object[*karpenter.NodeClaim](t, test.view).Annotations[nodeclaim.FailedAnnotation]; got != test.want {
			t.Errorf("%s: got mark %q", test.name, got)
		}
	}
}

// Nothing is launched for a claim without the finalizer, because it could be removed while its
// instance runs. The finalizer is added first.
func TestFinalizerIsAddedBeforeLaunch(t *testing.T) {
	bare := func(v *nodeclaim.View) { v.Claim.Finalizers = []string{"other"} }
	for name, at := range map[string]change{"unadmitted": unadmitted, "unlaunched": func(*nodeclaim.View) {}, "launched": launched, "registered": registered, "initialized": initialized} {
		t.Run(name, func(t *testing.T) {
			c := object[*karpenter.NodeClaim](t, view(at, bare))
			if diff := cmp.Diff([]string{"other", karpenter.TerminationFinalizer}, c.Finalizers); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A claim of an older Karpenter, or of a user, gets the label of its class.
func TestNodeClassLabel(t *testing.T) {
	of := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "big"}
	}
	labelled := func(v *nodeclaim.View) { v.Claim.Labels[karpenter.LabelEC2NodeClass] = "big" }
	run(t, []row{{"already labelled", view(of, labelled), nil}, {"being deleted", view(initialized, of, beingDeleted(time.Second), markedGone), []string{"delete n node-uid: instance gone"}}})
	for name, at := range map[string]change{"born": func(*nodeclaim.View) {}, "initialized": initialized} {
		if got := object[*karpenter.NodeClaim](t, view(at, of)).Labels[karpenter.LabelEC2NodeClass]; got != "big" {
			t.Errorf("%s: got label %q", name, got)
		}
	}
}

// A claim with the node class of another provider is ignored.
func TestForeignClaim(t *testing.T) {
	foreign := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	}
	otherGroup := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "example.com", Kind: "EC2NodeClass", Name: "default"}
	}
	otherKind := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "FargateNodeClass", Name: "default"}
	}
	ours := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
		v.Claim.Labels[karpenter.LabelEC2NodeClass] = "default"
	}
	run(t, []row{
		{"own claim, after the launch timeout", view(ours, withAge(time.Hour)), []string{"update c"}},
		{"foreign claim, after the launch timeout", view(foreign, withAge(time.Hour)), nil},
		{"another group's EC2NodeClass", view(otherGroup, withAge(time.Hour)), nil},
		{"another kind of AWS", view(otherKind, withAge(time.Hour)), nil},
		{"foreign claim, being deleted", view(foreign, unadmitted, beingDeleted(time.Hour)), nil},
	})
}

// Reasons to delete a claim in any phase.
func TestDeletionInEachPhase(t *testing.T) {
	old := func(v *nodeclaim.View) { v.Claim.Spec.ExpireAfter = karpenter.DurationOf(time.Minute) }
	deleted := func(v *nodeclaim.View) { at := metav1.NewTime(noon); v.Node.DeletionTimestamp = &at }
	for phase, at := range map[string]change{"unlaunched": func(*nodeclaim.View) {}, "launched": launched, "joined": joined, "registered": registered, "initialized": initialized} {
		run(t, []row{{phase + " and expired", view(at, old), []string{"delete c claim-uid: expired"}}})
	}
	for phase, at := range map[string]change{"joined": joined, "registered": registered, "initialized": initialized} {
		run(t, []row{{phase + " and its node was deleted", view(at, deleted), []string{"delete c claim-uid: its node was deleted"}}})
	}
	run(t, []row{
		{"not expired yet", view(initialized, func(v *nodeclaim.View) { v.Claim.Spec.ExpireAfter = karpenter.DurationOf(time.Minute + 1) }), nil},
		{"never expires", view(initialized, withAge(1e6*time.Hour)), nil},
	})
}
