package disruption

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// annotated returns the quiet cluster with a node that its annotation protects.
func annotated() planning.Snapshot {
	s := oneEmptyNode()
	s.Nodes[0].DoNotDisrupt = true
	return s
}

// takeReports returns the published reports of kept nodes.
func (b *harness) takeReports(t *testing.T) (out []event.NodesKept) {
	t.Helper()
	for _, e := range b.published {
		if e.Type != event.NodesKeptType {
			continue
		}
		body, err := event.DecodeBody[event.NodesKept](e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

func TestKeptNodesAreReported(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*planning.Node, *karpenter.NodePool)
		want   []event.Kept
	}{
		{"annotation", func(n *planning.Node, _ *karpenter.NodePool) { n.DoNotDisrupt = true }, []event.Kept{
			{Rule: candidate.RuleDoNotDisrupt, Detail: "it has the annotation karpenter.sh/do-not-disrupt", Claims: []string{"default-a"}},
		}},
		{"budget of zero", func(_ *planning.Node, p *karpenter.NodePool) {
			p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}}
		}, []event.Kept{{
			Rule: RuleBudget, Subject: "Empty", Claims: []string{"default-a"},
			Detail: "the budgets of NodePool default allow no more disruption for the reason Empty: spec.disruption.budgets[0] (0): 0 of 1 nodes allowed, and 0 are being disrupted or not ready",
		}}},
		{"consolidateAfter has not passed", func(_ *planning.Node, p *karpenter.NodePool) {
			p.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(2 * time.Hour)
		}, nil},
		// Karpenter checks pods before consolidateAfter.
		{"a protected pod, pool without consolidation", func(n *planning.Node, p *karpenter.NodePool) {
			p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
			n.Pods = []planning.PodClass{fixture.Pods("web", 1, "100m", "100Mi")}
			n.Pods[0].Spec.DoNotDisrupt = "true"
		}, []event.Kept{{
			Rule: candidate.RulePodDoNotDisrupt, Subject: "default/web-0", Claims: []string{"default-a"},
			Detail: `pod default/web-0 has the annotation karpenter.sh/do-not-disrupt: "true"`,
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newHarness()
			b.ReportSchedule = &ReportSchedule{}
			s := oneEmptyNode()
			c.change(&s.Nodes[0], &s.NodePools[0])
			if _, err := b.handleSnapshot(t, s); err != nil {
				t.Fatal(err)
			}
			var got []event.Kept
			for _, r := range b.takeReports(t) {
				got = append(got, r.Kept...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Nodes are reported every two minutes, and retried at once if publishing failed.
func TestReportsAreFew(t *testing.T) {
	b := newHarness()
	b.ReportSchedule, b.LastIdle = &ReportSchedule{}, &LastIdle{}
	show := func() error {
		s := annotated()
		s.TakenAt = b.now
		_, err := b.handleSnapshot(t, s)
		return err
	}
	refusing := b.Service
	refusing.Bus = refuses{}
	ref := b.putSnapshot(t, planning.SnapshotKind, annotated())
	if err := refusing.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: b.now, Snapshot: ref})); !fault.Is(err, fault.Throttled) {
		t.Fatalf("a failed publication returned %v", err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {10 * time.Second, 1}, {109 * time.Second, 1}, {time.Second, 2}, {-3 * time.Minute, 3}} {
		b.now = b.now.Add(step.after)
		if err := show(); err != nil {
			t.Fatal(err)
		}
		if got := len(b.takeReports(t)); got != step.want {
			t.Errorf("at %s: %d reports, want %d", b.now, got, step.want)
		}
	}
}

// A change that came too early for a report is reported two minutes after the last one, even if
// nothing else changes. A reported snapshot is not evaluated again for five minutes.
func TestReportsEndIdleTime(t *testing.T) {
	b := newHarness()
	b.ReportSchedule, b.LastIdle = &ReportSchedule{}, &LastIdle{}
	initial, changed := annotated(), annotated()
	changed.Nodes[0].Name = "node-b"
	for _, step := range []struct {
		at   time.Duration
		s    planning.Snapshot
		want int
	}{
		{0, initial, 1}, {3 * time.Minute, initial, 1}, {5 * time.Minute, initial, 2},
		{6 * time.Minute, changed, 2}, {7*time.Minute - 1, changed, 2}, {7 * time.Minute, changed, 3}, {11 * time.Minute, changed, 3}, {12 * time.Minute, changed, 4},
	} {
		b.now = start.Add(step.at)
		ref := b.putSnapshot(t, planning.SnapshotKind, step.s)
		if err := b.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: b.now, Snapshot: ref})); err != nil {
			t.Fatal(err)
		}
		if got := len(b.takeReports(t)); got != step.want {
			t.Errorf("after %s: %d reports, want %d", step.at, got, step.want)
		}
	}
}

// A report never exceeds the size limit of its event type. Details are left out first.
func TestReportsAreBounded(t *testing.T) {
	spec, err := event.NodesKeptType.Spec()
	if err != nil {
		t.Fatal(err)
	}
	hostile := strings.Repeat("<\x00é", 200)
	for _, c := range []struct {
		nodes            int
		name, detail     string
		unreported, size int
		details          bool
	}{
		{1000, "default-%05d", "", 0, 17 << 10, true},
		{1000, "default-%05d", "pod shop/web-%05d has no other place: no instance type of NodePool default has enough memory", 0, 184 << 10, true},
		{5000, "default-of-a-long-name-%05d", "pod shop/web-%05d has no other place", 0, 192 << 10, true},
		{20000, "default-of-a-long-name-%05d", "pod shop/web-%05d has no other place", 13_000, 192 << 10, false},
		{2000, "default-%05d", hostile + "%d", 0, 192 << 10, true},
	} {
		t.Run(fmt.Sprint(c.nodes, " ", c.detail[:min(len(c.detail), 8)]), func(t *testing.T) {
			s := planning.Snapshot{Nodes: make([]planning.Node, c.nodes)}
			kept := make([]Kept, c.nodes)
			for i := range kept {
				s.Nodes[i].Claim = fmt.Sprintf(c.name, i)
				no := candidate.Objection{Rule: consolidation.RuleUnplaceable}
				if c.detail != "" {
					no.Detail = fmt.Sprintf(c.detail, i)
				}
				kept[i] = Kept{Index: i, reason: no}
			}
			report, unreported := groupKept(&s, kept)
			data, err := json.Marshal(event.NodesKept{Kept: report, Snapshot: event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf(nil), Size: 1}, Decided: start})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d nodes: %d bytes", c.nodes, len(data))
			if len(data) > min(spec.MaxData, c.size) {
				t.Errorf("%d bytes, want at most %d", len(data), min(spec.MaxData, c.size))
			}
			claims := 0
			for _, k := range report {
				claims += len(k.Claims)
			}
			if claims+unreported != c.nodes || unreported < c.unreported || c.unreported == 0 && unreported > 0 {
				t.Errorf("%d nodes are reported, and %d are not", claims, unreported)
			}
			if got := len(report) > 1 || report[0].Detail != ""; got != c.details && c.detail != "" {
				t.Errorf("got details %v", got)
			}
		})
	}
}

// refuses is a bus that rejects every message.
type refuses struct{}

func (refuses) Send(context.Context, ...queue.Outgoing) error {
	return fault.F("publishing", fault.Throttled, "no")
}
