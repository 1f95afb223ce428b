// Package disruption decides which nodes to remove or replace. It reads snapshots of the cluster
// and publishes proposals; lifecycle carries them out.
//
// Evaluate makes the whole decision: from a snapshot it returns commands, and for every other node
// the reason why it is kept. The first time a command is found it becomes a proposal. When a later
// snapshot finds the same command again, the proposal is confirmed and carried out. So the only
// state between two snapshots is the proposal that lifecycle writes on the claims.
//
// The invariants:
//   - A snapshot, including its time, is the only input of a decision: the same snapshot twice gives
//     the same events with the same IDs.
//   - A proposal is confirmed only if an earlier snapshot proposed it and it is still valid at least
//     planning.ConfirmAfter later.
//   - The commands of one snapshot share no node, and together they respect every budget. Each one
//     takes the earlier ones into account, and no pod is moved onto a node that is being removed.
//   - Consolidation saves money with any of the options that EC2 may launch.
//   - Invalid settings forbid disruption: a budget that cannot be parsed stops disruption of its
//     NodePool, but not of others.
package disruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the messages that disruption consumes.
var Types = []event.Type{event.ClusterSnapshotType}

// maxSnapshotAge is how old a snapshot may be, and how far ahead of this service's clock. An older
// one describes a cluster that has changed; and if clocks differ that much, the schedules of
// budgets cannot be trusted.
const maxSnapshotAge = 2 * time.Minute

// Service has the dependencies of disruption.
type Service struct {
	Blobs blob.Store
	// Catalogues caches the catalogue; nil reads it for each snapshot.
	Catalogues *blob.DocumentCache[catalog.Catalogue]
	// Parts caches the parts of the last snapshot; nil reads them for each snapshot.
	Parts *blob.PartCache
	// LastIdle caches the last snapshot that needed no action; nil evaluates each snapshot.
	LastIdle *LastIdle
	// ReportSchedule records when the kept nodes were last reported; nil disables reports.
	ReportSchedule *ReportSchedule
	Bus            queue.Sender
	Cluster        event.Cluster
	Now            func() time.Time
	Options        Options
	Metrics        metric.Recorder
	// Span records a trace span; nil disables traces. Samples is that of event.Maker.
	Span    func(host.Span)
	Samples func(traceID string) bool
}

// Handle evaluates one snapshot and publishes the decisions.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	if e.Type != event.ClusterSnapshotType {
		return fault.F("handling "+string(e.Type), fault.Poison, "disruption does not handle this event type")
	}
	body, err := event.DecodeBody[event.ClusterSnapshot](e)
	if err != nil {
		return err
	}
	if age := s.Now().Sub(body.Taken); age > maxSnapshotAge || age < -maxSnapshotAge {
		return fault.F("reading the snapshot", fault.Stale, "the snapshot was taken %s ago; the limit is %s", age, maxSnapshotAge)
	}
	if s.LastIdle.isUnchanged(body) {
		host.AddLogFields(ctx, "unchanged", true)
		return nil
	}
	snapshot, cat, err := s.readSnapshot(ctx, body)
	if err != nil {
		return err
	}
	found := s.evaluateTimed(snapshot, instancetypes.New(snapshot, cat))
	decisions := decidePhases(&snapshot, found.Commands)
	s.countFindings(found.Metrics)
	host.AddLogFields(ctx, "nodes", len(snapshot.Nodes), "commands", len(found.Commands), "decisions", len(decisions))
	if err := errors.Join(found.Problems...); err != nil {
		host.AddLogFields(ctx, "problems", err.Error())
	}
	from := decisionInputs{body.Snapshot, snapshot, cat}
	if err := s.publishDecisions(ctx, e, from, decisions); err != nil {
		return err
	}
	if err := s.reportKept(ctx, e, from, found.Kept); err != nil {
		return err
	}
	found.expectChange(s.ReportSchedule.nextReport(body.Taken))
	s.LastIdle.recordIdle(body, found, decisions)
	return nil
}

// readSnapshot fetches the snapshot and its catalogue.
func (s Service) readSnapshot(ctx context.Context, body event.ClusterSnapshot) (planning.Snapshot, catalog.Catalogue, error) {
	snapshot, err := blob.GetCached[planning.Snapshot](ctx, s.Blobs, body.Snapshot, s.Parts)
	if err != nil {
		return snapshot, catalog.Catalogue{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	if owner := (event.Cluster{Name: snapshot.Cluster, UID: snapshot.UID}); !s.Cluster.Matches(owner) {
		return snapshot, catalog.Catalogue{}, fault.F("reading the snapshot", fault.Poison, "the snapshot belongs to cluster %q (%s), and this service serves %q (%s)",
			owner.Name, owner.UID, s.Cluster.Name, s.Cluster.UID)
	}
	// While a cluster does not change, its messages refer to the same document with new times.
	snapshot.TakenAt = body.Taken
	// Without a catalogue prices are unknown: only empty nodes can be removed.
	if len(snapshot.Nodes) == 0 || snapshot.Catalogue.IsZero() {
		return snapshot, catalog.Catalogue{}, nil
	}
	cat, err := s.Catalogues.Get(ctx, s.Blobs, snapshot.Catalogue)
	if err != nil {
		return snapshot, cat, fmt.Errorf("reading the catalogue: %w", err)
	}
	if err := cat.Validate(); err != nil {
		return snapshot, cat, fault.E("checking "+snapshot.Catalogue.Key(), fault.Poison, err)
	}
	return snapshot, cat, nil
}
