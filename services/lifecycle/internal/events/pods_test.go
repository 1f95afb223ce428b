package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func pods(prefix string, n int) []planning.PodRef {
	var out []planning.PodRef
	for i := range n {
		name := fmt.Sprintf("%s-%03d", prefix, i)
		out = append(out, planning.PodRef{Name: name, UID: name, Created: noon.Add(-time.Duration(i) * time.Second)})
	}
	return out
}

func eventMessages(effects []effect.Effect) (out []string) {
	for _, e := range effects {
		event := e.(effect.Report).Event
		out = append(out, fmt.Sprintf("%s %s %s %s: %s", event.Type, event.Reason, event.Kind.Kind, cluster.KeyOf(event.About), event.Message))
	}
	return out
}

func everywhere(string) bool { return true }

func TestFailedScheduling(t *testing.T) {
	small := []planning.Rejection{{NodePool: "a", Rule: planning.RuleResources, Detail: "too small"}, {NodePool: "b", Rule: planning.RuleTaints, Detail: "tainted"}}
	later := []planning.Rejection{{NodePool: "a", Rule: planning.RuleBudget, Detail: "next time"}}
	var memory events.Publisher
	plan := planning.Plan{Unplaced: []planning.UnplacedPods{
		{Namespace: "shop", Pods: pods("web", 2), Rejections: small},
		{Namespace: "shop", Pods: pods("late", 2), Rejections: later},
		{Namespace: "shop", Pods: pods("bad", 1), Rejections: []planning.Rejection{{Rule: planning.RulePod, Detail: "its volume is missing"}}},
		{Namespace: "shop", Pods: pods("half", 1), Rejections: append(later, small[1])},
		{Namespace: "shop", Pods: []planning.PodRef{{Name: "spare", UID: "spare", Buffer: "spare"}}, Rejections: small},
	}}
	want := []string{
		"Warning FailedScheduling Pod shop/web-001: Failed to schedule pod, a: too small; b: tainted",
		"Warning FailedScheduling Pod shop/bad-000: Failed to schedule pod, its volume is missing",
		"Warning FailedScheduling Pod shop/half-000: Failed to schedule pod, b: tainted",
		"Warning FailedScheduling Pod shop/web-000: Failed to schedule pod, a: too small; b: tainted",
	}
	if diff := cmp.Diff(want, eventMessages(memory.ReportPods(plan, everywhere, noon))); diff != "" {
		t.Error(diff)
	}
	if got := eventMessages(memory.ReportPods(plan, everywhere, noon.Add(5*time.Minute-1))); len(got) != 0 {
		t.Errorf("repeated within five minutes: %q", got)
	}
	if diff := cmp.Diff(want, eventMessages(memory.ReportPods(plan, everywhere, noon.Add(5*time.Minute)))); diff != "" {
		t.Errorf("after five minutes:\n%s", diff)
	}
}

// Ten thousand pods get Events, a hundred at a time, small classes first, and none twice.
func TestManyPodsGetEvents(t *testing.T) {
	why := []planning.Rejection{{NodePool: "a", Rule: planning.RuleLimits, Detail: "full"}}
	plan := planning.Plan{Unplaced: []planning.UnplacedPods{{Pods: pods("many", 950), Rejections: why}, {Pods: pods("few", 3), Rejections: why}}}
	var memory events.Publisher
	recorded := map[string]int{}
	for round := range 10 {
		effects := memory.ReportPods(plan, everywhere, noon.Add(time.Duration(round)*time.Second))
		if len(effects) > 100 {
			t.Fatalf("published %d Events at once", len(effects))
		}
		for _, e := range effects {
			recorded[e.(effect.Report).Event.About.GetName()]++
		}
		if round == 0 && recorded["few-000"]+recorded["few-001"]+recorded["few-002"] != 3 {
			t.Error("the Events of a small class wait for those of a large class")
		}
	}
	if len(recorded) != 953 {
		t.Errorf("%d of 953 pods got Events", len(recorded))
	}
	for name, n := range recorded {
		if n != 1 {
			t.Errorf("%s got %d Events", name, n)
		}
	}
}

func TestNominatedEvents(t *testing.T) {
	one := func(name, claim, node string) planning.Nomination {
		return planning.Nomination{Namespace: "shop", Pod: planning.PodRef{Name: name, UID: name}, Claim: claim, Node: node}
	}
	spare := one("spare", "c", "")
	spare.Pod.Buffer = "spare"
	plan := planning.Plan{Nominations: []planning.Nomination{
		one("new", "c", ""), one("old", "d", "n"), one("foreign", "", "m"), one("refused", "x", ""), spare,
	}}
	var memory events.Publisher
	want := []string{
		"Normal Nominated Pod shop/new: Pod should schedule on: nodeclaim/c",
		"Normal Nominated Pod shop/old: Pod should schedule on: nodeclaim/d, node/n",
		"Normal Nominated Pod shop/foreign: Pod should schedule on: node/m",
	}
	exists := func(claim string) bool { return claim != "x" }
	if diff := cmp.Diff(want, eventMessages(memory.ReportPods(plan, exists, noon))); diff != "" {
		t.Error(diff)
	}
	if got := memory.ReportPods(plan, exists, noon.Add(2*time.Minute-1)); len(got) != 0 {
		t.Errorf("repeated within two minutes: %q", eventMessages(got))
	}
	if got := memory.ReportPods(plan, exists, noon.Add(2*time.Minute)); len(got) != 3 {
		t.Errorf("after two minutes published %q", eventMessages(got))
	}
	for i := range 25 {
		plan.Nominations = append(plan.Nominations, one(fmt.Sprint("more-", i), "c", ""))
	}
	if got := memory.ReportPods(plan, exists, noon.Add(time.Hour)); len(got) != 10 {
		t.Errorf("%d pods got Nominated Events", len(got))
	}
}

// A long text is truncated, but not within a character.
func TestLongReasonsAreTruncated(t *testing.T) {
	plan := planning.Plan{Unplaced: []planning.UnplacedPods{{Pods: pods("p", 1), Rejections: []planning.Rejection{{Rule: planning.RulePod, Detail: strings.Repeat("ä", 3000)}}}}}
	var memory events.Publisher
	text := memory.ReportPods(plan, everywhere, noon)[0].(effect.Report).Event.Message
	if len(text) > 1024 || !utf8.ValidString(text) || !strings.HasSuffix(text, "ä…") {
		t.Errorf("%d bytes: %q", len(text), text[len(text)-10:])
	}
}
