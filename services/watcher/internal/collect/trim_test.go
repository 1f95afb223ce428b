package collect_test

import (
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// trimmingCache is a cache that returns trimmed objects.
type trimmingCache struct {
	cluster.Cache
	trims cluster.Trims
}

func (c trimmingCache) trimmed(kind cluster.Kind, o cluster.Object) cluster.Object {
	trim := c.trims[kind].Clear
	if trim == nil {
		return o
	}
	o = o.DeepCopyObject().(cluster.Object)
	trim(o)
	return o
}

func (c trimmingCache) all(kind cluster.Kind, list []cluster.Object) []cluster.Object {
	for i := range list {
		list[i] = c.trimmed(kind, list[i])
	}
	return list
}

func (c trimmingCache) List(kind cluster.Kind) []cluster.Object {
	return c.all(kind, c.Cache.List(kind))
}

func (c trimmingCache) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	return c.all(kind, c.Cache.ListBy(kind, index, value))
}

func (c trimmingCache) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	o, ok := c.Cache.Get(kind, key)
	if ok {
		o = c.trimmed(kind, o)
	}
	return o, ok
}

// trimsAlike describes how the view of trimmed objects differs from the view. Every test of the
// view calls it.
func trimsAlike(cache cluster.Cache, what collect.Inputs, view collect.View) string {
	return cmp.Diff(view, collect.CollectAll(trimmingCache{cache, podspec.Trims()}, what))
}
