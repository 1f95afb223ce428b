package events_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// kept returns a node of the NodePool "default" and its claim.
func kept(name, rule, subject, detail string) events.Kept {
	labels := map[string]string{
		karpenter.NodePoolLabelKey: "default", karpenter.CapacityTypeLabelKey: "spot",
		corev1.LabelTopologyZone: "eu-west-1a", corev1.LabelInstanceTypeStable: "m7g.large",
	}
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels}}
	c.Status.NodeName = "node-" + name
	return events.Kept{
		Claim: c, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Status.NodeName, UID: "uid", Labels: labels}},
		Rule: rule, Subject: subject, Detail: detail,
	}
}

// Karpenter's texts come from pkg/controllers/disruption and pkg/controllers/state.
func TestKeptNodeTexts(t *testing.T) {
	const hostile = "no\x1b[31m place\n\u202enow"
	for _, c := range []struct {
		name                  string
		rule, subject, detail string
		change                func(*events.Kept)
		want                  string
	}{
		{name: "unknown pool", rule: "no-pool", want: "DisruptionBlocked: NodePool not found (NodePool=default)"},
		{name: "pool being deleted", rule: "nodepool-deleting", want: "DisruptionBlocked: NodePool is being deleted (NodePool=default)"},
		{name: "not registered", rule: "not-initialized", want: "DisruptionBlocked: Node isn't initialized nor registered"},
		{name: "not initialized", rule: "not-initialized", change: func(k *events.Kept) {
			k.Claim.Status.Conditions = k.Claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeRegistered, Status: metav1.ConditionTrue}, noon)
		}, want: "DisruptionBlocked: Node isn't initialized"},
		{name: "do-not-repair", rule: "do-not-repair", want: `DisruptionBlocked: repair is blocked through the "karpenter.sh/do-not-repair" annotation`},
		{name: "repair without a NodePool", rule: "repair-standalone", want: "DisruptionBlocked: repair requires a NodePool to construct and budget a safe replacement"},
		{name: "repair without a grace period", rule: "repair-unbounded", want: "DisruptionBlocked: repair requires a termination grace period to bypass blocking pods"},
		{name: "repair, pods do not fit elsewhere", rule: "repair-unplaceable", detail: "pod shop/web-0 has no other place", want: "DisruptionBlocked: Not all pods would schedule: pod shop/web-0 has no other place"},
		{name: "going", rule: "deleting", want: "DisruptionBlocked: Node is deleting or marked for deletion"},
		{name: "rebooting", rule: "rebooting", want: "DisruptionBlocked: Node is rebooting"},
		{name: "nominated", rule: "nominated", want: "DisruptionBlocked: Node is nominated for a pending pod"},
		{name: "annotation", rule: "do-not-disrupt", want: `DisruptionBlocked: Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`},
		{name: "pod's annotation", rule: "pod-do-not-disrupt", subject: "shop/web-0", want: `DisruptionBlocked: Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web-0)`},
		{name: "pdb", rule: "pod-disruption-budget", subject: "shop/web", want: "DisruptionBlocked: Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"},
		{name: "static, at its limit", rule: "static-at-limit", want: "DisruptionBlocked: static NodePool is at its node limit and cannot stage a replacement"},
		{name: "static, reservations full", rule: "static-reservations-full", want: "DisruptionBlocked: static NodePool's capacity reservations are full and cannot stage a replacement"},
		{name: "drifted, pods do not fit elsewhere", rule: "pods-unplaceable", detail: "pod shop/web-0 has no other place", change: func(k *events.Kept) {
			k.Claim.Status.Conditions = k.Claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue}, noon)
		}, want: "DisruptionBlocked: Not all pods would schedule: pod shop/web-0 has no other place"},
		{name: "pods do not fit elsewhere", rule: "pods-unplaceable", detail: "pod shop/web-0 has no other place", want: "Unconsolidatable: Not all pods would schedule: pod shop/web-0 has no other place"},
		{name: "never", rule: "consolidation-disabled", want: `Unconsolidatable: NodePool "default" has consolidation disabled`},
		{name: "policy", rule: "consolidation-policy", want: `Unconsolidatable: NodePool "default" has consolidation policy WhenEmpty, but node is not empty`},
		{name: "buffer", rule: "capacity-buffer", want: `Unconsolidatable: Node "node-a" has buffer pods`},
		{name: "unknown price", rule: "price-unknown", want: `Unconsolidatable: Instance Type "m7g.large" not found, or its price is not known`},
		{name: "no zone", rule: "price-unknown", change: func(k *events.Kept) { delete(k.Node.Labels, corev1.LabelTopologyZone) },
			want: `Unconsolidatable: Node does not have label "topology.kubernetes.io/zone"`},
		{name: "no saving", rule: "no-saving", detail: "it costs $1", want: "Unconsolidatable: Can't replace with a cheaper node"},
		{name: "two replacements needed", rule: "more-nodes", subject: "2", want: "Unconsolidatable: Can't remove without creating 2 candidates"},
		{name: "several replacements needed", rule: "more-nodes", want: "Unconsolidatable: Can't remove without creating several candidates"},
		{name: "minValues", rule: "min-values", subject: "node.kubernetes.io/instance-type",
			want: "Unconsolidatable: Filtering by price: minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type])"},
		{name: "spot-to-spot consolidation disabled", rule: "spot-to-spot", want: "Unconsolidatable: SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"},
		{name: "too few spot instance types", rule: "spot-to-spot", subject: "7",
			want: "Unconsolidatable: SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to consolidate, got 7"},
		{name: "Joist's own", rule: "min-saving", detail: "$0.01 would be saved", want: "Unconsolidatable: Consolidation saves less than the NodePool requires: $0.01 would be saved"},
		{name: "details with control characters", rule: "balanced", detail: hostile, want: "Unconsolidatable: Consolidation saves too little for the pods that it moves: no [31m place  now"},
		{name: "subjects with control characters", rule: "pod-do-not-disrupt", subject: hostile, want: `DisruptionBlocked: Pod has "karpenter.sh/do-not-disrupt" annotation`},
		{name: "rule without a text", rule: "consolidate-after", want: ""},
		{name: "rule of a later version", rule: "moon", detail: "full", want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kept("a", c.rule, c.subject, c.detail)
			if c.change != nil {
				c.change(&k)
			}
			var want []string
			if reason, text, _ := strings.Cut(c.want, ": "); c.want != "" {
				want = []string{"Normal " + reason + " Node node-a: " + text, "Normal " + reason + " NodeClaim a: " + text}
			}
			var memory events.Publisher
			if diff := cmp.Diff(want, eventMessages(memory.ReportKept([]events.Kept{k}, noon))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("without a node", func(t *testing.T) {
		k := kept("a", "not-initialized", "", "")
		k.Node = nil
		var memory events.Publisher
		if diff := cmp.Diff([]string{"Normal DisruptionBlocked NodeClaim a: Nodeclaim does not have an associated node"}, eventMessages(memory.ReportKept([]events.Kept{k}, noon))); diff != "" {
			t.Error(diff)
		}
	})
}

// Each rule of disruption has a text, or is one that does not help to explain why a node is not
// consolidated.
func TestEachRuleHasText(t *testing.T) {
	silent := map[string]bool{
		"proposal-confirmed": true, "static-nodepool": true, "consolidate-after": true, "budget": true, "not-empty": true, "not-drifted": true, "not-expiring": true,
		"receives-pods": true, "lower-priority": true, "proposal-overturned": true,
		"healthy": true, "repair-breaker": true, // Lifecycle publishes the Events of the breaker itself.
	}
	readme, err := os.ReadFile("../../../disruption/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "| rule | a node stays because of |")
	table, _, _ = strings.Cut(table, "\n\n")
	var rules []string
	for row := range strings.SplitSeq(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(first, -1) {
			rules = append(rules, m[1])
		}
	}
	if len(rules) < 30 {
		t.Fatalf("the README lists the rules %q", rules)
	}
	for _, rule := range rules {
		var memory events.Publisher
		if got := len(memory.ReportKept([]events.Kept{kept("a", rule, "", "")}, noon)) > 0; got == silent[rule] {
			t.Errorf("%s: publishes an Event: %v", rule, got)
		}
	}
}

func TestLongDetailsAreTruncated(t *testing.T) {
	var memory events.Publisher
	event := memory.ReportKept([]events.Kept{kept("a", "balanced", "", strings.Repeat("é", 5000))}, noon)[0].(effect.Report).Event
	if len(event.Message) > 400 || !utf8.ValidString(event.Message) {
		t.Errorf("the message has %d bytes, valid UTF-8: %v", len(event.Message), utf8.ValidString(event.Message))
	}
}

// An Event about a node is not repeated sooner than Karpenter's recorder allows.
func TestKeptNodeEventsAreNotRepeatedSoon(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second events.Kept
		after         time.Duration
	}{
		{"blocked again", kept("a", "deleting", "", ""), kept("a", "deleting", "", ""), 5 * time.Minute},
		{"blocked for another reason", kept("a", "nominated", "", ""), kept("a", "do-not-disrupt", "", ""), 2 * time.Minute},
		{"unconsolidatable again", kept("a", "consolidation-disabled", "", ""), kept("a", "consolidation-disabled", "", ""), 15 * time.Minute},
		{"unconsolidatable for another reason", kept("a", "no-saving", "", ""), kept("a", "consolidation-disabled", "", ""), 15 * time.Minute},
		{"blocked after unconsolidatable", kept("a", "consolidation-disabled", "", ""), kept("a", "deleting", "", ""), 0},
		{"another node", kept("a", "consolidation-disabled", "", ""), kept("b", "consolidation-disabled", "", ""), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var memory events.Publisher
			memory.ReportKept([]events.Kept{c.first}, noon)
			if c.after > 0 {
				if got := eventMessages(memory.ReportKept([]events.Kept{c.second}, noon.Add(c.after-1))); len(got) != 0 {
					t.Errorf("published too early: %q", got)
				}
			}
			if got := eventMessages(memory.ReportKept([]events.Kept{c.second}, noon.Add(c.after))); len(got) != 2 {
				t.Errorf("published %q", got)
			}
		})
	}
}

// A report about many nodes publishes Events about some of them, the next report about others, and
// a forged report publishes no more.
func TestEventsAboutManyKeptNodes(t *testing.T) {
	var memory events.Publisher
	var report []events.Kept
	for i := range 4000 {
		report = append(report, kept(strconv.Itoa(i), "do-not-disrupt", "", ""))
	}
	about := map[string]int{}
	for round := range 5 {
		events := memory.ReportKept(report, noon.Add(time.Duration(round)*2*time.Minute))
		if len(events) > 2000 {
			t.Fatalf("published %d Events at once", len(events))
		}
		for _, e := range events {
			about[e.(effect.Report).Event.About.GetName()]++
		}
	}
	if len(about) != 8000 {
		t.Errorf("published Events about %d objects", len(about))
	}
	memory = events.Publisher{}
	var forged []events.Kept
	for i := range 2500 {
		forged = append(forged, kept("a", "balanced", "", fmt.Sprint("forged ", i)))
	}
	if got := eventMessages(memory.ReportKept(forged, noon)); len(got) != 2 {
		t.Errorf("a forged report published %d Events", len(got))
	}
}
