package kubecluster

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// shelf holds what one kind's watch has told. A reflector writes it with no queue
// in between, so that an object and the word of its change are there at once:
// who has drained the changes cannot look up what was not among them.
type shelf struct {
	trim   func(cluster.Object)
	notify func()

	mu      sync.RWMutex
	objects map[cluster.Key]cluster.Object
	// by holds, for each index, the keys under each value.
	by map[cluster.Index]map[string]map[cluster.Key]struct{}
	// listed is every object in order, kept from the first List on.
	listed  []cluster.Object
	changes cluster.Changes
	synced  bool
}

var _ cache.TransformingStore = (*shelf)(nil)

func newShelf(kind cluster.Kind, trim func(cluster.Object), notify func()) *shelf {
	s := &shelf{trim: trim, notify: notify, objects: map[cluster.Key]cluster.Object{}, by: map[cluster.Index]map[string]map[cluster.Key]struct{}{}}
	for _, index := range cluster.Indexes(kind) {
		s.by[index] = map[string]map[cluster.Key]struct{}{}
	}
	return s
}

// Transformer implements cache.TransformingStore: a list that is streamed is
// trimmed object by object, so that the whole is never in memory untrimmed.
func (s *shelf) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if object, ok := o.(cluster.Object); ok {
			s.lighten(object)
		}
		return o, nil
	}
}

// lighten drops what is large and what nobody reads. An object may come by twice.
// What was trimmed has no version: two versions may be the same now, and nobody
// should write back what is not whole.
func (s *shelf) lighten(object cluster.Object) {
	object.SetManagedFields(nil)
	if s.trim != nil {
		s.trim(object)
		object.SetResourceVersion("")
	}
}

// same reports that what is left of an object is what was there before, so that
// the heartbeats and restarts of a large cluster wake nobody.
func (s *shelf) same(old, object cluster.Object) bool {
	return s.trim != nil && old != nil && equality.Semantic.DeepEqual(old, object)
}

// Add implements cache.ReflectorStore.
func (s *shelf) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *shelf) Update(o any) error {
	object, ok := o.(cluster.Object)
	if !ok {
		return fmt.Errorf("a watch told of a %T", o)
	}
	s.lighten(object)
	s.mu.Lock()
	changed := s.put(object)
	s.mu.Unlock()
	if changed {
		s.notify()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *shelf) Delete(o any) error {
	object, ok := o.(cluster.Object)
	if !ok {
		return fmt.Errorf("a watch told of a %T", o)
	}
	s.mu.Lock()
	s.drop(cluster.KeyOf(object))
	s.mu.Unlock()
	s.notify()
	return nil
}

// Replace implements cache.ReflectorStore: a list. What is the same in it stays,
// and is no change.
func (s *shelf) Replace(list []any, _ string) error {
	fresh := make(map[cluster.Key]struct{}, len(list))
	s.mu.Lock()
	for _, o := range list {
		object, ok := o.(cluster.Object)
		if !ok {
			s.mu.Unlock()
			return fmt.Errorf("a list held a %T", o)
		}
		key := cluster.KeyOf(object)
		fresh[key] = struct{}{}
		if old := s.objects[key]; old == nil || old.GetResourceVersion() != object.GetResourceVersion() || old.GetUID() != object.GetUID() {
			s.lighten(object)
			s.put(object)
		}
	}
	for _, key := range slices.Collect(maps.Keys(s.objects)) {
		if _, there := fresh[key]; !there {
			s.drop(key)
		}
	}
	s.synced = true
	s.mu.Unlock()
	// Even a list without objects is news: the kind is synced now.
	s.notify()
	return nil
}

// Resync implements cache.ReflectorStore. Nobody asks for one.
func (s *shelf) Resync() error { return nil }

// put keeps an object and reports whether that changed anything. The lock is
// held, here and below.
func (s *shelf) put(object cluster.Object) bool {
	key := cluster.KeyOf(object)
	old := s.objects[key]
	if s.same(old, object) {
		return false
	}
	s.objects[key] = object
	s.changes.Note(key)
	for index, values := range s.by {
		value := index.Value(object)
		if old != nil {
			if before := index.Value(old); before != value {
				forget(values, before, key)
			}
		}
		if values[value] == nil {
			values[value] = map[cluster.Key]struct{}{}
		}
		values[value][key] = struct{}{}
	}
	if s.listed == nil {
		return true
	}
	if at, found := s.place(key); found {
		s.listed[at] = object
	} else {
		s.listed = slices.Insert(s.listed, at, object)
	}
	return true
}

func (s *shelf) drop(key cluster.Key) {
	old, found := s.objects[key]
	if !found {
		return
	}
	delete(s.objects, key)
	s.changes.Note(key)
	for index, values := range s.by {
		forget(values, index.Value(old), key)
	}
	if at, found := s.place(key); found {
		s.listed = slices.Delete(s.listed, at, at+1)
	}
}

func forget(values map[string]map[cluster.Key]struct{}, value string, key cluster.Key) {
	delete(values[value], key)
	if len(values[value]) == 0 {
		delete(values, value)
	}
}

// place is where a key is in the list, or would be.
func (s *shelf) place(key cluster.Key) (int, bool) {
	return slices.BinarySearchFunc(s.listed, key, func(o cluster.Object, key cluster.Key) int { return cluster.KeyOf(o).Compare(key) })
}

func (s *shelf) list() []cluster.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed == nil {
		s.listed = slices.SortedFunc(maps.Values(s.objects), compare)
	}
	return slices.Clone(s.listed)
}

func (s *shelf) listBy(index cluster.Index, value string) []cluster.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := s.by[index][value]
	out := make([]cluster.Object, 0, len(keys))
	for key := range keys {
		out = append(out, s.objects[key])
	}
	slices.SortFunc(out, compare)
	return out
}

func (s *shelf) get(key cluster.Key) (cluster.Object, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	object, ok := s.objects[key]
	return object, ok
}

func (s *shelf) drain() cluster.Changed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes.Drain()
}

func (s *shelf) ready() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}
