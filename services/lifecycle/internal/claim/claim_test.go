package claim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		{"B131: of no plan, which it says", view(waits, held(t, 9, outbox.Done), planless), []string{"status c"}},
		{"B131: of no plan nearly too long", view(waits, planless, aged(claim.LaunchTimeout-1)), []string{"status c"}},
		{"B131: of no plan for too long", view(waits, planless, aged(claim.LaunchTimeout)), []string{"update c"}},
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
		{"too old", view(aged(claim.LaunchTimeout)), []string{"update c"}},
		{"too old, and marked", view(annotated(claim.FailedAnnotation, claim.FailedLaunch)), []string{"delete c claim-uid: its launch took too long"}},
		{"refused, and whoever marked it died", view(refused("unspent")), []string{"delete c claim-uid: its launch was refused"}},
		{"not admitted however old", view(unadmitted, aged(time.Hour)), nil},
	})
}

// What a claim that has no instance says of itself (B024, B131).
func TestB131Launched(t *testing.T) {
	told := func(changes ...change) string {
		c := object[*karpenter.NodeClaim](t, view(changes...))
		launched, _ := c.Status.Conditions.Get(karpenter.ConditionTypeLaunched)
		return string(launched.Status) + " " + launched.Reason + ": " + launched.Message
	}
	bare := func(v *claim.View) { v.Claim.Status.Conditions = nil }
	leaves := going(time.Minute)
	for _, test := range []struct{ name, got, want string }{
		{"at birth", told(bare), "Unknown AwaitingReconciliation: object is awaiting reconciliation"},
		{"of no plan", told(unadmitted, planless), "Unknown LaunchFailed: of no plan: Joist launches nothing for a NodeClaim that it has not planned; let its pods be planned instead"},
		{"refused, until the request has died", told(leaves, refused("unspent"), annotated(claim.RefusalAnnotation, "denied")), "Unknown LaunchFailed: denied"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s", test.name, test.got)
		}
	}
}

// A claim that timed out is marked before it is deleted, so that its failure is
// counted whoever dies between the two (B018, B131, B134).
func TestB131Failed(t *testing.T) {
	for _, test := range []struct {
		name string
		view claim.View
		want string
	}{
		{"B131: not launched", view(aged(claim.LaunchTimeout)), claim.FailedLaunch},
		{"B131: of no plan", view(unadmitted, planless, aged(claim.LaunchTimeout)), claim.FailedLaunch},
		{"B134: no node", view(launched, aged(claim.RegistrationTimeout)), claim.FailedRegistration},
	} {
		if got := object[*karpenter.NodeClaim](t, test.view).Annotations[claim.FailedAnnotation]; got != test.want {
			t.Errorf("%s: marked %q", test.name, got)
		}
	}
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

// A claim of an older Karpenter, or of a person, gets the label of its class
// (B027).
func TestB027ClassLabel(t *testing.T) {
	of := func(v *claim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "big"}
	}
	labelled := func(v *claim.View) { v.Claim.Labels[karpenter.LabelEC2NodeClass] = "big" }
	run(t, []row{{"it has it", view(of, labelled), nil}, {"it goes", view(initialized, of, going(time.Second), gone), []string{"delete n node-uid: instance gone"}}})
	for name, at := range map[string]change{"born": func(*claim.View) {}, "initialized": initialized} {
		if got := object[*karpenter.NodeClaim](t, view(at, of)).Labels[karpenter.LabelEC2NodeClass]; got != "big" {
			t.Errorf("%s: the label is %q", name, got)
		}
	}
}

// A claim of another provider's class is nobody's business here.
func TestForeignClaim(t *testing.T) {
	foreign := func(v *claim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	}
	ours := func(v *claim.View) {
		v.Claim.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
		v.Claim.Labels[karpenter.LabelEC2NodeClass] = "default"
	}
	run(t, []row{
		{"of ours, and too old", view(ours, aged(time.Hour)), []string{"update c"}},
		{"of another, and too old", view(foreign, aged(time.Hour)), nil},
		{"of another, and going", view(foreign, unadmitted, going(time.Hour)), nil},
	})
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
