package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// expectPods returns a plan that expects the pods on the NodeClaim.
func expectPods(claim string, names ...string) planning.Plan {
	var plan planning.Plan
	for _, name := range names {
		plan.Nominations = append(plan.Nominations, planning.Nomination{Claim: claim, Namespace: "default", Pod: planning.PodRef{Name: name, UID: name}})
	}
	return plan
}

func launchedAll(string) bool { return true }

// Pods that still wait for a NodeClaim have an Event when its launch finds no capacity.
func TestFailedLaunchEventsOnPods(t *testing.T) {
	pods := map[string]*corev1.Pod{}
	for name, change := range map[string]func(*corev1.Pod){
		"waits":    func(*corev1.Pod) {},
		"bound":    func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		"ended":    func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"deleted":  func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} },
		"replaced": func(p *corev1.Pod) { p.UID = "other" },
	} {
		pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
		change(pods[name])
	}
	var m events.Publisher
	plan := expectPods("c-0", "waits", "bound", "ended", "deleted", "replaced", "gone")
	plan.Nominations = append(plan.Nominations, planning.Nomination{Claim: "c-0", Namespace: "default", Pod: planning.PodRef{Name: "waits", UID: "waits", Buffer: "b"}})
	m.ReportPods(plan, launchedAll, noon)
	m.ReportPods(expectPods("c-1", "waits"), launchedAll, noon)
	report := func(claim string, now time.Time) (out []string) {
		for _, e := range m.ReportFailedPods(claim, "no m6i.large", func(key cluster.Key) *corev1.Pod { return pods[key.Name] }, now) {
			event := e.(effect.Report).Event
			out = append(out, fmt.Sprintf("%s %s %s %s: %s", event.Type, event.Reason, event.Kind.Kind, event.About.GetName(), event.Message))
		}
		return out
	}
	want := []string{"Warning InsufficientCapacityError Pod waits: NodeClaim c-0 nominated for this pod failed to launch: no m6i.large"}
	if diff := cmp.Diff(want, report("c-0", noon)); diff != "" {
		t.Error(diff)
	}
	if got := report("unknown", noon); got != nil {
		t.Errorf("an unknown NodeClaim has the Events %v", got)
	}
	m.ReportPods(expectPods("c-2", "waits"), launchedAll, noon.Add(16*time.Minute))
	if got := report("c-1", noon.Add(16*time.Minute)); got != nil {
		t.Errorf("an old plan leads to the Events %v", got)
	}
}

// There are ten Events at once, and then five per second.
func TestFailedLaunchEventsAreLimited(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("p-%d", i))
	}
	var m events.Publisher
	m.ReportPods(expectPods("c", names...), launchedAll, noon)
	find := func(key cluster.Key) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name)}}
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 10}, {0, 0}, {time.Second, 5}, {time.Minute, 10}} {
		if got := len(m.ReportFailedPods("c", "no capacity", find, noon.Add(tt.after))); got != tt.want {
			t.Errorf("after %s there are %d Events, want %d", tt.after, got, tt.want)
		}
	}
}

// An Event's message has at most 1,024 bytes and no cut rune.
func TestLongMessages(t *testing.T) {
	pod := &corev1.Pod{}
	for text, want := range map[string]string{
		strings.Repeat("a", 1024): strings.Repeat("a", 1024),
		strings.Repeat("a", 1025): strings.Repeat("a", 1021) + "...",
		strings.Repeat("é", 1024): strings.Repeat("é", 510) + "...",
	} {
		if got := events.InsufficientCapacity.About(cluster.Pods, pod, noon, "%s", text).Event.Message; got != want {
			t.Errorf("a message of %d bytes became one of %d bytes: %s", len(text), len(got), got[len(got)-10:])
		}
	}
}
