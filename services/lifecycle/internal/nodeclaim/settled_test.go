package nodeclaim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// settledView draws a claim in some phase, with deadlines around noon.
func settledView(t *rapid.T) nodeclaim.View {
	duration := func(name string) karpenter.NillableDuration {
		return rapid.SampledFrom([]karpenter.NillableDuration{{}, karpenter.DurationOf(0), karpenter.DurationOf(30 * time.Second), karpenter.DurationOf(2 * time.Minute), karpenter.DurationOf(time.Hour)}).Draw(t, name)
	}
	ago := func(name string) time.Time {
		return noon.Add(-time.Duration(rapid.IntRange(0, 150).Draw(t, name)) * time.Second)
	}
	phase := rapid.SampledFrom([]change{launched, joined, registered, initialized, initialized, initialized}).Draw(t, "phase")
	v := view(phase)
	v.Claim.Spec.ExpireAfter = duration("expireAfter")
	if rapid.Bool().Draw(t, "in a pool") {
		v.Pool = &karpenter.NodePool{}
		v.Pool.Spec.Disruption.ConsolidateAfter = duration("consolidateAfter")
		if rapid.IntRange(0, 4).Draw(t, "static") == 0 {
			v.Pool.Spec.Replicas = new(int64(1))
		}
	}
	if rapid.Bool().Draw(t, "had pod events") {
		v.Claim.Status.LastPodEventTime = metav1.NewTime(ago("last written"))
	}
	if rapid.Bool().Draw(t, "has a new pod event") {
		v.PodEvent = ago("observed")
	}
	if rapid.IntRange(0, 9).Draw(t, "deleted") == 0 {
		v.Claim.DeletionTimestamp = new(metav1.NewTime(noon))
	}
	if rapid.IntRange(0, 9).Draw(t, "node deleted") == 0 && v.Node != nil {
		v.Node.DeletionTimestamp = new(metav1.NewTime(noon))
	}
	v.MayRepeat = func(string) bool { return true }
	return v
}

// A settled claim has no effects before the time, and the time is not needlessly early: with consolidateAfter or
// expireAfter something happens then.
func TestSettledClaimHasNoEffects(t *testing.T) {
	settled := 0
	rapid.Check(t, func(t *rapid.T) {
		v := settledView(t)
		// The writes of the first decisions are in the object that the next one reads.
		for range 5 {
			apply(&v)
		}
		until, is := v.SettledUntil(nodeclaim.Next(v))
		if !is {
			return
		}
		settled++
		last := v.Now.Add(2 * time.Hour)
		if !until.IsZero() {
			last = until.Add(-time.Nanosecond)
		}
		for _, at := range []time.Time{v.Now, v.Now.Add(last.Sub(v.Now) / 2), last} {
			v.Now = at
			if effects := nodeclaim.Next(v); len(effects) > 0 {
				t.Fatalf("settled until %s, and at %s there is %+v", until, at, effects)
			}
		}
		if v.Now = until; !until.IsZero() && len(nodeclaim.Next(v)) == 0 {
			t.Fatalf("settled until %s, and then nothing happens", until)
		}
	})
	if settled == 0 {
		t.Error("no claim was settled")
	}
}

// A claim is settled only while it runs.
func TestSettledPhases(t *testing.T) {
	untagged := func(v *nodeclaim.View) { delete(v.Claim.Annotations, karpenter.InstanceTaggedAnnotationKey) }
	twoNodes := func(v *nodeclaim.View) { v.Nodes = append(v.Nodes, &corev1.Node{}) }
	for _, test := range []struct {
		name    string
		changes change
		want    bool
	}{
		{"launched", launched, false}, {"joined", joined, false}, {"registered", registered, false}, {"initialized", initialized, true},
		{"untagged", change(initialized).and(untagged), false}, {"two nodes", change(initialized).and(twoNodes), false},
		{"deleted", change(initialized).and(func(v *nodeclaim.View) { v.Claim.DeletionTimestamp = new(metav1.NewTime(noon)) }), false},
	} {
		if _, is := view(test.changes).SettledUntil(nil); is != test.want {
			t.Errorf("%s: settled %t, want %t", test.name, is, test.want)
		}
	}
}

// apply makes the writes of a decision on the claim and its node.
func apply(v *nodeclaim.View) {
	for _, e := range nodeclaim.Next(*v) {
		switch e := e.(type) {
		case effect.UpdateStatus:
			v.Claim.Status = e.Object.(*karpenter.NodeClaim).Status
		case effect.Update:
			if node, is := e.Object.(*corev1.Node); is {
				*v.Node = *node
			} else {
				v.Claim.ObjectMeta = e.Object.(*karpenter.NodeClaim).ObjectMeta
			}
		}
	}
}
