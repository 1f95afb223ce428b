package watcher

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// How old what is read beside the cache may be.
const (
	// outboxMaxAge reads the outbox although its watch tells nothing: a watch that
	// hangs would stop every batch.
	outboxMaxAge = 15 * time.Second
	// catalogueMaxAge looks whether there is another catalogue, and catalogueSoon
	// while pods wait: one that nothing suits may find a place in the next.
	catalogueMaxAge        = 15 * time.Second
	catalogueMaxAgePending = 5 * time.Second
)

// readOutbox is the outbox as it was last read, for as long as the cache shows that
// same version. An old one does no harm: swapping it is a conflict, and what is
// sent for it again has the id that it had.
func (s *Service) readOutbox(ctx context.Context) (outbox.Held, error) {
	now := s.Now()
	if s.cachedOutbox.Is(s.cachedConfigMap(outbox.Name)) && now.Sub(s.cachedOutboxAt) < outboxMaxAge {
		return s.cachedOutbox, nil
	}
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		s.cachedOutbox = outbox.Held{}
		return held, err
	}
	s.cachedOutbox, s.cachedOutboxAt = held, now
	return held, nil
}

// collectView collects what decisions look at, from the cache and from the two
// small things beside it.
func (s *Service) collectView(ctx context.Context) (collect.View, error) {
	if err := s.refreshCatalogue(ctx); err != nil {
		return collect.View{}, err
	}
	view := s.state.View(collect.Inputs{
		Cluster: s.Cluster, Catalogue: s.catalogue, Settings: s.Settings, Now: s.Now().UTC(),
		Unavailable: scheduling.Current(scheduling.ReadUnavailable(s.cachedConfigMap(scheduling.UnavailableName)), s.Now()),
	})
	s.hasPendingPods = len(view.Pending) > 0
	s.countPods(view)
	return view, nil
}

// refreshCatalogue reads which catalogue is the latest, now and then. While there is
// none it always looks, because nothing can be planned before there is.
func (s *Service) refreshCatalogue(ctx context.Context) error {
	now, every := s.Now(), catalogueMaxAge
	if s.hasPendingPods {
		every = catalogueMaxAgePending
	}
	if !s.catalogue.IsZero() && now.Sub(s.catalogueReadAt) < every {
		return nil
	}
	ref, err := blob.Latest(ctx, s.Blobs, catalog.Kind)
	if fault.Is(err, fault.Missing) {
		ref, err = event.Ref{}, nil
	}
	if err != nil {
		return err
	}
	s.catalogue, s.catalogueReadAt = ref, now
	return nil
}

// cachedConfigMap is one of Joist's own as the cache shows it; nil when it does not.
func (s *Service) cachedConfigMap(name string) *corev1.ConfigMap {
	object, _ := s.Cache.Get(cluster.ConfigMaps, cluster.Key{Namespace: s.Namespace, Name: name})
	found, _ := object.(*corev1.ConfigMap)
	return found
}
