package disruption

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var web = event.Cluster{Name: "web", UID: "u"}

// harness runs the service with in-memory stores, and collects the published events.
type harness struct {
	Service
	blobs     *memblob.Store
	now       time.Time
	published []event.Envelope
}

func newHarness() *harness {
	b := &harness{now: start}
	clock := func() time.Time { return b.now }
	b.blobs = memblob.New(memblob.Options{Now: clock})
	b.Service = Service{Blobs: b.blobs, Bus: b, Cluster: web, Now: clock}
	return b
}

func (b *harness) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.published = append(b.published, e)
	}
	return nil
}

func (b *harness) putSnapshot(t *testing.T, kind string, doc any) event.Ref {
	t.Helper()
	ref, err := blob.Put(t.Context(), b.blobs, b.now, kind, doc)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// handleSnapshot stores a snapshot and makes the service handle it.
func (b *harness) handleSnapshot(t *testing.T, s planning.Snapshot) (event.Ref, error) {
	t.Helper()
	ref := b.putSnapshot(t, planning.SnapshotKind, s)
	return ref, b.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: s.TakenAt, Snapshot: ref}))
}

func envelope(t *testing.T, body event.Body) event.Envelope {
	t.Helper()
	e, err := event.Maker{Service: "watcher", Cluster: web}.New(start, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// proposal decodes a published proposal.
func proposal(t *testing.T, e event.Envelope) event.DisruptionProposed {
	t.Helper()
	body, err := event.DecodeBody[event.DisruptionProposed](e)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// oneEmptyNode returns a cluster with one empty node.
func oneEmptyNode() planning.Snapshot {
	pool := planningtest.NewNodePool()
	pool.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0)
	return planning.Snapshot{
		TakenAt: start, Cluster: "web", UID: "u", NodePools: []karpenter.NodePool{pool}, NodeClasses: []karpenter.EC2NodeClass{planningtest.NewNodeClass()},
		Nodes: []planning.Node{{
			Name: "node-a", Claim: "default-a", ClaimUID: "uid-a", NodePool: "default", Ready: true, Initialized: true,
			InitializedAt: start.Add(-time.Hour),
			Labels: map[string]string{
				"node.kubernetes.io/instance-type": "t4g.large", "topology.kubernetes.io/zone": "ap-northeast-2a", "karpenter.sh/capacity-type": "on-demand",
			},
		}},
	}
}

func TestTypesMatchContract(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "disruption"); got != want {
			t.Errorf("%s: in Types %v, routed to disruption %v", spec.Type, got, want)
		}
	}
}

// A node is proposed for one snapshot and confirmed for another, with the same ID.
func TestEmptyNodeIsProposedAndConfirmed(t *testing.T) {
	b := newHarness()
	s := oneEmptyNode()
	s.Catalogue = b.putSnapshot(t, catalog.Kind, planningtest.NewCatalogue())
	ref, err := b.handleSnapshot(t, s)
	if err != nil || len(b.published) != 1 {
		t.Fatalf("published %d (%v)", len(b.published), err)
	}
	first := proposal(t, b.published[0])
	want := event.DisruptionProposed{
		Proposal: first.Proposal, Phase: event.Proposed, Reason: "Empty", Method: "Emptiness", Claims: []string{"default-a"},
		SavedPerHr: 0.0832, Snapshot: ref, Decided: start,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Fatalf("proposal (-want +got):\n%s", diff)
	}
	// Lifecycle writes the proposal on the claim, and the next snapshots contain it.
	s.Nodes[0].Proposal = &planning.Proposal{ID: first.Proposal, Reason: first.Reason, ProposedAt: start.Add(time.Second)}
	for _, tt := range []struct {
		after time.Duration
		said  int
	}{{10 * time.Second, 1}, {20 * time.Second, 2}} {
		b.now = start.Add(tt.after)
		s.TakenAt = b.now
		if _, err := b.handleSnapshot(t, s); err != nil || len(b.published) != tt.said {
			t.Fatalf("after %s: published %d (%v): %s", tt.after, len(b.published), err, b.published[len(b.published)-1].Data)
		}
	}
	second := proposal(t, b.published[1])
	if second.Phase != event.Confirmed || second.Proposal != first.Proposal || b.published[0].ID == b.published[1].ID {
		t.Fatalf("published %+v", second)
	}
}

