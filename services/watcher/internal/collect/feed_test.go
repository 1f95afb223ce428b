package collect_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// fakeFeed is a feed whose objects the test sets.
type fakeFeed struct {
	objects, whole map[cluster.Kind]map[cluster.Key]cluster.Object
	changes        map[cluster.Kind]*cluster.Changes
	// listed has the ordered list of each kind, until it changes.
	listed map[cluster.Kind][]cluster.Object
}

func newFakeFeed() *fakeFeed {
	t := &fakeFeed{map[cluster.Kind]map[cluster.Key]cluster.Object{}, map[cluster.Kind]map[cluster.Key]cluster.Object{}, map[cluster.Kind]*cluster.Changes{}, map[cluster.Kind][]cluster.Object{}}
	for _, kind := range cluster.Kinds {
		t.objects[kind], t.whole[kind], t.changes[kind] = map[cluster.Key]cluster.Object{}, map[cluster.Key]cluster.Object{}, &cluster.Changes{}
	}
	return t
}

// put creates the object or replaces the one of its name.
func (t *fakeFeed) put(o cluster.Object) {
	kind, _ := cluster.KindOf(o)
	key := cluster.KeyOf(o)
	t.objects[kind][key], t.whole[kind][key] = o, o.DeepCopyObject().(cluster.Object)
	t.changes[kind].RecordChange(key)
	delete(t.listed, kind)
}

func (t *fakeFeed) drop(kind cluster.Kind, key cluster.Key) {
	delete(t.objects[kind], key)
	delete(t.whole[kind], key)
	t.changes[kind].RecordChange(key)
	delete(t.listed, kind)
}

// relist reports that all objects of a kind may have changed.
func (t *fakeFeed) relist(kind cluster.Kind) {
	t.changes[kind] = &cluster.Changes{}
}

func (t *fakeFeed) untouched(test testing.TB) {
	test.Helper()
	for kind, objects := range t.objects {
		for key, o := range objects {
			if !equality.Semantic.DeepEqual(o, t.whole[kind][key]) {
				test.Fatalf("%s %s of the cache was mutated", kind.Kind, key)
			}
		}
	}
}

func (t *fakeFeed) List(kind cluster.Kind) []cluster.Object {
	out, known := t.listed[kind]
	if !known {
		for _, key := range slices.SortedFunc(maps.Keys(t.objects[kind]), cluster.Key.Compare) {
			out = append(out, t.objects[kind][key])
		}
		t.listed[kind] = out
	}
	return slices.Clone(out)
}

func (t *fakeFeed) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	var out []cluster.Object
	for _, o := range t.objects[kind] {
		if index.Value(o) == value {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Object) int { return cluster.KeyOf(a).Compare(cluster.KeyOf(b)) })
	return out
}

func (t *fakeFeed) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	o, ok := t.objects[kind][key]
	return o, ok
}

func (t *fakeFeed) Synced() bool { return true }

func (t *fakeFeed) TakeChanges(kind cluster.Kind) cluster.Changed {
	return t.changes[kind].TakeChanges()
}
