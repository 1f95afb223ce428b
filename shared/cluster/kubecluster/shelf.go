package kubecluster

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// shelf lets a reflector write one kind's store, with no queue in between, and reports
// each change.
type shelf struct {
	*cluster.Store
	notify func()
}

var _ cache.TransformingStore = shelf{}

// Transformer implements cache.TransformingStore: a list that is streamed is
// trimmed object by object, so that the whole is never in memory untrimmed.
func (s shelf) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if object, ok := o.(cluster.Object); ok {
			s.Trim(object)
		}
		return o, nil
	}
}

// Add implements cache.ReflectorStore.
func (s shelf) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s shelf) Update(o any) error {
	object, ok := o.(cluster.Object)
	if !ok {
		return fmt.Errorf("a watch sent a %T", o)
	}
	if s.Put(object) {
		s.notify()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s shelf) Delete(o any) error {
	object, ok := o.(cluster.Object)
	if !ok {
		return fmt.Errorf("a watch sent a %T", o)
	}
	s.Remove(cluster.KeyOf(object))
	s.notify()
	return nil
}

// Replace implements cache.ReflectorStore: a list.
func (s shelf) Replace(list []any, _ string) error {
	objects := make([]cluster.Object, 0, len(list))
	for _, o := range list {
		object, ok := o.(cluster.Object)
		if !ok {
			return fmt.Errorf("a list held a %T", o)
		}
		objects = append(objects, object)
	}
	s.Store.Replace(objects)
	// A list without objects is a change too: the kind is synced now.
	s.notify()
	return nil
}

// Resync implements cache.ReflectorStore. The reflectors are configured without one.
func (s shelf) Resync() error { return nil }
