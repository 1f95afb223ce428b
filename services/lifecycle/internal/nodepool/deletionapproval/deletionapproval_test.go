package deletionapproval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/deletionapproval"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = metav1.NewTime(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC))

// on is the default threshold.
var on = deletionapproval.Threshold{On: true, Nodes: 5, Percent: 20}

func pool(finalized, going bool, answer string) *karpenter.NodePool {
	p := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "pool", Finalizers: []string{"another/finalizer"}}}
	if finalized {
		p.Finalizers = append(p.Finalizers, deletionapproval.Finalizer)
	}
	if going {
		p.DeletionTimestamp = &noon
	}
	if answer != "" {
		p.Annotations = map[string]string{deletionapproval.ApproveAnnotation: answer}
	}
	return p
}

// claims returns claims, of which the last ones are being deleted.
func claims(staying, going int) []*karpenter.NodeClaim {
	var out []*karpenter.NodeClaim
	for i := range staying + going {
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprintf("u%d", i)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Other", UID: "pool"}, {Kind: "NodePool", Name: "web", UID: "pool"}},
		}}
		if i >= staying {
			c.DeletionTimestamp = &noon
		}
		out = append(out, c)
	}
	return out
}

// byHand returns claims with the pool's label but without its owner reference.
func byHand(claims []*karpenter.NodeClaim) []*karpenter.NodeClaim {
	for _, c := range claims {
		c.OwnerReferences = nil
	}
	return claims
}

// formatDecision formats a decision.
func formatDecision(d deletionapproval.Decision) string {
	var parts []string
	deleted := 0
	for _, e := range d.Effects {
		switch e := e.(type) {
		case effect.Delete:
			deleted++
		case effect.Update:
			switch object := e.Object.(type) {
			case *karpenter.NodePool:
				parts = append(parts, map[bool]string{true: "hold", false: "remove finalizer"}[slices.Contains(object.Finalizers, deletionapproval.Finalizer)])
				if !slices.Contains(object.Finalizers, "another/finalizer") {
					parts = append(parts, "changed another finalizer")
				}
			case *karpenter.NodeClaim:
				parts = append(parts, "write "+object.Name)
			}
		}
	}
	if deleted > 0 {
		parts = append(parts, fmt.Sprintf("delete %d", deleted))
	}
	if d.Reason != "" {
		parts = append(parts, d.Reason)
	}
	return strings.Join(parts, ", ")
}

func TestDeletionApprovalSteps(t *testing.T) {
	const hold, stay = true, false
	const deleted = true
	for _, test := range []struct {
		name      string
		pool      *karpenter.NodePool
		claims    []*karpenter.NodeClaim
		cluster   int
		threshold deletionapproval.Threshold
		want      string
	}{
		{"small", pool(stay, false, ""), claims(5, 0), 100, on, ""},
		{"more than five nodes", pool(stay, false, ""), claims(6, 0), 100, on, "hold"},
		{"more than five nodes, with the finalizer", pool(hold, false, ""), claims(6, 0), 100, on, ""},
		{"no longer more than five nodes", pool(hold, false, ""), claims(5, 3), 100, on, "remove finalizer"},
		{"a fifth of the cluster", pool(stay, false, ""), claims(4, 0), 20, on, ""},
		{"more than a fifth", pool(stay, false, ""), claims(4, 0), 19, on, "hold"},
		{"all of a small cluster", pool(stay, false, ""), claims(2, 0), 2, on, ""},
		{"off", pool(stay, false, ""), claims(600, 0), 600, deletionapproval.Threshold{}, ""},
		{"claims without an owner reference", pool(stay, false, ""), byHand(claims(6, 0)), 100, on, ""},
		{"approval disabled", pool(hold, false, ""), claims(600, 0), 600, deletionapproval.Threshold{Nodes: 5}, "remove finalizer"},

		{"deleted while small", pool(stay, deleted, ""), claims(5, 0), 100, on, ""},
		{"deleted without the finalizer", pool(stay, deleted, ""), claims(200, 0), 200, on, ""},
		{"deleted, approval disabled", pool(hold, deleted, ""), claims(200, 0), 200, deletionapproval.Threshold{}, "remove finalizer"},
		{"deleted", pool(hold, deleted, ""), claims(200, 0), 240, on, "AwaitingApproval"},
		{"deleted, small since then", pool(hold, deleted, ""), claims(1, 0), 240, on, "AwaitingApproval"},
		{"deleted, empty since then", pool(hold, deleted, ""), nil, 240, on, "remove finalizer"},
		{"an invalid approval", pool(hold, deleted, "yes"), claims(200, 0), 240, on, "AwaitingApproval"},
		{"an invalid approval of keep", pool(hold, deleted, "keep 3"), claims(200, 0), 240, on, "AwaitingApproval"},
		{"approved before the deletion", pool(hold, false, "delete"), claims(200, 0), 240, on, ""},

		{"approved", pool(hold, deleted, "delete"), claims(200, 0), 240, on, "delete 20, Removing"},
		{"a wave is in progress", pool(hold, deleted, "delete"), claims(180, 20), 240, on, "Removing"},
		{"a node of the wave is gone", pool(hold, deleted, "delete"), claims(180, 15), 240, on, "delete 5, Removing"},
		{"few nodes remain", pool(hold, deleted, "delete"), claims(2, 0), 240, on, "delete 1, Removing"},
		{"claims without an owner reference remain", pool(hold, deleted, "delete"), append(claims(0, 1), byHand(claims(9, 0))...), 240, on, "Removing"},
		{"the last node is being deleted", pool(hold, deleted, "delete"), claims(0, 1), 240, on, "Removing"},
		{"three at a time", pool(hold, deleted, " delete  3 "), claims(200, 1), 240, on, "delete 2, Removing"},
		{"all at once", pool(hold, deleted, "delete 100%"), claims(200, 0), 240, on, "delete 200, Removing"},
		{"more at once than there are", pool(hold, deleted, "delete 1000"), claims(2, 0), 240, on, "delete 2, Removing"},
		{"more are being deleted than the pace allows", pool(hold, deleted, "delete 1"), claims(2, 5), 240, on, "Removing"},
		{"invalid pace", pool(hold, deleted, "delete soon"), claims(200, 0), 240, on, "AwaitingApproval"},
		{"pace of zero", pool(hold, deleted, "delete 0"), claims(200, 0), 240, on, "AwaitingApproval"},

		{"kept", pool(hold, deleted, "keep"), claims(2, 1), 240, on, "write c0, write c1, write c2, Keeping"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := deletionapproval.Decide(deletionapproval.View{Pool: test.pool, Claims: test.claims, Cluster: test.cluster, Threshold: test.threshold})
			if got := formatDecision(d); got != test.want {
				t.Errorf("%q, want %q (%s)", got, test.want, d.Message)
			}
			if d.AwaitsApproval != (d.Reason == "AwaitingApproval") {
				t.Errorf("waits: %t, %s", d.AwaitsApproval, d.Reason)
			}
		})
	}
}

