package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// snapshotMaxAge is how long the watcher resends the reference to a stored snapshot without storing
// the snapshot again. The bucket keeps it for longer.
const snapshotMaxAge = time.Hour

// sentSnapshot identifies a snapshot that was sent and its inputs.
type sentSnapshot struct {
	ref         event.Ref
	at          time.Time
	revision    uint64
	catalogue   event.Ref
	unavailable []planning.Unavailable
}

// sendSnapshot sends the state of the cluster to disruption if that is due and the cluster has a
// node of Joist's. While nothing has changed, it resends the reference to the last snapshot,
// because storing a large cluster takes a second.
func (s *Service) sendSnapshot(ctx context.Context, view collect.View) error {
	if !hasManagedNode(view.Snapshot.Nodes) {
		return nil
	}
	return s.sendEvery("snapshot", snapshotInterval, func() error {
		again, err := s.storeSnapshot(ctx, view)
		if err != nil {
			return err
		}
		body := event.ClusterSnapshot{Taken: view.Snapshot.TakenAt, Snapshot: s.lastSnapshot.ref, Again: again}
		if err := s.sendMessage(ctx, s.Disruption, body); err != nil {
			return fmt.Errorf("sending a snapshot: %w", err)
		}
		return nil
	})
}

// hasManagedNode reports whether a node with a NodeClaim is initialized. It does not copy nodes,
// which are large.
func hasManagedNode(nodes []planning.Node) bool {
	for i := range nodes {
		if nodes[i].Claim != "" && nodes[i].Initialized {
			return true
		}
	}
	return false
}

// storeSnapshot stores the snapshot. If the last one is still current, it stores nothing and
// returns true.
func (s *Service) storeSnapshot(ctx context.Context, view collect.View) (again bool, err error) {
	now := s.Now()
	next := sentSnapshot{revision: s.state.Revision(), catalogue: view.Snapshot.Catalogue, unavailable: view.Snapshot.Unavailable}
	if !s.lastSnapshot.ref.IsZero() && now.Sub(s.lastSnapshot.at) < snapshotMaxAge && next.equals(s.lastSnapshot) {
		return true, nil
	}
	snapshot := s.state.DisruptionSnapshot(view, s.Repair)
	ref, err := s.putSnapshot(ctx, snapshot)
	if errors.Is(err, blob.ErrTooLarge) && s.snapshotParts.ShrinkDocuments() {
		ref, err = s.putSnapshot(ctx, snapshot)
	}
	if err != nil {
		return false, err
	}
	// Services receive the reference in messages. Only users and the CLI read the pointer.
	if err := blob.SetLatest(ctx, s.Blobs, ref); err != nil {
		return false, err
	}
	next.ref, next.at = ref, now
	s.lastSnapshot = next
	return false, nil
}

// putSnapshot stores the parts of a snapshot and then the snapshot.
func (s *Service) putSnapshot(ctx context.Context, snapshot planning.Snapshot) (ref event.Ref, err error) {
	if snapshot.Nodes, snapshot.NodeParts, err = s.snapshotParts.Store(ctx, s.Blobs, s.Now(), snapshot.Nodes); err != nil {
		return ref, err
	}
	return blob.PutNew(ctx, s.Blobs, planning.SnapshotKind, snapshot)
}

func (s sentSnapshot) equals(other sentSnapshot) bool {
	return s.revision == other.revision && s.catalogue == other.catalogue && slices.Equal(s.unavailable, other.unavailable)
}
