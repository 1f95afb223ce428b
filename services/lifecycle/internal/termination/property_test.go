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
	evicted, deleted time.Time
	// ends is when it has ended at the latest.
	ends time.Time
}

// drainRandomPods drains a node of random pods second by second. Some budgets never allow an eviction, and
// pods may take any time to end.
func drainRandomPods(t *rapid.T) (pods []*corev1.Pod, began, deadline time.Time, recorded map[string]*podOutcome) {
	began = noon
	deadline = began.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds until the deadline")) * time.Second)
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
		plan := termination.PlanDrain(termination.DrainingNode{Pods: left, Began: began, Deadline: deadline, StuckTimeout: termination.StuckTimeout}, now)
		for _, d := range plan.Delete {
			recorded[d.Pod.Name] = remove(t, recorded[d.Pod.Name], d.Pod, now, d.GraceSeconds, true)
		}
		for _, p := range plan.Evict {
			if !now.Before(deadline) {
				t.Fatalf("%s is evicted %s after the deadline", p.Name, now.Sub(deadline))
			}
			if !kept[p.Name] {
				recorded[p.Name] = remove(t, recorded[p.Name], p, now, *p.Spec.TerminationGracePeriodSeconds, false)
			}
		}
		if plan.Drained {
			return pods, began, deadline, recorded
		}
		if now.Sub(deadline) > termination.StuckTimeout {
			t.Fatalf("the drain does not end")
		}
	}
}

func remove(t *rapid.T, g *podOutcome, p *corev1.Pod, now time.Time, seconds int64, force bool) *podOutcome {
	if g == nil {
		g = &podOutcome{}
	}
	if force {
		if !g.deleted.IsZero() {
			t.Fatalf("%s is deleted twice", p.Name)
		}
		g.deleted = now
	} else {
		g.evicted = now
	}
	g.ends = now.Add(time.Duration(seconds) * time.Second)
	at := metav1.NewTime(g.ends)
	p.DeletionTimestamp = &at
	return g
}

// Invariants of a drain with a deadline, for random pods.
func TestDrainInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, began, deadline, recorded := drainRandomPods(t)
		for _, p := range pods {
			g := recorded[p.Name]
			if g == nil {
				t.Fatalf("%s was never removed", p.Name)
			}
			own := time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
			start := g.evicted
			if start.IsZero() {
				start = g.deleted
			}
			if want, got := min(own, deadline.Sub(began)), g.ends.Sub(start); got < want {
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
