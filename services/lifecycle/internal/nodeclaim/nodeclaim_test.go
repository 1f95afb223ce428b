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
				t.Errorf("the claim, which belongs to the cache, was changed:\n%s", diff)
			}
		})
	}
}

func TestUnadmitted(t *testing.T) {
	waits := change(unadmitted)
	gone := []string{"delete c claim-uid: its plan was given up"}
	run(t, []row{
		{"without conditions", view(waits), nil},
		{"a person's", view(waits, outboxAt(t, 9, outbox.Done), planless), nil},
		{"a person's that cannot be launched, which it says", view(waits, planless, annotated(nodeclaim.RefusalAnnotation, "too large")), []string{"status c"}},
		{"a person's nearly too long", view(waits, planless, withAge(nodeclaim.LaunchTimeout-1)), nil},
		{"a person's for too long", view(waits, planless, withAge(nodeclaim.LaunchTimeout)), []string{"update c"}},
		{"a person's that the next plan leaves", view(waits, annotated(launchspec.UnplannedAnnotation, "true"), outboxAt(t, 8, outbox.Done, "d")), nil},
		{"its plan is being applied", view(waits, outboxAt(t, 7, outbox.Applying, "c")), nil},
		{"its plan is done", view(waits, outboxAt(t, 7, outbox.Done, "c")), nil},
		{"the next batch is under way", view(waits, outboxAt(t, 8, outbox.Sent)), nil},
		{"the next plan is being applied", view(waits, outboxAt(t, 8, outbox.Applying, "d")), nil},
		{"the next plan carries it along", view(waits, outboxAt(t, 8, outbox.Done, "c", "d")), nil},
		{"the next plan leaves it", view(waits, outboxAt(t, 8, outbox.Done, "d")), gone},
		{"another outbox is done", view(waits, annotated(launchspec.BatchAnnotation, "old/7"), outboxAt(t, 1, outbox.Done)), gone},
		{"another outbox is under way", view(waits, annotated(launchspec.BatchAnnotation, "old/7"), outboxAt(t, 1, outbox.Sent)), nil},
		{"of a batch to come", view(waits, outboxAt(t, 6, outbox.Done)), nil},
	})
}

func TestUnlaunched(t *testing.T) {
	run(t, []row{
		{"young", view(), nil},
		{"nearly too old", view(withAge(nodeclaim.LaunchTimeout - 1)), nil},
		{"too old", view(withAge(nodeclaim.LaunchTimeout)), []string{"update c"}},
		{"too old, and marked", view(annotated(nodeclaim.FailedAnnotation, nodeclaim.FailedLaunch)), []string{"delete c claim-uid: its launch took too long"}},
		{"refused, and not deleted after a crash", view(refused("unspent")), []string{"delete c claim-uid: its launch was refused"}},
		{"not admitted however old", view(unadmitted, withAge(time.Hour)), nil},
	})
}

// The conditions of a claim without an instance.
func TestLaunched(t *testing.T) {
	told := func(changes ...change) string {
		c := object[*karpenter.NodeClaim](t, view(changes...))
		launched, _ := c.Status.Conditions.Get(karpenter.ConditionTypeLaunched)
		return string(launched.Status) + " " + launched.Reason + ": " + launched.Message
	}
	bare := func(v *nodeclaim.View) { v.Claim.Status.Conditions = nil }
	leaves := beingDeleted(time.Minute)
	for _, test := range []struct{ name, got, want string }{
		{"at birth", told(bare), "Unknown AwaitingReconciliation: object is awaiting reconciliation"},
		{"a person's that cannot be launched", told(unadmitted, planless, annotated(nodeclaim.RefusalAnnotation, "too large")), "Unknown LaunchFailed: too large"},
		{"refused, until the request has died", told(leaves, refused("unspent"), annotated(nodeclaim.RefusalAnnotation, "denied")), "Unknown LaunchFailed: denied"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s", test.name, test.got)
		}
	}
}

// A claim that timed out is marked before it is deleted, so that its failure is counted even
// after a crash in between.
func TestFailed(t *testing.T) {
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
			t.Errorf("%s: marked %q", test.name, got)
		}
	}
}

// Nothing is launched for a claim without the finalizer, because it could be removed while its
// instance runs. The finalizer is added first.
func TestFinalizer(t *testing.T) {
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
func TestClassLabel(t *testing.T) {
	of := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "big"}
	}
	labelled := func(v *nodeclaim.View) { v.Claim.Labels[karpenter.LabelEC2NodeClass] = "big" }
	run(t, []row{{"it has it", view(of, labelled), nil}, {"it goes", view(initialized, of, beingDeleted(time.Second), gone), []string{"delete n node-uid: instance gone"}}})
	for name, at := range map[string]change{"born": func(*nodeclaim.View) {}, "initialized": initialized} {
		if got := object[*karpenter.NodeClaim](t, view(at, of)).Labels[karpenter.LabelEC2NodeClass]; got != "big" {
			t.Errorf("%s: the label is %q", name, got)
		}
	}
}

// A claim with the node class of another provider is ignored.
func TestForeignClaim(t *testing.T) {
	foreign := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	}
	ours := func(v *nodeclaim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
		v.Claim.Labels[karpenter.LabelEC2NodeClass] = "default"
	}
	run(t, []row{
		{"of ours, and too old", view(ours, withAge(time.Hour)), []string{"update c"}},
		{"of another, and too old", view(foreign, withAge(time.Hour)), nil},
		{"of another, and going", view(foreign, unadmitted, beingDeleted(time.Hour)), nil},
	})
}

// Reasons to delete a claim in any phase.
func TestEnds(t *testing.T) {
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
