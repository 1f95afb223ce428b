package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/live/livetest"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// messages records the messages of a service.
type messages struct {
	t    *testing.T
	sent []event.Envelope
}

func (m *messages) Send(_ context.Context, all ...queue.Outgoing) error {
	for _, one := range all {
		e, err := event.Decode(one.Body)
		if err != nil {
			m.t.Fatal(err)
		}
		m.sent = append(m.sent, e)
	}
	return nil
}

// servicesTest are Joist's services in the cluster that the CLI reads.
type servicesTest struct {
	t        *testing.T
	blobs    *memblob.Store
	batch    event.Ref
	snapshot event.Ref
	plan     event.Ref
	takenAt  time.Time
}

// runServices runs the watcher and the planner on the cluster until they have stored a batch, a
// snapshot and a plan.
func runServices(t *testing.T, server *livetest.ListedServer, start time.Time, prices catalog.Catalogue) servicesTest {
	t.Helper()
	now := start
	clock := func() time.Time { return now }
	out := servicesTest{t: t, blobs: memblob.New(memblob.Options{Now: clock})}
	ref, err := blob.Put(t.Context(), out.blobs, now, catalog.Kind, prices)
	if err == nil {
		err = blob.SetLatest(t.Context(), out.blobs, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := settings.Read(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	toPlanner, toDisruption, toCatalog, bus := &messages{t: t}, &messages{t: t}, &messages{t: t}, &messages{t: t}
	identity := event.Cluster{Name: "shop-prod", UID: "6c1f2c9e-7e0f-4b52-9d6f-3d1c0f4f7a11"}
	cache := server.NewCache(memcluster.CacheOptions{Trim: watcher.Trims(false)})
	service := watcher.New(watcher.Config{
		Client: server.ClientFor("watcher"), Cache: cache, Blobs: out.blobs, Planner: toPlanner, Disruption: toDisruption, Catalog: toCatalog,
		Cluster: identity, Namespace: "kube-system", KarpenterNamespace: "kube-system", Holder: "watcher-1", Settings: config.Scheduling, Now: clock,
	})
	for len(toPlanner.sent) == 0 || len(toDisruption.sent) == 0 {
		if now.Sub(start) > time.Minute {
			t.Fatal("the watcher sent no batch or no snapshot within a minute")
		}
		cache.DeliverAll()
		if err := service.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(watcher.StepInterval)
	}
	asked, err := event.DecodeBody[event.PodsUnschedulable](toPlanner.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	taken, err := event.DecodeBody[event.ClusterSnapshot](toDisruption.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := (planner.Service{Blobs: out.blobs, Bus: bus, Now: clock, Cluster: identity}).Handle(t.Context(), toPlanner.sent[0]); err != nil {
		t.Fatal(err)
	}
	made, err := event.DecodeBody[event.PlanMade](bus.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	out.batch, out.snapshot, out.plan, out.takenAt = asked.Batch, taken.Snapshot, made.Plan, taken.Taken
	return out
}

// readStored reads a stored document.
func readStored[T any](s servicesTest, ref event.Ref) T {
	s.t.Helper()
	out, err := blob.Get[T](s.t.Context(), s.blobs, ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// TestLiveEqualsServices: from the same objects the CLI makes the documents, byte for byte, and the
// plan and commands that the services make.
func TestLiveEqualsServices(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	server := livetest.New(t, "testdata/live/cluster.yaml", start)
	prices, err := catalog.EmbeddedCatalogue("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	prices.Cluster = simulate.PlaceholderFacts("shop-prod")
	services := runServices(t, server, start, prices)
	batch := readStored[planning.Batch](services, services.batch)

	read := func(at time.Time) clusterReading {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetErr(&bytes.Buffer{})
		flags := liveFlags{offlinePrices: true, timeout: time.Minute}
		out, err := flags.readCluster(cmd, Env{Now: func() time.Time { return at }, Live: func(string, string) (LiveCluster, error) {
			return LiveCluster{PageReader: server}, nil
		}}, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	planned := read(batch.Snapshot.TakenAt)
	planned.batch.Outbox, planned.batch.Seq = batch.Outbox, batch.Seq
	if ref, _, err := blob.Encode(planning.BatchKind, planned.batch); err != nil || ref != services.batch {
		t.Errorf("the batch differs (%v): %s", err, cmp.Diff(batch, planned.batch))
	}
	planned.ref = services.batch
	answer, err := planned.plan()
	if err != nil {
		t.Fatal(err)
	}
	if ref, _, err := blob.Encode(planning.PlanKind, answer.Built.Plan); err != nil || ref != services.plan {
		t.Errorf("the plan is %s, and the planner stored %s (%v)", ref.Key(), services.plan.Key(), err)
	}
	if shown := report.NewPlan(answer, nil); len(shown.Nodes) != 1 || len(answer.Built.Intents) != 1 {
		t.Errorf("the plan has the nodes %+v", shown.Nodes)
	}

	observed := read(services.takenAt)
	if ref, _, err := blob.Encode(planning.SnapshotKind, observed.snapshot); err != nil || ref != services.snapshot {
		t.Errorf("the snapshot differs (%v): %s", err, cmp.Diff(readStored[planning.Snapshot](services, services.snapshot), observed.snapshot))
	}
	stored := readStored[planning.Snapshot](services, services.snapshot)
	want := disruption.Evaluate(stored, instancetypes.New(stored, prices), disruption.Options{})
	source := observed.source()
	got := disruption.Evaluate(source.Snapshot, source.Stock(source.Snapshot), disruption.Options{})
	if len(got.Commands) == 0 || len(got.Kept) == 0 {
		t.Error("the test has no command or no kept node")
	}
	if g, w := asJSON(t, got.Commands), asJSON(t, want.Commands); g != w {
		t.Errorf("the commands are %s, and disruption's %s", g, w)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
