package watcher

import (
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/podspec"
)

// Trims returns the functions that take off objects what the watcher never reads, for
// a cache that only the watcher reads: they let it watch a hundred thousand pods.
// Every model of a cluster that a watcher runs on trims with them too.
func Trims() cluster.Trims { return podspec.Trims() }