// addLoadedNode returns a cluster of two nodes that one smaller node replaces.
func (b *harness) addLoadedNode(t *testing.T) planning.Snapshot {
	t.Helper()
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.xlarge", with(2)), fixture.Node("b", "t4g.xlarge", with(1)))
	s.Cluster, s.UID, s.TakenAt = "web", "u", b.now
	for i := range s.Nodes {
		s.Nodes[i].InitializedAt = b.now.Add(-time.Hour)
	}
	s.Catalogue = b.putSnapshot(t, catalog.Kind, planningtest.NewCatalogue())
	return s
}

// carryProposal writes a proposal on all nodes, as lifecycle does on their claims.
func carryProposal(s planning.Snapshot, p event.DisruptionProposed, proposed time.Time) planning.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Proposal = &planning.Proposal{ID: p.Proposal, Reason: p.Reason, Method: p.Method, ProposedAt: proposed}
	}
	return s
}

// All events of a proposal are in one trace, which begins with a span for each of them and is linked to the
// trace of the snapshot. Without it the NodeClaims of replacements would have no trace.
func TestProposalIsOneTrace(t *testing.T) {
	b := newHarness()
	var spans []host.Span
	b.Span = func(s host.Span) { spans = append(spans, s) }
	s := oneEmptyNode()
	s.Catalogue = b.putSnapshot(t, catalog.Kind, planningtest.NewCatalogue())
	for i, want := range []event.Phase{event.Proposed, event.Confirmed} {
		b.now = start.Add(time.Duration(i) * planning.ConfirmAfter)
		s.TakenAt = b.now
		ref := b.putSnapshot(t, planning.SnapshotKind, s)
		from := envelope(t, event.ClusterSnapshot{Taken: s.TakenAt, Snapshot: ref})
		from.Traceparent = from.RootTraceparent()
		if err := b.Handle(t.Context(), from); err != nil || len(b.published) != i+1 || len(spans) != i+1 {
			t.Fatalf("published %d events and %d spans (%v)", len(b.published), len(spans), err)
		}
		fact, span := b.published[i], spans[i]
		body := proposal(t, fact)
		if trace, ok := event.TraceIDOf(fact.Traceparent); !ok || trace != body.Proposal || fact.Correlation != trace || fact.Causation != from.ID {
			t.Errorf("%s has the correlation %s and the trace %q, want %s", body.Phase, fact.Correlation, fact.Traceparent, body.Proposal)
		}
		if body.Phase != want || span.Name != "disruption "+string(want) || !span.IsRoot || span.Envelope.RootTraceparent() != fact.Traceparent || len(span.Envelope.Data) > 0 || !span.Start.Equal(s.TakenAt) {
			t.Errorf("%s has the span %+v", body.Phase, span)
		}
		if diff := cmp.Diff([]string{from.Traceparent}, span.Links); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
		s.Nodes[0].Proposal = &planning.Proposal{ID: body.Proposal, Reason: body.Reason, ProposedAt: start}
	}
}

