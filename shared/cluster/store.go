package cluster

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Trims are, for each kind that a cache trims, the function that takes off an object
// what the process never reads. The function changes the object that it is given, and
// changes nothing when it gets the object again.
type Trims map[Kind]func(Object)

// Store holds the objects of one kind as a watch delivered them. The adapter and the
// model fill it, so that both trim objects and compare lists in the same way. It is safe
// for concurrent use. The change of an object and its new state are visible together: a
// reader that drained a change never finds an older state.
type Store struct {
	trim func(Object)

	mu      sync.RWMutex
	objects map[Key]Object
	// by holds, for each index, the keys under each value.
	by map[Index]map[string]map[Key]struct{}
	// listed is every object in order, kept from the first List on.
	listed  []Object
	changes Changes
	synced  bool
}

// NewStore returns an empty store of a kind. The function trim is nil for a kind that is
// not trimmed.
func NewStore(kind Kind, trim func(Object)) *Store {
	s := &Store{trim: trim, objects: map[Key]Object{}, by: map[Index]map[string]map[Key]struct{}{}}
	for _, index := range Indexes(kind) {
		s.by[index] = map[string]map[Key]struct{}{}
	}
	return s
}

// Trim drops from an object what is large and what the process never reads. Put and
// Replace do so too; it may be called before them. A trimmed object has no
// resourceVersion: two versions may be equal now, and no process may write back an
// object that is not whole.
func (s *Store) Trim(object Object) {
	object.SetManagedFields(nil)
	if s.trim != nil {
		s.trim(object)
		object.SetResourceVersion("")
	}
}

// same reports whether an object is what the store holds already. Trimmed objects have
// no version, so their content is compared: then the heartbeats and restarts of a large
// cluster are no changes.
func (s *Store) same(old, object Object) bool {
	switch {
	case old == nil:
		return false
	case s.trim != nil:
		return equality.Semantic.DeepEqual(old, object)
	default:
		return old.GetResourceVersion() == object.GetResourceVersion() && old.GetUID() == object.GetUID()
	}
}

// Put keeps an object that came or changed, and reports whether that changed the store.
// The object belongs to the store from then on.
func (s *Store) Put(object Object) bool {
	s.Trim(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(object)
}

// Remove drops an object.
func (s *Store) Remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

// Replace makes a list the content of the store. An object that did not change stays as
// it is. The store is synced from then on.
func (s *Store) Replace(list []Object) {
	fresh := make(map[Key]struct{}, len(list))
	for _, object := range list {
		s.Trim(object)
		fresh[KeyOf(object)] = struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range list {
		s.put(object)
	}
	for _, key := range slices.Collect(maps.Keys(s.objects)) {
		if _, there := fresh[key]; !there {
			s.drop(key)
		}
	}
	s.synced = true
}

// put keeps an object and reports whether that changed anything. The caller holds the
// lock, here and below.
func (s *Store) put(object Object) bool {
	key := KeyOf(object)
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
			values[value] = map[Key]struct{}{}
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

func (s *Store) drop(key Key) {
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

func forget(values map[string]map[Key]struct{}, value string, key Key) {
	delete(values[value], key)
	if len(values[value]) == 0 {
		delete(values, value)
	}
}

// place is where a key is in the list, or would be.
func (s *Store) place(key Key) (int, bool) {
	return slices.BinarySearchFunc(s.listed, key, func(o Object, key Key) int { return KeyOf(o).Compare(key) })
}

// List returns all objects, ordered by namespace and name.
func (s *Store) List() []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed == nil {
		s.listed = slices.SortedFunc(maps.Values(s.objects), compareObjects)
	}
	return slices.Clone(s.listed)
}

// ListBy returns the objects that have the value in an index of the kind, ordered by
// namespace and name.
func (s *Store) ListBy(index Index, value string) []Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := s.by[index][value]
	out := make([]Object, 0, len(keys))
	for key := range keys {
		out = append(out, s.objects[key])
	}
	slices.SortFunc(out, compareObjects)
	return out
}

func compareObjects(a, b Object) int { return KeyOf(a).Compare(KeyOf(b)) }

// Get returns one object, or false.
func (s *Store) Get(key Key) (Object, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	object, ok := s.objects[key]
	return object, ok
}

// Drain returns what changed since the last Drain, and forgets it.
func (s *Store) Drain() Changed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes.Drain()
}

// Synced reports whether a first list has arrived.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}
