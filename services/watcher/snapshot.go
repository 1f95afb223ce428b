package watcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// shownFor is how long a snapshot's document is sent again without a look whether
// it is there still.
const shownFor = time.Hour

// shown is a snapshot that was sent, and what it showed: the cluster as of a turn
// of the state, and what is beside it.
type shown struct {
	ref         event.Ref
	at          time.Time
	turn        uint64
	catalogue   event.Ref
	unavailable []scheduling.Unavailable
}

// snapshot sends the state of the cluster to disruption. What was sent before is
// sent again while it holds: writing out a large cluster costs a second.
func (s *Service) snapshot(ctx context.Context, view collect.View) error {
	if !managed(view.Snapshot.Nodes) {
		return nil
	}
	return s.ask("snapshot", snapshotEvery, func() error {
		again, err := s.show(ctx, view)
		if err != nil {
			return err
		}
		body := event.ClusterSnapshot{Taken: view.Snapshot.Taken, Snapshot: s.shown.ref, Again: again}
		if err := s.send(ctx, s.Disruption, body); err != nil {
			return fmt.Errorf("sending a snapshot: %w", err)
		}
		return nil
	})
}

// managed reports whether some node is Joist's and joined. A node is large: it is
// looked at where it is.
func managed(nodes []scheduling.Node) bool {
	for i := range nodes {
		if nodes[i].Claim != "" && nodes[i].Initialized {
			return true
		}
	}
	return false
}

// show stores the snapshot, unless the one that is stored shows the same: again.
func (s *Service) show(ctx context.Context, view collect.View) (again bool, err error) {
	now := s.Now()
	next := shown{turn: s.state.Turn(), catalogue: view.Snapshot.Catalogue, unavailable: view.Snapshot.Unavailable}
	if !s.shown.ref.IsZero() && now.Sub(s.shown.at) < shownFor && next.same(s.shown) {
		return true, nil
	}
	ref, err := blob.Put(ctx, s.Blobs, now, scheduling.SnapshotKind, s.state.Guarded(view))
	if err != nil {
		return false, err
	}
	// Services are told which it is; whoever asks by hand finds the latest.
	if err := blob.Point(ctx, s.Blobs, ref); err != nil {
		return false, err
	}
	next.ref, next.at = ref, now
	s.shown = next
	return false, nil
}

func (s shown) same(other shown) bool {
	return s.turn == other.turn && s.catalogue == other.catalogue && slices.Equal(s.unavailable, other.unavailable)
}
