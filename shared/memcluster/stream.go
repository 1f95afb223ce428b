package memcluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// notice is one message of a watch: a list when list is set, else a change of
// one object, which is gone when object is nil.
type notice struct {
	at     time.Time
	key    cluster.Key
	object cluster.Object
	list   map[cluster.Key]cluster.Object
}

// stream is one kind's watch: first in, first out, however late.
type stream struct {
	delay  time.Duration
	queue  []notice
	items  map[cluster.Key]item
	listed []cluster.Object // ordered; nil when it has to be made anew
	by     map[cluster.Index]map[string][]cluster.Object
	synced bool
	// changes is what nobody has drained yet.
	changes cluster.Changes
}

// item is an object as callers get it, and the store's own beside it to tell
// whether somebody changed it.
type item struct{ given, stored cluster.Object }

func (s *stream) push(n notice, extra time.Duration) {
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

func (s *stream) take(n notice) {
	s.listed, s.by = nil, nil
	switch {
	case n.list != nil:
		s.synced = true
		s.relist(n.list)
	case n.object == nil:
		s.changes.Note(n.key)
		delete(s.items, n.key)
	default:
		s.changes.Note(n.key)
		s.items[n.key] = item{copyOf(n.object), n.object}
	}
}

// relist replaces everything, but leaves alone what is the same.
func (s *stream) relist(list map[cluster.Key]cluster.Object) {
	items := make(map[cluster.Key]item, len(list))
	for key, object := range list {
		if old, ok := s.items[key]; ok && old.stored == object {
			items[key] = old
			continue
		}
		s.changes.Note(key)
		items[key] = item{copyOf(object), object}
	}
	for key := range s.items {
		if _, there := items[key]; !there {
			s.changes.Note(key)
		}
	}
	s.items = items
}

func (s *stream) list() []cluster.Object { return slices.Clone(s.all()) }

// all is the stream's own list.
func (s *stream) all() []cluster.Object {
	if s.listed == nil {
		s.listed = make([]cluster.Object, 0, len(s.items))
		for _, key := range sortedKeys(s.items) {
			s.listed = append(s.listed, s.items[key].given)
		}
	}
	return s.listed
}

func (s *stream) listBy(index cluster.Index, value string) []cluster.Object {
	if s.by == nil {
		s.by = map[cluster.Index]map[string][]cluster.Object{}
	}
	groups := s.by[index]
	if groups == nil {
		groups = map[string][]cluster.Object{}
		for _, object := range s.all() {
			at := index.Value(object)
			groups[at] = append(groups[at], object)
		}
		s.by[index] = groups
	}
	return slices.Clone(groups[value])
}

func (s *stream) mutated() []cluster.Key {
	var out []cluster.Key
	for _, key := range sortedKeys(s.items) {
		if i := s.items[key]; !equality.Semantic.DeepEqual(i.given, i.stored) {
			out = append(out, key)
		}
	}
	return out
}
