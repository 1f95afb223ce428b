package memcluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/clustertest"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// The model passes the conformance suite with delayed and jittered caches.
func TestConformance(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Subject {
		s, c := newServer(1)
		s.SeedObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "suite"}})
		var caches []*memcluster.Cache
		t.Cleanup(func() {
			for _, effect := range s.Effects() {
				if effect.Actor == "x" && effect.Verb == "" {
					t.Errorf("effect %+v has no verb", effect)
				}
			}
		})
		return clustertest.Subject{
			Client:    s.ClientFor("x"),
			Namespace: "suite",
			NewCache: func(_ *testing.T, trim cluster.Trims) cluster.Feed {
				cache := s.NewCache(memcluster.CacheOptions{
					Delay:  map[cluster.Kind]time.Duration{cluster.ConfigMaps: 3 * time.Second},
					Jitter: time.Second,
					Trim:   trim,
				})
				caches = append(caches, cache)
				return cache
			},
			Break: func(cache cluster.Feed, kind cluster.Kind) { cache.(*memcluster.Cache).BreakWatch(kind) },
			Wait: func() {
				c.forward(500 * time.Millisecond)
				for _, cache := range caches {
					cache.Advance(c.now)
				}
			},
			Features: clustertest.Features{Custom: true, Budgets: true},
		}
	}, map[string]func() cluster.Trims{"the watcher": podspec.Trims})
}
