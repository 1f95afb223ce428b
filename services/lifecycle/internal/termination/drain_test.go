package termination_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

type change func(*corev1.Pod)

func pod(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.Phase = corev1.PodRunning
	for _, change := range changes {
		change(p)
	}
	return p
}

func owner(kind string) change {
	return func(p *corev1.Pod) {
		yes, version := true, "apps/v1"
		if kind == "Node" {
			version = "v1"
		}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Controller: &yes}}
	}
}

func grace(seconds int64) change {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

// ends sets the pod's deletion with a grace period until that time.
func ends(at time.Time) change {
	return func(p *corev1.Pod) { t := metav1.NewTime(at); p.DeletionTimestamp = &t }
}

func phase(phase corev1.PodPhase) change { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func annotated(key, value string) change {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func started(at time.Time) change {
	return func(p *corev1.Pod) { t := metav1.NewTime(at); p.Status.StartTime = &t }
}

func tolerates(t corev1.Toleration) change {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func class(name string) change { return func(p *corev1.Pod) { p.Spec.PriorityClassName = name } }

// step is a plan with the pods' names.
type step struct {
	Evict   []string
	Delete  map[string]int64
	Waiting int
	Drained bool
}

func next(pods []*corev1.Pod, began, deadline time.Time) step {
	return formatPlan(termination.PlanDrain(termination.DrainingNode{Pods: pods, Began: began, Deadline: deadline, StuckTimeout: termination.StuckTimeout}, noon))
}

func formatPlan(plan termination.Plan) step {
	out := step{Waiting: len(plan.Waiting), Drained: plan.Drained}
	for _, p := range plan.Evict {
		out.Evict = append(out.Evict, p.Name)
	}
	for _, d := range plan.Delete {
		if out.Delete == nil {
			out.Delete = map[string]int64{}
		}
		out.Delete[d.Pod.Name] = d.GraceSeconds
	}
	return out
}

// The groups are evicted one after the other.
func TestEvictionGroups(t *testing.T) {
	groups := []*corev1.Pod{
		pod("web"), pod("logs", owner("DaemonSet")), pod("dns", class("system-cluster-critical")),
		pod("cni", owner("DaemonSet"), class("system-node-critical")),
	}
	for i, first := range groups {
		// The order of the input does not matter.
		turned := append([]*corev1.Pod{}, groups[i:]...)
		turned[0], turned[len(turned)-1] = turned[len(turned)-1], turned[0]
		want := step{Evict: []string{first.Name}, Waiting: len(turned)}
		if diff := cmp.Diff(want, next(turned, noon.Add(-time.Hour), time.Time{})); diff != "" {
			t.Errorf("from group %d on:\n%s", i, diff)
		}
	}
	leaving := pod("web", ends(noon.Add(10*time.Second)))
	want := step{Waiting: 2}
	if diff := cmp.Diff(want, next([]*corev1.Pod{leaving, groups[1]}, noon.Add(-time.Hour), time.Time{})); diff != "" {
		t.Errorf("a pod that is still leaving holds the next group up:\n%s", diff)
	}
}

func TestMinDrainTime(t *testing.T) {
	for _, test := range []struct {
		since time.Duration
		want  bool
	}{{0, false}, {termination.MinDrainTime - 1, false}, {termination.MinDrainTime, true}, {time.Hour, true}} {
		if got := next(nil, noon.Add(-test.since), time.Time{}).Drained; got != test.want {
			t.Errorf("after %s an empty node is drained: %t", test.since, got)
		}
	}
}

// Every pod is deleted early enough to have its grace period, and never sooner.
func TestPodsAreDeletedBeforeDeadline(t *testing.T) {
	minute := noon.Add(time.Minute)
	for _, test := range []struct {
		name     string
		pod      *corev1.Pod
		deadline time.Time
		want     step
	}{
		{"enough time", pod("p", grace(59)), minute, step{Evict: []string{"p"}, Waiting: 1}},
		{"exactly its grace period remains", pod("p", grace(60)), minute, step{Delete: map[string]int64{"p": 60}, Waiting: 1}},
		{"less than its grace period remains", pod("p", grace(600)), minute, step{Delete: map[string]int64{"p": 60}, Waiting: 1}},
		{"more than the default grace period remains", pod("p"), noon.Add(31 * time.Second), step{Evict: []string{"p"}, Waiting: 1}},
		{"exactly the default grace period remains", pod("p"), noon.Add(30 * time.Second), step{Delete: map[string]int64{"p": 30}, Waiting: 1}},
		{"less than a second remains", pod("p"), noon.Add(time.Second / 2), step{Delete: map[string]int64{"p": 1}, Waiting: 1}},
		{"grace period of zero", pod("p", grace(0)), noon.Add(time.Second), step{Evict: []string{"p"}, Waiting: 1}},
		{"at the deadline", pod("p", grace(600)), noon, step{Delete: map[string]int64{"p": 1}, Waiting: 1}},
		{"just after the deadline", pod("p"), noon.Add(-time.Minute + 1), step{Delete: map[string]int64{"p": 1}, Waiting: 1}},
		{"a minute after the deadline", pod("p"), noon.Add(-time.Minute), step{Delete: map[string]int64{"p": 1}, Waiting: 1, Drained: true}},
		{"at the deadline without pods", pod("p", phase(corev1.PodSucceeded)), noon, step{Drained: true}},
		{"terminating, ends within a second of the deadline", pod("p", ends(noon.Add(time.Second))), noon, step{Waiting: 1}},
		{"terminating, ends later after the deadline", pod("p", ends(noon.Add(2*time.Second))), noon, step{Delete: map[string]int64{"p": 1}, Waiting: 1}},
		{"terminating, stuck for longer than a minute", pod("p", ends(noon.Add(-time.Minute-1))), noon.Add(-time.Minute / 2), step{Drained: true}},
		{"terminating with a longer grace period", pod("p", grace(10), ends(noon.Add(2*time.Minute))), minute, step{Waiting: 1}},
		{"terminating, ends in time", pod("p", grace(600), ends(minute)), minute, step{Waiting: 1}},
		{"terminating, ends after the deadline", pod("p", grace(600), ends(minute.Add(time.Second))), minute, step{Waiting: 1}},
		{"terminating, ends after the deadline, more than a second remains", pod("p", grace(600), ends(minute)), noon.Add(time.Second + 1), step{Waiting: 1}},
		{"terminating, ends after the deadline, a second remains", pod("p", grace(600), ends(minute)), noon.Add(time.Second), step{Delete: map[string]int64{"p": 1}, Waiting: 1}},
		{"do-not-disrupt, its grace period is shorter than the remaining time", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "true")), minute, step{Waiting: 1}},
		{"do-not-disrupt, exactly its grace period remains", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "true"), grace(60)), minute, step{Delete: map[string]int64{"p": 60}, Waiting: 1}},
		{"do-not-disrupt for five minutes, not over", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "5m"), started(noon.Add(-5*time.Minute+1))), time.Time{}, step{Waiting: 1}},
		{"do-not-disrupt for five minutes, over", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "5m"), started(noon.Add(-5*time.Minute))), time.Time{}, step{Evict: []string{"p"}, Waiting: 1}},
		{"do-not-disrupt with an invalid value", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "yes")), time.Time{}, step{Evict: []string{"p"}, Waiting: 1}},
		{"do-not-disrupt, no deadline", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "true")), time.Time{}, step{Waiting: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, next([]*corev1.Pod{test.pod}, noon.Add(-time.Hour), test.deadline)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A daemon with a long grace period is deleted while the first group is blocked, because after that
// group it would be too late.
func TestLaterGroupIsDeletedInTime(t *testing.T) {
	stuck := pod("web", annotated(karpenter.DoNotDisruptAnnotationKey, "true"))
	daemon, dns := pod("logs", owner("DaemonSet"), grace(60)), pod("dns", class("system-cluster-critical"), grace(59))
	want := step{Delete: map[string]int64{"logs": 60}, Waiting: 3}
	if diff := cmp.Diff(want, next([]*corev1.Pod{dns, daemon, stuck}, noon.Add(-time.Hour), noon.Add(time.Minute))); diff != "" {
		t.Error(diff)
	}
}

// After a deadline of AWS the drain waits for nothing.
func TestInterruptionDeadlineEndsDrain(t *testing.T) {
	plan := termination.PlanDrain(termination.DrainingNode{Pods: []*corev1.Pod{pod("p")}, Deadline: noon}, noon)
	if diff := cmp.Diff(step{Delete: map[string]int64{"p": 1}, Waiting: 1, Drained: true}, formatPlan(plan)); diff != "" {
		t.Error(diff)
	}
}

// Pods that a drain does not wait for, and similar ones.
func TestDrainablePods(t *testing.T) {
	disrupted := func(o corev1.TolerationOperator, value string, effect corev1.TaintEffect) change {
		return tolerates(corev1.Toleration{Key: karpenter.DisruptedTaintKey, Operator: o, Value: value, Effect: effect})
	}
	for _, test := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"ordinary", pod("p"), true},
		{"a daemon", pod("p", owner("DaemonSet")), true},
		{"pending", pod("p", phase(corev1.PodPending)), true},
		{"do-not-disrupt", pod("p", annotated(karpenter.DoNotDisruptAnnotationKey, "true")), true},
		{"succeeded", pod("p", phase(corev1.PodSucceeded)), false},
		{"failed", pod("p", phase(corev1.PodFailed)), false},
		{"a mirror", pod("p", annotated(corev1.MirrorPodAnnotationKey, "x")), false},
		{"static", pod("p", owner("Node")), false},
		{"of a node that is no controller", pod("p", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node"}} }), false},
		{"of a custom kind Node", pod("p", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "chain.example.com/v1", Kind: "Node", Controller: new(true)}}
		}), true},
		{"leaving", pod("p", ends(noon.Add(time.Minute))), true},
		{"a minute past its grace period", pod("p", ends(noon.Add(-time.Minute))), true},
		{"stuck", pod("p", ends(noon.Add(-time.Minute-time.Second))), false},
		{"tolerates everything", pod("p", tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})), false},
		{"tolerates the disruption taint", pod("p", disrupted(corev1.TolerationOpExists, "", "")), false},
		{"tolerates the disruption taint's value", pod("p", disrupted(corev1.TolerationOpEqual, "", corev1.TaintEffectNoSchedule)), false},
		{"tolerates the disruption taint's value, default operator", pod("p", disrupted("", "", corev1.TaintEffectNoSchedule)), false},
		{"tolerates another value", pod("p", disrupted(corev1.TolerationOpEqual, "x", "")), true},
		{"tolerates another effect", pod("p", disrupted(corev1.TolerationOpExists, "", corev1.TaintEffectNoExecute)), true},
		{"tolerates another taint", pod("p", tolerates(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})), true},
		{"toleration without a key and value", pod("p", tolerates(corev1.Toleration{Operator: corev1.TolerationOpEqual})), true},
	} {
		if got := termination.IsDrainable(test.pod, noon); got != test.want {
			t.Errorf("%s: drainable %t, want %t", test.name, got, test.want)
		}
		if got := next([]*corev1.Pod{test.pod}, noon.Add(-time.Hour), time.Time{}).Drained; got == test.want {
			t.Errorf("%s: got drained node %t", test.name, got)
		}
	}
}
