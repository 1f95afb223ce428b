package memcluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// change is one message of a watch: a list if list is set, otherwise a change of one
// object, which is removed if object is nil.
type change struct {
	at     time.Time
	key    cluster.Key
	object cluster.Object
	list   map[cluster.Key]cluster.Object
}

// stream is the watch of one kind. It delivers changes in order.
type stream struct {
	kind  cluster.Kind
	delay time.Duration
	queue []change
	// store has the delivered objects. The adapter uses the same type.
	store *cluster.Store
	// trims is true if the store trims the kind.
	trims bool
	// uncopied is true if the store has the server's own objects.
	uncopied bool
	// asGiven has a copy of each object as the store received it, to find objects that
	// callers changed. It is nil without CacheOptions.FindMutated.
	asGiven map[cluster.Key]cluster.Object
}

func newStream(kind cluster.Kind, o CacheOptions) *stream {
	s := &stream{
		kind: kind, delay: o.Delay[kind], store: cluster.NewStore(kind, o.Trim[kind]), trims: o.Trim[kind].Clear != nil,
		uncopied: o.Uncopied,
	}
	if o.FindMutated {
		s.asGiven = map[cluster.Key]cluster.Object{}
	}
	return s
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
		object := s.copyObject(n.object)
		s.store.Put(object)
		s.keep(n.key, object, n.object)
	}
}

// copyObject returns what the store receives for an object of the server.
func (s *stream) copyObject(object cluster.Object) cluster.Object {
	if s.uncopied {
		return object
	}
	return copyObject(object)
}

// relist replaces the content of the store by a list. Unchanged objects are kept.
func (s *stream) relist(list map[cluster.Key]cluster.Object) {
	objects := make([]cluster.Object, 0, len(list))
	for _, key := range sortedKeys(list) {
		objects = append(objects, s.copyObject(list[key]))
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

// keep records an object as the store received it, unless the store kept the old one. A copy
// that is not trimmed equals the server's object, which is recorded itself.
func (s *stream) keep(key cluster.Key, object, stored cluster.Object) {
	if s.asGiven == nil {
		return
	}
	if held, _ := s.store.Get(key); held != object {
		return
	}
	if s.trims || s.uncopied {
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
