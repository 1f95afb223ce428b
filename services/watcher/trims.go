package watcher

import (
	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Trims take off objects what the watcher never reads, for a cache that is its
// own: they are what lets it watch a hundred thousand pods.
func Trims() map[cluster.Kind]func(cluster.Object) { return collect.Trims() }
