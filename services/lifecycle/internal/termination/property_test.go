package termination_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podOutcome is the outcome for a pod of a drain.
type podOutcome struct {
	// began is when the pod was removed first, and deleted when it was last deleted because of a deadline.
	began, deleted, deadline time.Time
	// ends is when it has ended at the latest.
	ends time.Time
}

// drainRandomPods drains a node of random pods second by second. Some budgets never allow an eviction, and
// pods may take any time to end. The deadline may move earlier during the drain: noticed is when the final
// deadline is known.
func drainRandomPods(t *rapid.T) (pods []*corev1.Pod, noticed, deadline time.Time, recorded map[string]*podOutcome) {
	seconds := func(least, most int, what string) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, what)) * time.Second
	}
	began := noon
	noticed, deadline = began, began.Add(seconds(1, 300, "seconds until the deadline"))
	final := deadline
	if rapid.Bool().Draw(t, "a notice") {
		at := began.Add(seconds(0, 300, "seconds until the notice"))
		if earlier := at.Add(seconds(1, 120, "seconds from the notice to its deadline")); earlier.Before(deadline) {
			noticed, final = at, earlier
		}
	}
	kept := map[string]bool{}
	for i := range rapid.IntRange(1, 6).Draw(t, "pods") {
		p := pod(fmt.Sprintf("p%d", i), grace(rapid.Int64Range(0, 200).Draw(t, "grace")))
		if rapid.Bool().Draw(t, "daemon") {
			owner("DaemonSet")(p)
		}
		if rapid.Bool().Draw(t, "critical") {
			class("system-node-critical")(p)
		}
		switch rapid.IntRange(0, 2).Draw(t, "blocked by nothing, a budget, or its annotation") {
		case 1:
			kept[p.Name] = true
		case 2:
			annotated(karpenter.DoNotDisruptAnnotationKey, "true")(p)
		}
		pods = append(pods, p)
	}
	recorded = map[string]*podOutcome{}
	left := pods
	for now := began; ; now = now.Add(time.Second) {
		var still []*corev1.Pod
		for _, p := range left {
			if p.DeletionTimestamp == nil || p.DeletionTimestamp.After(now) {
				still = append(still, p)
			}
		}
		left = still
		if !now.Before(noticed) {
			deadline = final
		}
		plan := termination.PlanDrain(termination.DrainingNode{Pods: left, Began: began, Deadline: deadline, StuckTimeout: termination.StuckTimeout}, now)
		for _, d := range plan.Delete {
			recorded[d.Pod.Name] = recorded[d.Pod.Name].remove(d.Pod, now, d.GraceSeconds)
			if recorded[d.Pod.Name].deadline.Equal(deadline) {
				t.Fatalf("%s is deleted twice before the same deadline", d.Pod.Name)
			}
			recorded[d.Pod.Name].deleted, recorded[d.Pod.Name].deadline = now, deadline
		}
		for _, p := range plan.Evict {
			if !now.Before(deadline) {
				t.Fatalf("%s is evicted %s after the deadline", p.Name, now.Sub(deadline))
			}
			if !kept[p.Name] {
				recorded[p.Name] = recorded[p.Name].remove(p, now, *p.Spec.TerminationGracePeriodSeconds)
			}
		}
		if plan.Drained {
			return pods, noticed, deadline, recorded
		}
		if now.Sub(deadline) > termination.StuckTimeout {
			t.Fatalf("the drain does not end")
		}
	}
}

// remove removes a pod as the API server does. A shorter grace period is measured from the first
// removal, and the containers have at least one second.
func (g *podOutcome) remove(p *corev1.Pod, now time.Time, seconds int64) *podOutcome {
	if g == nil {
		g = &podOutcome{began: now}
	}
	end := g.began.Add(time.Duration(seconds) * time.Second)
	if end.Before(now) {
		end = now
	}
	if g.ends = end; end.Before(now.Add(time.Second)) {
		g.ends = now.Add(time.Second)
	}
	p.DeletionTimestamp = new(metav1.NewTime(end))
	return g
}

// Invariants of a drain with a deadline, for random pods. The pods that are already terminating when the deadline moves earlier
// keep the time that is left.
func TestDrainInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, noticed, deadline, recorded := drainRandomPods(t)
		for _, p := range pods {
			g := recorded[p.Name]
			if g == nil {
				t.Fatalf("%s was never removed", p.Name)
			}
			own := time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
			known := noticed
			if g.began.Before(known) {
				known = g.began
			}
			if want, got := min(own, deadline.Sub(known)), g.ends.Sub(g.began); got < want {
				t.Errorf("%s has %s to terminate, but could have %s", p.Name, got, want)
			}
			if !g.deleted.IsZero() && g.deleted.Before(deadline.Add(-own)) {
				t.Errorf("%s is deleted %s earlier than its grace period requires", p.Name, deadline.Add(-own).Sub(g.deleted))
			}
			if last := deadline.Add(time.Second); g.ends.After(last) {
				t.Errorf("%s ends %s after the deadline", p.Name, g.ends.Sub(deadline))
			}
		}
	})
}
