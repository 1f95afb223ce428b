package nodeclaim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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

func TestTagsAreRequested(t *testing.T) {
	untagged := annotated(karpenter.InstanceTaggedAnnotationKey, "")
	send := []string{"send tag.requested.v1"}
	run(t, []row{
		{"tagged", view(initialized), nil},
		{"not tagged", view(initialized, untagged), send},
		{"not tagged, registered", view(registered, untagged), send},
		{"not tagged, launched", view(launched, untagged), nil},
		{"not tagged, requested recently", view(initialized, untagged, requestedRecently), nil},
		{"not tagged, without a node", view(initialized, untagged, nodeless), send},
		{"not tagged, zonal shift", view(initialized, untagged, withZonalShift), nil},
		{"not tagged, pods changed", view(initialized, untagged, moved(0)), []string{"send tag.requested.v1", "status c"}},
	})
}

// A node that registered with an older Karpenter gets the label of its EC2NodeClass, without which it counts as a node of
// another provider.
func TestNodeClassIsLabelled(t *testing.T) {
	classed := func(v *nodeclaim.View) { v.Claim.Labels[karpenter.LabelEC2NodeClass] = "default" }
	run(t, []row{
		{"no label", view(initialized, classed), []string{"update n"}},
		{"labelled", view(initialized, classed, func(v *nodeclaim.View) { v.Node.Labels[karpenter.LabelEC2NodeClass] = "default" }), nil},
		{"before registration", view(launched, classed), nil},
	})
	node := object[*corev1.Node](t, view(initialized, classed))
	if got := node.Labels[karpenter.LabelEC2NodeClass]; got != "default" {
		t.Errorf("the node has the class %q", got)
	}
}

func TestLastPodEventTime(t *testing.T) {
	run(t, []row{
		{"quiet", view(initialized), nil},
		{"pods changed", view(initialized, moved(0)), []string{"status c"}},
		{"pods changed, already recorded", view(initialized, moved(0), last(0)), nil},
		{"pods changed again within ten seconds", view(initialized, moved(0), last(10*time.Second-1)), nil},
		{"pods changed again after ten seconds", view(initialized, moved(0), last(10*time.Second)), []string{"status c"}},
		{"pods changed before initialization", view(registered, moved(0)), []string{"status c"}},
		{"pods changed before registration", view(joined, moved(0)), []string{"update n", "status c"}},
		{"pods changed while being deleted", view(initialized, moved(0), beingDeleted(time.Second), markedGone), []string{"delete n node-uid: instance gone"}},
	})
	c := object[*karpenter.NodeClaim](t, view(initialized, moved(3*time.Second)))
	if got := c.Status.LastPodEventTime.Time; !got.Equal(noon.Add(-3 * time.Second)) {
		t.Errorf("got LastPodEventTime %s", got)
	}
}

// static makes the claim's pool static, after the pool is set.
func static(v *nodeclaim.View) { v.Pool.Spec.Replicas = new(int64(1)) }

// Consolidatable is set after consolidateAfter without pod events, and removed when that is no
// longer the case.
func TestConsolidatable(t *testing.T) {
	for _, test := range []struct {
		name     string
		changes  []change
		was, is  bool
		isSilent bool
	}{
		{"without pod events, not long enough", []change{after(karpenter.DurationOf(time.Minute + 1))}, false, false, true},
		{"without pod events for consolidateAfter", []change{after(karpenter.DurationOf(time.Minute))}, false, true, false},
		{"already Consolidatable", []change{after(karpenter.DurationOf(time.Minute))}, true, true, true},
		{"the pool's consolidateAfter was increased", []change{after(karpenter.DurationOf(time.Hour))}, true, false, false},
		{"the pool no longer consolidates", []change{after(karpenter.NillableDuration{})}, true, false, false},
		{"the pool never consolidates", []change{after(karpenter.NillableDuration{})}, false, false, true},
		{"the pool is static", []change{after(karpenter.DurationOf(0)), static}, false, false, true},
		{"the pool is static, with the condition of an older version", []change{after(karpenter.DurationOf(0)), static}, true, false, false},
		{"the pool was deleted", nil, true, true, true},
		{"a pod event", []change{after(karpenter.DurationOf(time.Second)), moved(0)}, true, false, false},
		{"a pod event, consolidateAfter is 0", []change{after(karpenter.DurationOf(0)), moved(0)}, true, true, false},
		{"long enough since the last pod event", []change{after(karpenter.DurationOf(30 * time.Second)), last(30 * time.Second)}, false, true, false},
		{"not long enough since the last pod event", []change{after(karpenter.DurationOf(30 * time.Second)), last(29 * time.Second)}, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := change(initialized)
			if test.was {
				at = at.and(condition(karpenter.ConditionTypeConsolidatable))
			}
			v := view(at.and(test.changes...))
			if test.isSilent {
				if got := formatEffects(nodeclaim.Next(v)); got != nil {
					t.Errorf("got effects %v", got)
				}
				return
			}
			c := object[*karpenter.NodeClaim](t, v)
			if got := c.Status.Conditions.IsTrue(karpenter.ConditionTypeConsolidatable); got != test.is {
				t.Errorf("consolidatable: %t", got)
			}
			if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
				t.Error("the node is no longer Ready")
			}
		})
	}
	unready := view(change(registered).and(condition(karpenter.ConditionTypeConsolidatable), after(karpenter.DurationOf(0))))
	if c := object[*karpenter.NodeClaim](t, unready); c.Status.Conditions.IsTrue(karpenter.ConditionTypeConsolidatable) {
		t.Error("a node that was never initialized is Consolidatable")
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
		{"as expected", view(initialized, due), nil},
		{"never checked", view(initialized, unknown), []string{"status c"}},
		{"smaller", view(initialized, short, due), []string{"report FailedConsistencyCheck", "status c"}},
		{"smaller, but checked recently", view(initialized, short), nil},
		{"smaller, and initialized now", view(registered, nodeReady("True"), short, allocatable("cpu", "1"), due), []string{"update n", "report FailedConsistencyCheck", "status c"}},
		{"smaller, but its node is gone", view(initialized, short, due, nodeless), nil},
	})
	c := object[*karpenter.NodeClaim](t, view(initialized, unknown))
	if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeConsistentStateFound) {
		t.Errorf("the condition of a consistent node is %+v", c.Status.Conditions)
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
	t.Fatalf("no status was written: %v", formatEffects(nodeclaim.Next(v)))
	panic("unreachable")
}
