package memcluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// change is one message of a watch: a list when list is set, else a change of
// one object, which is gone when object is nil.
type change struct {
	at     time.Time
	key    cluster.Key
	object cluster.Object
	list   map[cluster.Key]cluster.Object
}

// stream is one kind's watch: first in, first out, however late.
type stream struct {
	delay time.Duration
	queue []change
	// store is what callers see, and the adapter's too.
	store *cluster.Store
	// trims says that the store trims the kind.
	trims bool
	// asGiven is each object of the store as it was when the store got it, to find what
	// callers changed.
	asGiven map[cluster.Key]cluster.Object
}

func newStream(kind cluster.Kind, o CacheOptions) *stream {
	return &stream{
		delay: o.Delay[kind], store: cluster.NewStore(kind, o.Trim[kind]), trims: o.Trim[kind] != nil,
		asGiven: map[cluster.Key]cluster.Object{},
	}
}

func (s *stream) push(n change, extra time.Duration) {
	n.at = n.at.Add(extra)
	s.queue = append(s.queue, n)
}

// due is when the first message in the queue arrives.
func (s *stream) due() (time.Time, bool) {
	if len(s.queue) == 0 {
		return time.Time{}, false
	}
	return s.queue[0].at.Add(s.delay), true
}

func (s *stream) advance(now time.Time) int {
	n := 0
	for n < len(s.queue) && !s.queue[n].at.Add(s.delay).After(now) {
		s.take(s.queue[n])
		n++
	}
	s.queue = s.queue[n:]
	return n
}

func (s *stream) flush() int {
	n := len(s.queue)
	for _, notice := range s.queue {
		s.take(notice)
	}
	s.queue = nil
	return n
}

func (s *stream) take(n change) {
	switch {
	case n.list != nil:
		s.relist(n.list)
	case n.object == nil:
		s.store.Remove(n.key)
		delete(s.asGiven, n.key)
	default:
		object := copyObject(n.object)
		s.store.Put(object)
		s.keep(n.key, object, n.object)
	}
}

// relist replaces everything, but leaves alone what is the same.
func (s *stream) relist(list map[cluster.Key]cluster.Object) {
	objects := make([]cluster.Object, 0, len(list))
	for _, key := range sortedKeys(list) {
		objects = append(objects, copyObject(list[key]))
	}
	s.store.Replace(objects)
	for key := range s.asGiven {
		if list[key] == nil {
			delete(s.asGiven, key)
		}
	}
	for _, object := range objects {
		key := cluster.KeyOf(object)
		s.keep(key, object, list[key])
	}
}

// keep notes an object as it was given, unless the store kept the one that it had.
// The stored object of the server serves for one that was not trimmed.
func (s *stream) keep(key cluster.Key, object, stored cluster.Object) {
	if held, _ := s.store.Get(key); held != object {
		return
	}
	if s.trims {
		stored = copyObject(object)
	}
	s.asGiven[key] = stored
}

func (s *stream) mutated() []cluster.Key {
	var out []cluster.Key
	for _, key := range sortedKeys(s.asGiven) {
		if held, _ := s.store.Get(key); !equality.Semantic.DeepEqual(held, s.asGiven[key]) {
			out = append(out, key)
		}
	}
	return out
}
