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
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Maximum age of data that the watcher reads from outside the cache.
const (
	// outboxMaxAge bounds the age of the outbox when its watch reports no change. Without it, a
	// watch that hangs would stop all batches.
	outboxMaxAge = 15 * time.Second
	// catalogueMaxAge limits the age of the reference to the catalogue. catalogueMaxAgePending
	// applies while pods are pending, because a new catalogue may have an offering for them.
	catalogueMaxAge        = 15 * time.Second
	catalogueMaxAgePending = 5 * time.Second
)

// readOutbox returns the outbox. It reads it from the API server unless the cache has the version
// that was last read. An outdated copy is harmless: updating it fails with a conflict, and a resent
// message has the same ID.
func (s *Service) readOutbox(ctx context.Context) (outbox.Stored, error) {
	now := s.Now()
	if s.cachedOutbox.IsSameVersion(s.cachedConfigMap(outbox.Name)) && now.Sub(s.cachedOutboxAt) < outboxMaxAge {
		return s.cachedOutbox, nil
	}
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		s.cachedOutbox = outbox.Stored{}
		return held, err
	}
	s.cachedOutbox, s.cachedOutboxAt = held, now
	return held, nil
}

// collectView builds the view from the cache, the catalogue's reference and the list of unavailable
// offerings.
func (s *Service) collectView(ctx context.Context) (collect.View, error) {
	if err := s.refreshCatalogue(ctx); err != nil {
		return collect.View{}, err
	}
	view := s.state.View(collect.Inputs{
		Cluster: s.Cluster, Catalogue: s.catalogue, Settings: s.Settings, Now: s.Now().UTC(),
		Unavailable: planning.FilterUnavailable(s.unavailable.read(s.cachedConfigMap(planning.UnavailableConfigMapName)), s.Now()),
	})
	s.hasPendingPods = len(view.Pending) > 0
	s.countPods(view)
	return view, nil
}

// refreshCatalogue reads which catalogue is the latest if the known reference is too old. Without a
// catalogue it reads at each step, because planning is impossible.
func (s *Service) refreshCatalogue(ctx context.Context) error {
	now, every := s.Now(), catalogueMaxAge
	if s.hasPendingPods {
		every = catalogueMaxAgePending
	}
	if !s.catalogue.IsZero() && now.Sub(s.catalogueReadAt) < every {
		return nil
	}
	ref, err := blob.GetLatest(ctx, s.Blobs, catalog.Kind)
	if fault.Is(err, fault.Missing) {
		ref, err = event.Ref{}, nil
	}
	if err != nil {
		return err
	}
	s.catalogue, s.catalogueReadAt = ref, now
	return nil
}

// unavailableList is the decoded list of unavailable offerings of a ConfigMap. Objects of the cache are replaced when they
// change, so pointers can be compared.
type unavailableList struct {
	of   *corev1.ConfigMap
	list []planning.Unavailable
}

// read returns the list of the ConfigMap, which callers must not change.
func (u *unavailableList) read(object *corev1.ConfigMap) []planning.Unavailable {
	if u.of != object {
		u.of, u.list = object, planning.ReadUnavailable(object)
	}
	return u.list
}

// cachedConfigMap returns one of Joist's own ConfigMaps from the cache, or nil.
func (s *Service) cachedConfigMap(name string) *corev1.ConfigMap {
	object, _ := s.Cache.Get(cluster.ConfigMaps, cluster.Key{Namespace: s.Namespace, Name: name})
	found, _ := object.(*corev1.ConfigMap)
	return found
}
