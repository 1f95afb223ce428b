package disruption

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/memblob"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/scheduling"
	"github.com/joist-autoscaler/joist/shared/scheduling/schedulingtest"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var web = event.Cluster{Name: "web", UID: "u"}

// bench is the service over models, and what it said.
type bench struct {
	Service
	blobs *memblob.Store
	now   time.Time
	said  []event.Envelope
}

func newBench() *bench {
	b := &bench{now: start}
	clock := func() time.Time { return b.now }
	b.blobs = memblob.New(memblob.Options{Now: clock})
	b.Service = Service{Blobs: b.blobs, Bus: b, Cluster: web, Now: clock}
	return b
}

func (b *bench) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.said = append(b.said, e)
	}
	return nil
}

func (b *bench) put(t *testing.T, kind string, doc any) event.Ref {
	t.Helper()
	ref, err := blob.Put(t.Context(), b.blobs, b.now, kind, doc)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// show hands the service a snapshot.
func (b *bench) show(t *testing.T, s scheduling.Snapshot) (event.Ref, error) {
	t.Helper()
	ref := b.put(t, scheduling.SnapshotKind, s)
	return ref, b.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: s.Taken, Snapshot: ref}))
}

func envelope(t *testing.T, body event.Body) event.Envelope {
	t.Helper()
	e, err := event.Maker{Service: "watcher", Cluster: web}.New(start, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// proposal reads what was said.
func proposal(t *testing.T, e event.Envelope) event.DisruptionProposed {
	t.Helper()
	body, err := event.As[event.DisruptionProposed](e)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// quiet is a cluster with one empty node.
func quiet() scheduling.Snapshot {
	pool := schedulingtest.NodePool()
	pool.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0)
	return scheduling.Snapshot{
		Taken: start, Cluster: "web", UID: "u", NodePools: []karpenter.NodePool{pool}, NodeClasses: []karpenter.EC2NodeClass{schedulingtest.NodeClass()},
		Nodes: []scheduling.Node{{
			Name: "node-a", Claim: "default-a", ClaimUID: "uid-a", NodePool: "default", Ready: true, Initialized: true,
			InitializedAt: start.Add(-time.Hour),
			Labels: map[string]string{
				"node.kubernetes.io/instance-type": "t4g.large", "topology.kubernetes.io/zone": "ap-northeast-2a", "karpenter.sh/capacity-type": "on-demand",
			},
		}},
	}
}

func TestTypesAreWhatTheContractRoutesHere(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "disruption"); got != want {
			t.Errorf("%s: listed %v, routed %v", spec.Type, got, want)
		}
	}
}

// A node is proposed in one snapshot and confirmed in another, under one id.
func TestStoryOfAnEmptyNode(t *testing.T) {
	b := newBench()
	s := quiet()
	s.Catalogue = b.put(t, catalog.Kind, schedulingtest.Catalogue())
	ref, err := b.show(t, s)
	if err != nil || len(b.said) != 1 {
		t.Fatalf("said %d (%v)", len(b.said), err)
	}
	first := proposal(t, b.said[0])
	want := event.DisruptionProposed{
		Proposal: first.Proposal, Phase: event.Proposed, Reason: "Empty", Method: "Emptiness", Claims: []string{"default-a"},
		SavedPerHr: 0.0832, Snapshot: ref, Decided: start,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Fatalf("proposal (-want +got):\n%s", diff)
	}
	// Lifecycle writes it on the claim, and the next snapshots carry it.
	s.Nodes[0].Proposal = &scheduling.Proposal{ID: first.Proposal, Reason: first.Reason, Proposed: start.Add(time.Second)}
	for _, tt := range []struct {
		after time.Duration
		said  int
	}{{10 * time.Second, 1}, {20 * time.Second, 2}} {
		b.now = start.Add(tt.after)
		s.Taken = b.now
		if _, err := b.show(t, s); err != nil || len(b.said) != tt.said {
			t.Fatalf("after %s: said %d (%v): %s", tt.after, len(b.said), err, b.said[len(b.said)-1].Data)
		}
	}
	second := proposal(t, b.said[1])
	if second.Phase != event.Confirmed || second.Proposal != first.Proposal || b.said[0].ID == b.said[1].ID {
		t.Fatalf("said %+v", second)
	}
}

func TestSameSnapshotSameFacts(t *testing.T) {
	b := newBench()
	for range 2 {
		if _, err := b.show(t, quiet()); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(time.Minute)
	}
	if len(b.said) != 2 || b.said[0].ID != b.said[1].ID || string(b.said[0].Data) != string(b.said[1].Data) {
		t.Fatalf("said %+v", b.said)
	}
}

func TestSavedIsZeroWhereNothingIsKnown(t *testing.T) {
	for name, change := range map[string]func(*bench, *scheduling.Snapshot){
		"no catalogue": func(*bench, *scheduling.Snapshot) {},
		"unknown type": func(_ *bench, s *scheduling.Snapshot) {
			s.Nodes[0].Labels["node.kubernetes.io/instance-type"] = "x1.huge"
		},
		"unknown zone":  func(_ *bench, s *scheduling.Snapshot) { s.Nodes[0].Labels["topology.kubernetes.io/zone"] = "mars-1a" },
		"no label":      func(_ *bench, s *scheduling.Snapshot) { s.Nodes[0].Labels = nil },
		"reserved node": func(_ *bench, s *scheduling.Snapshot) { s.Nodes[0].Labels["karpenter.sh/capacity-type"] = "reserved" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			s := quiet()
			if name != "no catalogue" {
				s.Catalogue = b.put(t, catalog.Kind, schedulingtest.Catalogue())
			}
			change(b, &s)
			if _, err := b.show(t, s); err != nil || len(b.said) != 1 {
				t.Fatalf("said %d (%v)", len(b.said), err)
			}
			if got := proposal(t, b.said[0]).SavedPerHr; got != 0 {
				t.Fatalf("saves %v", got)
			}
		})
	}
}

func TestACatalogueThatIsMissingIsTriedAgain(t *testing.T) {
	b := newBench()
	s := quiet()
	s.Catalogue = event.Ref{Kind: catalog.Kind, Digest: event.DigestOf([]byte("gone")), Size: 4}
	if _, err := b.show(t, s); !fault.Is(err, fault.Retry) || len(b.said) > 0 {
		t.Fatalf("said %d (%v)", len(b.said), err)
	}
}

func TestABudgetThatCannotBeReadIsNoError(t *testing.T) {
	b := newBench()
	s := quiet()
	s.NodePools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "lots"}}
	if _, err := b.show(t, s); err != nil || len(b.said) > 0 {
		t.Fatalf("said %d (%v)", len(b.said), err)
	}
}

func TestHandleRefuses(t *testing.T) {
	b := newBench()
	foreign := quiet()
	foreign.UID = "another"
	if _, err := b.show(t, foreign); !fault.Is(err, fault.Poison) {
		t.Errorf("a snapshot of another cluster: got %v", err)
	}
	missing := event.Ref{Kind: scheduling.SnapshotKind, Digest: event.DigestOf(nil), Size: 1}
	if err := b.Handle(t.Context(), envelope(t, event.ClusterSnapshot{Taken: start, Snapshot: missing})); !fault.Is(err, fault.Retry) {
		t.Errorf("a snapshot that is missing: got %v", err)
	}
	if err := b.Handle(t.Context(), envelope(t, event.InventoryWanted{Asked: start})); !fault.Is(err, fault.Poison) {
		t.Errorf("another type: got %v", err)
	}
	if len(b.said) > 0 {
		t.Errorf("it said %d facts", len(b.said))
	}
}
