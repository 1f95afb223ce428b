// Package owner remembers whose instances are whose, so that the events of
// other people's instances cost nothing when they repeat: a rule sees the whole
// account, and most of it is not ours.
//
// An instance's owner never changes, so an entry is only ever forgotten: when
// the book is full the oldest goes. Losing all of it costs calls and nothing
// else. What EC2 does not show is never remembered, for it may be too young.
package owner

import (
	"sync"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Size is how many instances a book remembers; about 2 MB.
const Size = 10_000

// Book is the memory. The zero value is empty and ready, and is safe for
// concurrent use.
type Book struct {
	mu sync.Mutex
	// foreign holds ids that are not ours.
	foreign map[string]bool
	// line is the ids in the order in which they came; next is the oldest once
	// the line is full.
	line []string
	next int
}

// Foreign reports whether the instance is known to be somebody else's.
func (b *Book) Foreign(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.foreign[id]
}

// Strange notes that the instance is somebody else's.
func (b *Book) Strange(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.foreign[id] {
		return
	}
	if b.foreign == nil {
		b.foreign = map[string]bool{}
	}
	b.foreign[id] = true
	if len(b.line) < Size {
		b.line = append(b.line, id)
		return
	}
	delete(b.foreign, b.line[b.next])
	b.line[b.next] = id
	b.next = (b.next + 1) % Size
}

// Owned reports whether the instance carries the tags of a node of the cluster
// (B142).
func Owned(i cloud.Instance, cluster string) bool {
	return i.Tags[karpenter.ClusterTagPrefix+cluster] == "owned" && i.Tags[karpenter.NodePoolTagKey] != ""
}
