package nodeclaim_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// after sets the pool's consolidateAfter.
func after(d karpenter.NillableDuration) change {
	return func(v *nodeclaim.View) {
		v.Pool = &karpenter.NodePool{}
		v.Pool.Spec.Disruption.ConsolidateAfter = d
	}
}

// moved sets the last pod event; last sets the one in the claim's status.
func moved(ago time.Duration) change { return func(v *nodeclaim.View) { v.PodEvent = noon.Add(-ago) } }

func last(ago time.Duration) change {
	return func(v *nodeclaim.View) { v.Claim.Status.LastPodEventTime = metav1.NewTime(noon.Add(-ago)) }
}

func TestTagged(t *testing.T) {
	untagged := annotated(karpenter.InstanceTaggedAnnotationKey, "")
	send := []string{"send tag.requested.v1"}
	run(t, []row{
		{"tagged", view(initialized), nil},
		{"not tagged", view(initialized, untagged), send},
		{"not tagged, and not initialized", view(registered, untagged), send},
		{"not tagged, and not registered", view(launched, untagged), nil},
		{"not tagged, and asked lately", view(initialized, untagged, asked), nil},
		{"not tagged, and its node is not there", view(initialized, untagged, nodeless), send},
		{"not tagged, where its zone is shifted away from", view(initialized, untagged, withZonalShift), nil},
		{"not tagged and pods came", view(initialized, untagged, moved(0)), []string{"send tag.requested.v1", "status c"}},
	})
}

func TestPodEvents(t *testing.T) {
	run(t, []row{
		{"quiet", view(initialized), nil},
		{"pods came or went", view(initialized, moved(0)), []string{"status c"}},
		{"and it says so", view(initialized, moved(0), last(0)), nil},
		{"pods came or went again", view(initialized, moved(0), last(10*time.Second-1)), nil},
		{"and ten seconds later", view(initialized, moved(0), last(10*time.Second)), []string{"status c"}},
		{"before it is initialized", view(registered, moved(0)), []string{"status c"}},
		{"before it is registered", view(joined, moved(0)), []string{"update n", "status c"}},
		{"while it goes", view(initialized, moved(0), beingDeleted(time.Second), gone), []string{"delete n node-uid: instance gone"}},
	})
	c := object[*karpenter.NodeClaim](t, view(initialized, moved(3*time.Second)))
	if got := c.Status.LastPodEventTime.Time; !got.Equal(noon.Add(-3 * time.Second)) {
		t.Errorf("it happened at %s", got)
	}
}

// Consolidatable is set after consolidateAfter without pod events, and removed when that is no
// longer the case.
func TestConsolidatable(t *testing.T) {
	for _, test := range []struct {
		name     string
		changes  []change
		was, is  bool
		isSilent bool
	}{
		{"quiet for not long enough", []change{after(karpenter.DurationOf(time.Minute + 1))}, false, false, true},
		{"quiet for as long as its pool wants", []change{after(karpenter.DurationOf(time.Minute))}, false, true, false},
		{"and said so", []change{after(karpenter.DurationOf(time.Minute))}, true, true, true},
		{"its pool wants more by now", []change{after(karpenter.DurationOf(time.Hour))}, true, false, false},
		{"its pool never consolidates", []change{after(karpenter.NillableDuration{})}, true, false, false},
		{"and never did", []change{after(karpenter.NillableDuration{})}, false, false, true},
		{"its pool is gone", nil, true, true, true},
		{"pods came", []change{after(karpenter.DurationOf(time.Second)), moved(0)}, true, false, false},
		{"pods came, and its pool waits for nothing", []change{after(karpenter.DurationOf(0)), moved(0)}, true, true, false},
		{"quiet since the last pod", []change{after(karpenter.DurationOf(30 * time.Second)), last(30 * time.Second)}, false, true, false},
		{"not quiet since the last pod", []change{after(karpenter.DurationOf(30 * time.Second)), last(29 * time.Second)}, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := change(initialized)
			if test.was {
				at = at.and(condition(karpenter.ConditionTypeConsolidatable))
			}
			v := view(at.and(test.changes...))
			if test.isSilent {
				if got := formatEffects(nodeclaim.Next(v)); got != nil {
					t.Errorf("the effects are %v", got)
				}
				return
			}
			c := object[*karpenter.NodeClaim](t, v)
			if got := c.Status.Conditions.IsTrue(karpenter.ConditionTypeConsolidatable); got != test.is {
				t.Errorf("consolidatable: %t", got)
			}
			if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
				t.Error("it is not ready any more")
			}
		})
	}
	unready := view(change(registered).and(condition(karpenter.ConditionTypeConsolidatable), after(karpenter.DurationOf(0))))
	if c := object[*karpenter.NodeClaim](t, unready); c.Status.Conditions.IsTrue(karpenter.ConditionTypeConsolidatable) {
		t.Error("a node that was never initialized may be consolidated")
	}
}

// A node that is smaller than expected is reported every ten minutes.
func TestConsistencyCheck(t *testing.T) {
	due := func(v *nodeclaim.View) { v.MayCheckConsistency = func() bool { return true } }
	unknown := func(v *nodeclaim.View) {
		v.Claim.Status.Conditions = v.Claim.Status.Conditions.Without(karpenter.ConditionTypeConsistentStateFound)
	}
	short := requests("cpu", "1").and(func(v *nodeclaim.View) { v.Claim.Status.Capacity = v.Claim.Spec.Resources.Requests })
	run(t, []row{
		{"as promised", view(initialized, due), nil},
		{"never looked at", view(initialized, unknown), []string{"status c"}},
		{"smaller", view(initialized, short, due), []string{"report FailedConsistencyCheck", "status c"}},
		{"smaller, and looked at lately", view(initialized, short), nil},
		{"smaller, and not initialized", view(registered, nodeReady("True"), short, allocatable("cpu", "1"), due), []string{"update n"}},
		{"smaller, and its node is gone", view(initialized, short, due, nodeless), nil},
	})
	c := object[*karpenter.NodeClaim](t, view(initialized, unknown))
	if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeConsistentStateFound) {
		t.Errorf("as promised: %+v", c.Status.Conditions)
	}
	c = written[*karpenter.NodeClaim](t, view(initialized, short, due))
	if !c.Status.Conditions.IsFalse(karpenter.ConditionTypeConsistentStateFound) || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("smaller: %+v", c.Status.Conditions)
	}
}

// written returns the only written object of the type.
func written[T cluster.Object](t *testing.T, v nodeclaim.View) T {
	t.Helper()
	for _, e := range nodeclaim.Next(v) {
		var object cluster.Object
		switch e := e.(type) {
		case effect.Update:
			object = e.Object
		case effect.UpdateStatus:
			object = e.Object
		}
		if typed, ok := object.(T); ok {
			return typed
		}
	}
	t.Fatalf("none was written: %v", formatEffects(nodeclaim.Next(v)))
	panic("unreachable")
}
