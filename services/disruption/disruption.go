// Package disruption thinks about what to remove or replace. It reads snapshots,
// proposes, and touches nothing.
//
// The idea: Evaluate is the whole decision, from a snapshot to commands and to the
// reasons why other nodes stay. A proposal is a command that was found once; it acts
// when the same command is found again later. So nothing has to be kept between
// two snapshots but what lifecycle writes on the claims.
//
// The invariants:
//
//   - A snapshot is the only input of a decision, its time included: the same
//     snapshot twice gives the same facts with the same ids.
//   - Nothing is confirmed that was not proposed in an earlier snapshot, and
//     found right again at least planning.ConfirmAfter later.
//   - The commands of one snapshot share no node, and keep every budget together.
//     Each counts on those before it, and no pod is moved onto what goes.
//   - Consolidation saves, however its launches fall out.
//   - What cannot be understood forbids: a budget that cannot be read stops its
//     pool, and no other.
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
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the messages that disruption takes.
var Types = []event.Type{event.ClusterSnapshotType}

// maxSnapshotAge is how old a snapshot may be, and how far ahead of our clock. What
// is older tells of a cluster that is not there any more; and where clocks differ so
// much, schedules of budgets cannot be trusted.
const maxSnapshotAge = 2 * time.Minute

// Service is disruption over its ports.
type Service struct {
	Blobs blob.Store
	// Catalogues remembers the catalogue, which changes far less often than it is asked
	// for; nil reads it for each snapshot.
	Catalogues *blob.Kept[catalog.Catalogue]
	// LastIdle remembers the last snapshot in which there was nothing to do; nil evaluates
	// each.
	LastIdle *LastIdle
	// ReportSchedule remembers when nodes that stay were last reported; nil reports none.
	ReportSchedule *ReportSchedule
	Bus            queue.Sender
	Cluster        event.Cluster
	Now            func() time.Time
	Options        Options
	// Count hears of what happens that somebody may watch; nil counts nothing.
	Count func(what Counted, value float64, labels ...string)
}

// Handle thinks about one snapshot.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	if e.Type != event.ClusterSnapshotType {
		return fault.F("handling "+string(e.Type), fault.Poison, "disruption does not know the type")
	}
	body, err := event.As[event.ClusterSnapshot](e)
	if err != nil {
		return err
	}
	if age := s.Now().Sub(body.Taken); age > maxSnapshotAge || age < -maxSnapshotAge {
		return fault.F("reading the snapshot", fault.Stale, "it was taken %s ago, and nothing is proposed beyond %s", age, maxSnapshotAge)
	}
	if s.LastIdle.isUnchanged(body) {
		host.Say(ctx, "rest", true)
		return nil
	}
	snapshot, cat, err := s.readSnapshot(ctx, body)
	if err != nil {
		return err
	}
	found := s.evaluateTimed(snapshot, instancetypes.NewStock(snapshot, cat))
	decisions := decidePhases(&snapshot, found.Commands)
	s.countFindings(found.Metrics)
	host.Say(ctx, "nodes", len(snapshot.Nodes), "commands", len(found.Commands), "decisions", len(decisions))
	if err := errors.Join(found.Problems...); err != nil {
		host.Say(ctx, "problems", err.Error())
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

// readSnapshot fetches the snapshot, and the catalogue that it names.
func (s Service) readSnapshot(ctx context.Context, body event.ClusterSnapshot) (planning.Snapshot, catalog.Catalogue, error) {
	snapshot, err := blob.Get[planning.Snapshot](ctx, s.Blobs, body.Snapshot)
	if err != nil {
		return snapshot, catalog.Catalogue{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	if whose := (event.Cluster{Name: snapshot.Cluster, UID: snapshot.UID}); !s.Cluster.Agrees(whose) {
		return snapshot, catalog.Catalogue{}, fault.F("reading the snapshot", fault.Poison, "it is of cluster %q (%s), and this service serves %q (%s)",
			whose.Name, whose.UID, s.Cluster.Name, s.Cluster.UID)
	}
	// A cluster in which nothing changes is told of by the same document again.
	snapshot.Taken = body.Taken
	// Without a catalogue no price is known: empty nodes may go, and nothing else saves.
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
