package cluster

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Trims has the Trim of each trimmed kind.
type Trims map[Kind]Trim

// Trim clears the fields of an object that the process never reads. The zero value clears nothing.
type Trim struct {
	// Clear changes its argument, and changes nothing if it gets the same object again.
	Clear func(Object)
	// StatusOnly reports that Clear changes only the status, of a kind with a status subresource. Such
	// objects can be updated, because an update of the rest leaves the stored status alone.
	StatusOnly bool
}

// Store holds the objects of one kind as a watch delivered them. The adapter and the
// model fill it, so that both trim objects and compare lists in the same way. It is safe
// for concurrent use. The change of an object and its new state are visible together: a
// reader that drained a change never finds an older state.
type Store struct {
	trim Trim

	mu      sync.RWMutex
	objects map[Key]Object
	// by holds, for each index, the keys under each value.
	by map[Index]map[string]map[Key]struct{}
	// listed is every object in order, kept from the first List on.
	listed  []Object
	changes Changes
	synced  bool
}

// NewStore returns an empty store of a kind.
func NewStore(kind Kind, trim Trim) *Store {
	s := &Store{trim: trim, objects: map[Key]Object{}, by: map[Index]map[string]map[Key]struct{}{}}
	for _, index := range Indexes(kind) {
		s.by[index] = map[string]map[Key]struct{}{}
	}
	return s
}

// Trim clears managed fields, the apiVersion and kind, which only some watch events have,
// and the fields that the process never reads. Put and Replace call it too; callers may
// call it before them. A trimmed object has no resourceVersion, because two versions may be
// equal after the trim, and because an incomplete object must not be written back. It keeps its
// resourceVersion if the trim is StatusOnly.
func (s *Store) Trim(object Object) {
	object.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if s.trim.Clear == nil {
		return
	}
	s.trim.Clear(object)
	if !s.trim.StatusOnly {
		object.SetResourceVersion("")
	}
}

// isUnchanged reports whether the store already holds the object. Trimmed objects are compared by
// content without the version, so heartbeats and restarts count as no change.
func (s *Store) isUnchanged(old, object Object) bool {
	switch {
	case old == nil:
		return false
	case s.trim.StatusOnly:
		version := object.GetResourceVersion()
		defer object.SetResourceVersion(version)
		object.SetResourceVersion(old.GetResourceVersion())
		return equality.Semantic.DeepEqual(old, object)
	case s.trim.Clear != nil:
		return equality.Semantic.DeepEqual(old, object)
	default:
		return old.GetResourceVersion() == object.GetResourceVersion() && old.GetUID() == object.GetUID()
	}
}

// Put stores an object that was added or changed, and reports whether that changed the
// store. The object then belongs to the store.
func (s *Store) Put(object Object) bool {
	s.Trim(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(object)
}

// Remove drops an object.
func (s *Store) Remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(key)
}

// Replace makes a list the content of the store, and marks the store as synced. Unchanged
// objects are not replaced.
func (s *Store) Replace(list []Object) {
	fresh := make(map[Key]struct{}, len(list))
	for _, object := range list {
		s.Trim(object)
		fresh[KeyOf(object)] = struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range list {
		s.putLocked(object)
	}
	for _, key := range slices.Collect(maps.Keys(s.objects)) {
		if _, there := fresh[key]; !there {
			s.removeLocked(key)
		}
	}
	s.synced = true
}

// putLocked stores an object and reports whether that changed the store. The caller holds
// the lock, also in the functions below.
func (s *Store) putLocked(object Object) bool {
	key := KeyOf(object)
	old := s.objects[key]
	if s.isUnchanged(old, object) {
		s.keepVersionLocked(key, old, object)
		return false
	}
	s.objects[key] = object
	s.recordChangeLocked(key, old, object)
	for index, values := range s.by {
		value := index.Value(object)
		if old != nil {
			if before := index.Value(old); before != value {
				removeFromIndex(values, before, key)
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
	if at, found := s.findPosition(key); found {
		s.listed[at] = object
	} else {
		s.listed = slices.Insert(s.listed, at, object)
	}
	return true
}

// keepVersionLocked replaces an object by an equal one with a newer version, so that the reader can update it.
func (s *Store) keepVersionLocked(key Key, old, object Object) {
	if old.GetResourceVersion() == object.GetResourceVersion() {
		return
	}
	s.objects[key] = object
	if s.listed == nil {
		return
	}
	if at, found := s.findPosition(key); found {
		s.listed[at] = object
	}
}

// recordChangeLocked records a change with the values of both states in the indexes.
func (s *Store) recordChangeLocked(key Key, old, object Object) {
	var values []string
	for index := range s.by {
		values = append(values, index.Value(object))
		if old != nil {
			values = append(values, index.Value(old))
		}
	}
	s.changes.RecordChange(key, values...)
}

func (s *Store) removeLocked(key Key) {
	old, found := s.objects[key]
	if !found {
		return
	}
	delete(s.objects, key)
	s.recordChangeLocked(key, old, old)
	for index, values := range s.by {
		removeFromIndex(values, index.Value(old), key)
	}
	if at, found := s.findPosition(key); found {
		s.listed = slices.Delete(s.listed, at, at+1)
	}
}

func removeFromIndex(values map[string]map[Key]struct{}, value string, key Key) {
	delete(values[value], key)
	if len(values[value]) == 0 {
		delete(values, value)
	}
}

// findPosition returns the index of the key in the sorted list, or where to insert it.
func (s *Store) findPosition(key Key) (int, bool) {
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

// TakeChanges returns the changes since the last call and clears them.
func (s *Store) TakeChanges() Changed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes.TakeChanges()
}

// Synced reports whether a first list has arrived.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}