// Replacements are planned at the confirmation, and the plan is stored before the event is
// published.
func TestReplacementIsProposedAndConfirmed(t *testing.T) {
	b := newHarness()
	s := b.addLoadedNode(t)
	if _, err := b.handleSnapshot(t, s); err != nil || len(b.published) != 1 {
		t.Fatalf("published %d (%v)", len(b.published), err)
	}
	first := proposal(t, b.published[0])
	if first.Phase != event.Proposed || first.Moved != 3 || !first.Plan.IsZero() || !slices.Equal(first.Claims, []string{"a", "b"}) ||
		first.Method != "MultiNodeConsolidation" || first.Reason != "Underutilized" || first.SavedPerHr <= 0 {
		t.Fatalf("proposed %+v", first)
	}
	plans := map[string]bool{}
	for _, after := range []time.Duration{20 * time.Second, 40 * time.Second} {
		s := carryProposal(s, first, start)
		s.Nodes[0].Proposal.ProposedAt = start.Add(-2 * time.Second)
		b.now = start.Add(after)
		s.TakenAt = b.now
		ref, err := b.handleSnapshot(t, s)
		if err != nil {
			t.Fatal(err)
		}
		second := proposal(t, b.published[len(b.published)-1])
		if second.Phase != event.Confirmed || second.Proposal != first.Proposal || second.Plan.Kind != planning.PlanKind || !second.ProposedAt.Equal(start) {
			t.Fatalf("confirmed %+v", second)
		}
		plan, err := blob.Get[planning.Plan](t.Context(), b.blobs, second.Plan)
		if err != nil || len(plan.Intents) != 1 || len(plan.Nominations) != 3 || plan.Batch != ref || plan.Outbox != "" {
			t.Fatalf("plan %+v (%v)", plan, err)
		}
		intent, err := blob.Get[launchspec.Intent](t.Context(), b.blobs, plan.Intents[0].Ref)
		if err != nil || intent.ID != plan.Intents[0].ID || len(intent.Claims) != 1 {
			t.Fatalf("intent %+v (%v)", intent, err)
		}
		plans[intent.ID] = true
	}
	if len(plans) != 2 {
		t.Fatal("a launch that may have failed is requested again with the same ID")
	}
}

// A proposal whose launch request cannot be encoded is dropped.
func TestUnwritableReplacementIsDropped(t *testing.T) {
	b := newHarness()
	s := b.addLoadedNode(t)
	if _, err := b.handleSnapshot(t, s); err != nil || len(b.published) != 1 {
		t.Fatalf("published %d (%v)", len(b.published), err)
	}
	s = carryProposal(s, proposal(t, b.published[0]), start)
	b.now = start.Add(20 * time.Second)
	s.TakenAt, s.NodeClasses[0].Spec.AMIFamily = b.now, new("Bottlerocket")
	s.NodeClasses[0].Spec.UserData = new("not TOML")
	if _, err := b.handleSnapshot(t, s); err != nil {
		t.Fatal(err)
	}
	if found := Evaluate(s, fixture.Stock(s), Options{}); len(found.Commands) != 1 || found.Commands[0].Since.IsZero() {
		t.Fatalf("the snapshot is invalid before the confirmation: %+v", found)
	}
	if last := proposal(t, b.published[len(b.published)-1]); last.Phase != event.Dropped || !last.Plan.IsZero() {
		t.Fatalf("published %+v", last)
	}
}

func TestStaleSnapshotProposesNothing(t *testing.T) {
	for _, off := range []time.Duration{maxSnapshotAge + 1, -maxSnapshotAge - 1} {
		b := newHarness()
		b.now = start.Add(off)
		if _, err := b.handleSnapshot(t, oneEmptyNode()); !fault.Is(err, fault.Stale) || len(b.published) > 0 {
			t.Errorf("%s old: published %d (%v)", off, len(b.published), err)
		}
	}
}

// TestIdleSnapshotIsNotEvaluatedAgain: an idle snapshot is not evaluated again for five minutes, unless it changes or its
// result changes with time.
func TestIdleSnapshotIsNotEvaluatedAgain(t *testing.T) {
	looked := func(b *harness, s planning.Snapshot, after time.Duration) bool {
		t.Helper()
		ref := b.putSnapshot(t, planning.SnapshotKind, s)
		b.now = start.Add(after)
		// A snapshot that is not evaluated is not read either.
		b.Blobs = memblob.New(memblob.Options{Now: func() time.Time { return b.now }})
		err := b.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: b.now, Snapshot: ref}))
		b.Blobs = b.blobs
		return err != nil
	}
	full := func() planning.Snapshot {
		s := oneEmptyNode()
		s.Nodes[0].DoNotDisrupt = true
		return s
	}
	moving := oneEmptyNode()
	moving.NodePools[0].Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(2 * time.Hour)
	for _, tt := range []struct {
		name     string
		s, other planning.Snapshot
		after    time.Duration
		want     bool
	}{
		{"unchanged after a minute", full(), full(), time.Minute, false},
		{"unchanged for less than maxIdleTime", full(), full(), maxIdleTime - 1, false},
		{"unchanged for maxIdleTime", full(), full(), maxIdleTime, true},
		{"the clock was set back", full(), full(), -1, true},
		{"another", full(), oneEmptyNode(), time.Minute, true},
		{"the first snapshot led to a command", oneEmptyNode(), oneEmptyNode(), time.Minute, true},
		{"the result changes with time", moving, moving, time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newHarness()
			b.LastIdle = &LastIdle{}
			if _, err := b.handleSnapshot(t, tt.s); err != nil {
				t.Fatal(err)
			}
			if got := looked(b, tt.other, tt.after); got != tt.want {
				t.Fatalf("evaluated again: %v", got)
			}
		})
	}
}

