package kubecluster

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// reflectorStore lets a reflector write the store of a kind without a queue, and signals
// each change.
type reflectorStore struct {
	*cluster.Store
	notify func()
}

var _ cache.TransformingStore = reflectorStore{}

// Transformer implements cache.TransformingStore. It trims the objects of a streamed list
// one by one, so that the untrimmed list is never in memory.
func (s reflectorStore) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if object, ok := o.(cluster.Object); ok {
			s.Trim(object)
		}
		return o, nil
	}
}

// Add implements cache.ReflectorStore.
func (s reflectorStore) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s reflectorStore) Update(o any) error {
	object, ok := o.(cluster.Object)
	if !ok {
		return fmt.Errorf("unexpected type %T in a watch event (want a Kubernetes object)", o)
	}
	if s.Put(object) {
		s.notify()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s reflectorStore) Delete(o any) error {
	object, ok := o.(cluster.Object)
	if !ok {
		return fmt.Errorf("unexpected type %T in a watch event (want a Kubernetes object)", o)
	}
	s.Remove(cluster.KeyOf(object))
	s.notify()
	return nil
}

// Replace implements cache.ReflectorStore: a list.
func (s reflectorStore) Replace(list []any, _ string) error {
	objects := make([]cluster.Object, 0, len(list))
	for _, o := range list {
		object, ok := o.(cluster.Object)
		if !ok {
			return fmt.Errorf("unexpected type %T in a list (want a Kubernetes object)", o)
		}
		objects = append(objects, object)
	}
	s.Store.Replace(objects)
	// An empty list is a change too, because the kind is now synced.
	s.notify()
	return nil
}

// Resync implements cache.ReflectorStore. The reflectors are configured without one.
func (s reflectorStore) Resync() error { return nil }