// The message of a waiting deletion contains instructions, and the error of an invalid approval.
func TestDeletionApprovalMessages(t *testing.T) {
	for answer, want := range map[string]string{
		"":          `Deleting this NodePool removes 30 of 40 nodes. Annotate it with joist.sh/approve=delete to remove them 10% at a time (or "delete 3", "delete 100%"), or with joist.sh/approve=keep to keep them`,
		"yes":       `joist.sh/approve=yes is not valid. Deleting this NodePool`,
		"delete -1": `"-1" is not a valid pace (use a number or a percentage above 0). Deleting this NodePool`,
	} {
		d := deletionapproval.Decide(deletionapproval.View{Pool: pool(true, true, answer), Claims: claims(30, 0), Cluster: 40, Threshold: on})
		if !strings.HasPrefix(d.Message, want) {
			t.Errorf("%q: %s", answer, d.Message)
		}
	}
}

// Kept claims lose only their owner reference. The pool is deleted after that, and the next pool
// of that name adopts them.
func TestKeptClaimsLoseOwnerReference(t *testing.T) {
	old := claims(2, 0)
	before := old[0].DeepCopy()
	view := deletionapproval.View{Pool: pool(true, true, "keep"), Claims: old, Cluster: 40, Threshold: on}
	var kept []*karpenter.NodeClaim
	for _, e := range deletionapproval.Decide(view).Effects {
		kept = append(kept, e.(effect.Update).Object.(*karpenter.NodeClaim))
	}
	if diff := cmp.Diff(before, old[0]); diff != "" {
		t.Fatalf("the given claim was changed: %s", diff)
	}
	if len(kept) != 2 || len(kept[0].OwnerReferences) != 1 || kept[0].OwnerReferences[0].Kind != "Other" || kept[0].Annotations[deletionapproval.KeptAnnotation] != "pool" {
		t.Fatalf("%+v", kept)
	}
	view.Claims = []*karpenter.NodeClaim{kept[0], old[1]}
	if got := formatDecision(deletionapproval.Decide(view)); got != "write c1, Keeping" {
		t.Fatalf("with one owned claim got %s", got)
	}
	view.Claims = kept
	if got := formatDecision(deletionapproval.Decide(view)); got != "remove finalizer" {
		t.Fatalf("without owned claims got %s", got)
	}
	next := pool(false, false, "")
	next.UID = "next"
	d := deletionapproval.Decide(deletionapproval.View{Pool: next, Claims: append(kept, claims(0, 1)...), Cluster: 40, Threshold: on})
	if got := formatDecision(d); got != "write c0, write c1" {
		t.Fatalf("the next pool got %s", got)
	}
	adopted := d.Effects[0].(effect.Update).Object.(*karpenter.NodeClaim)
	want := metav1.OwnerReference{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "web", UID: "next", BlockOwnerDeletion: new(true)}
	if diff := cmp.Diff([]metav1.OwnerReference{before.OwnerReferences[0], want}, adopted.OwnerReferences); diff != "" || adopted.Annotations[deletionapproval.KeptAnnotation] != "" {
		t.Error(diff, adopted.Annotations)
	}
}
