package nodeclaim_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// rebalanced sets that the claim is rebalanced since then.
func rebalanced(ago time.Duration) change {
	return drains.and(beingDeleted(ago), annotated(nodeclaim.RebalanceAnnotation, "2026-11-20T11:59:00Z"))
}

// replacedBy sets the claims on which the pods are expected, and which of them exist.
func replacedBy(text string, there ...*karpenter.NodeClaim) change {
	return func(v *nodeclaim.View) {
		v.Claim.Annotations[nodeclaim.ReplacementsAnnotation] = text
		v.Replacement = func(name string) *karpenter.NodeClaim {
			for _, c := range there {
				if c.Name == name {
					return c
				}
			}
			return nil
		}
	}
}

// grace sets the pods' grace period.
func grace(d time.Duration) change {
	return func(v *nodeclaim.View) {
		for _, pod := range v.Pods {
			pod.Spec.TerminationGracePeriodSeconds = new(int64(d / time.Second))
		}
	}
}

// replacement returns a claim that is initialized, or not.
func replacement(name string, initialized bool) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	status := metav1.ConditionUnknown
	if initialized {
		status = metav1.ConditionTrue
	}
	c.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeInitialized, Status: status}}
	return c
}

// The pods of a rebalanced node are evicted when their replacement is ready, after a timeout, or
// at the interruption warning.
func TestPodsWaitForReplacement(t *testing.T) {
	held, leave := []string{"status c"}, []string{"evict web"}
	lost := replacement("a", false)
	lost.DeletionTimestamp = &metav1.Time{Time: noon}
	run(t, []row{
		{"no rebalance recommendation", view(drains, pods("web")), leave},
		{"no plan yet", view(rebalanced(nodeclaim.PlanTimeout-1), pods("web")), held},
		{"no plan within PlanTimeout", view(rebalanced(nodeclaim.PlanTimeout), pods("web")), leave},
		{"one of two replacements is ready", view(rebalanced(time.Minute), replacedBy("a,b", replacement("a", true), replacement("b", false)), pods("web")), held},
		{"all replacements are ready", view(rebalanced(time.Second), replacedBy("a,b", replacement("a", true), replacement("b", true)), pods("web")), leave},
		{"planned on existing nodes", view(rebalanced(time.Second), replacedBy(""), pods("web")), leave},
		{"replacement not yet in the cache", view(rebalanced(time.Second), replacedBy("a"), pods("web")), held},
		{"replacement not created", view(rebalanced(nodeclaim.PlanTimeout), replacedBy("a"), pods("web")), leave},
		{"replacement being deleted", view(rebalanced(time.Second), replacedBy("a", lost), pods("web")), leave},
		{"replacement not ready within ReplaceTimeout", view(rebalanced(nodeclaim.ReplaceTimeout), replacedBy("a", replacement("a", false)), pods("web")), leave},
		{"interruption warning", view(rebalanced(time.Second), due(2*time.Minute), requestedRecently, pods("web")), leave},
		{"termination grace period, deadline far away", view(rebalanced(time.Second), due(time.Hour), requestedRecently, pods("web")), nil},
		{"termination grace period, deadline near", view(rebalanced(time.Second), due(3*time.Minute), requestedRecently, pods("web"), grace(10*time.Minute)), []string{"delete pod web in 180 s"}},
		{"no pods remain", view(rebalanced(time.Second)), []string{"status c"}},
	})
	says := func(changes ...change) string {
		status := nodeclaim.Next(view(changes...))[0].(effect.UpdateStatus)
		c, _ := status.Object.(*karpenter.NodeClaim).Status.Conditions.Get(karpenter.ConditionTypeDrained)
		return string(c.Status) + " " + c.Message
	}
	if got := says(rebalanced(time.Second), pods("web")); got != "Unknown Waiting to drain: capacity for its pods is being planned" {
		t.Errorf("got condition %q", got)
	}
	if got := says(rebalanced(time.Second), replacedBy("a", lost, replacement("b", false)), replacedBy("b", replacement("b", false)), pods("web")); got != "Unknown Waiting to drain: NodeClaim b, the destination of its pods, is not initialized" {
		t.Errorf("got condition %q", got)
	}
}

// In any case pods wait no longer than ReplaceTimeout, and not after an interruption warning.
func TestRebalanceWaitIsLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		since := time.Duration(rapid.IntRange(0, 600).Draw(t, "since")) * time.Second
		changes := []change{rebalanced(since), requestedRecently, pods("web")}
		if rapid.Bool().Draw(t, "planned") {
			changes = append(changes, replacedBy("a", replacement(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "there"), false)))
		}
		left := time.Duration(rapid.IntRange(61, 600).Draw(t, "left")) * time.Second
		if rapid.Bool().Draw(t, "deadline") {
			changes = append(changes, due(left))
		} else {
			left = time.Hour
		}
		leaves := false
		for _, e := range nodeclaim.Next(view(changes...)) {
			switch e.(type) {
			case effect.Evict, effect.DeletePod:
				leaves = true
			}
		}
		if !leaves && (since >= nodeclaim.ReplaceTimeout || left <= 2*time.Minute) {
			t.Fatalf("%s after the recommendation, %s before the deadline, its pods still wait", since, left)
		}
	})
}

func TestRebalanceAnnotations(t *testing.T) {
	c := view(launched).Claim
	marked, changed := nodeclaim.WithRebalance(c, noon)
	if !changed || marked.Annotations[nodeclaim.RebalanceAnnotation] != "2026-11-20T12:00:00Z" || c.Annotations[nodeclaim.RebalanceAnnotation] != "" {
		t.Errorf("the new claim has annotations %v, the given one %v", marked.Annotations, c.Annotations)
	}
	if _, again := nodeclaim.WithRebalance(marked, noon.Add(time.Minute)); again {
		t.Error("an annotated claim was annotated again")
	}
	if _, late := nodeclaim.WithRebalance(view(launched, beingDeleted(time.Second)).Claim, noon); late {
		t.Error("annotated a claim that is being deleted for another reason")
	}
	if _, foreign := nodeclaim.WithReplacements(c, []string{"a"}); foreign {
		t.Error("recorded replacements on a claim that is deleted for another reason")
	}
	noted, changed := nodeclaim.WithReplacements(marked, []string{"b", "", "a", "b"})
	if !changed || noted.Annotations[nodeclaim.ReplacementsAnnotation] != "a,b" {
		t.Errorf("got annotations %v", noted.Annotations)
	}
	if _, again := nodeclaim.WithReplacements(noted, []string{"a", "b"}); again {
		t.Error("the same replacements were recorded again")
	}
	if none, changed := nodeclaim.WithReplacements(marked, []string{""}); !changed || none.Annotations[nodeclaim.ReplacementsAnnotation] != "" {
		t.Errorf("for pods planned on existing nodes got annotations %v, changed %t", none.Annotations, changed)
	}
}