func TestSameSnapshotGivesSameEvents(t *testing.T) {
	b := newHarness()
	for range 2 {
		if _, err := b.handleSnapshot(t, oneEmptyNode()); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Minute)
	}
	if len(b.published) != 2 || b.published[0].ID != b.published[1].ID || string(b.published[0].Data) != string(b.published[1].Data) {
		t.Fatalf("published %+v", b.published)
	}
}

func TestSavedIsZeroWithoutPrices(t *testing.T) {
	for name, change := range map[string]func(*harness, *planning.Snapshot){
		"no catalogue": func(*harness, *planning.Snapshot) {},
		"unknown type": func(_ *harness, s *planning.Snapshot) {
			s.Nodes[0].Labels["node.kubernetes.io/instance-type"] = "x1.huge"
		},
		"unknown zone":  func(_ *harness, s *planning.Snapshot) { s.Nodes[0].Labels["topology.kubernetes.io/zone"] = "mars-1a" },
		"no label":      func(_ *harness, s *planning.Snapshot) { s.Nodes[0].Labels = nil },
		"reserved node": func(_ *harness, s *planning.Snapshot) { s.Nodes[0].Labels["karpenter.sh/capacity-type"] = "reserved" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness()
			s := oneEmptyNode()
			if name != "no catalogue" {
				s.Catalogue = b.putSnapshot(t, catalog.Kind, planningtest.NewCatalogue())
			}
			change(b, &s)
			if _, err := b.handleSnapshot(t, s); err != nil || len(b.published) != 1 {
				t.Fatalf("published %d (%v)", len(b.published), err)
			}
			if got := proposal(t, b.published[0]).SavedPerHr; got != 0 {
				t.Fatalf("saves %v, want 0", got)
			}
		})
	}
}

func TestMissingCatalogueIsRetried(t *testing.T) {
	b := newHarness()
	s := oneEmptyNode()
	s.Catalogue = event.Ref{Kind: catalog.Kind, Digest: event.DigestOf([]byte("gone")), Size: 4}
	if _, err := b.handleSnapshot(t, s); !fault.Is(err, fault.Retry) || len(b.published) > 0 {
		t.Fatalf("published %d (%v)", len(b.published), err)
	}
}

func TestUnreadableBudgetIsReported(t *testing.T) {
	b := newHarness()
	s := oneEmptyNode()
	s.NodePools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "lots"}}
	if _, err := b.handleSnapshot(t, s); err != nil || len(b.published) > 0 {
		t.Fatalf("published %d (%v)", len(b.published), err)
	}
}

func TestHandleRejects(t *testing.T) {
	b := newHarness()
	foreign := oneEmptyNode()
	foreign.UID = "another"
	if _, err := b.handleSnapshot(t, foreign); !fault.Is(err, fault.Poison) {
		t.Errorf("a snapshot of another cluster returned %v", err)
	}
	missing := event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf(nil), Size: 1}
	if err := b.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: start, Snapshot: missing})); !fault.Is(err, fault.Retry) {
		t.Errorf("a missing snapshot returned %v", err)
	}
	if err := b.Handle(t.Context(), envelope(t, event.InventoryWanted{Asked: start})); !fault.Is(err, fault.Poison) {
		t.Errorf("another event type returned %v", err)
	}
	if len(b.published) > 0 {
		t.Errorf("published %d events", len(b.published))
	}
}
