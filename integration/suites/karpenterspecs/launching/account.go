package launching

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Execute passes a command of lifecycle to the launcher.
func (s *FakeLauncher) Execute(ctx context.Context, e event.Envelope) error {
	service := launcher.Service{
		EC2: s.cloud, Blobs: memblob.New(memblob.Options{Now: time.Now}), Bus: &recordingBus{}, Cluster: e.SourceCluster(), Now: time.Now, Cache: s.cache,
	}
	return service.Handle(ctx, e)
}

// ListInstances returns an inventory of the cluster's instances, which begins at the time.
func (s *FakeLauncher) ListInstances(ctx context.Context, of event.Cluster, at time.Time) (event.Inventory, error) {
	return makeInventory(ctx, s.cloud, of, at)
}
