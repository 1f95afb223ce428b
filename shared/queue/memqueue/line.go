package memqueue

import "iter"

// visibilityHeap orders records by when they become visible, then by age. Removing a record only marks its heap entry
// as stale; stale entries are removed at the top of the heap, or when they are more than half of it. Receiving and
// deleting are therefore cheap in a queue of any length. The zero value is empty.
type visibilityHeap struct {
	heap []heapEntry
	// stale counts the stale entries.
	stale int
}

// heapEntry is a record's entry in the heap, with its sort key.
type heapEntry struct {
	visible int64
	serial  uint64
	record  *record
	version uint32
}

func (p *heapEntry) isBefore(other *heapEntry) bool {
	return p.visible < other.visible || p.visible == other.visible && p.serial < other.serial
}

// isCurrent reports whether the entry is not stale.
func (p *heapEntry) isCurrent() bool { return p.record.version == p.version }

// minStale is how many stale entries are always tolerated.
const minStale = 32

func (l *visibilityHeap) len() int { return len(l.heap) - l.stale }

// allRecords yields the records in no particular order.
func (l *visibilityHeap) allRecords() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for i := range l.heap {
			if l.heap[i].isCurrent() && !yield(l.heap[i].record) {
				return
			}
		}
	}
}

// firstRecord returns the record that is visible first, or nil.
func (l *visibilityHeap) firstRecord() *record {
	for len(l.heap) > 0 {
		if l.heap[0].isCurrent() {
			return l.heap[0].record
		}
		l.stale--
		l.removeFirst()
	}
	return nil
}

// popFirst removes and returns the first record. The heap must not be empty.
func (l *visibilityHeap) popFirst() *record {
	r := l.firstRecord()
	r.version++
	l.removeFirst()
	l.compactIfNeeded()
	return r
}

func (l *visibilityHeap) add(r *record) {
	r.version++
	l.heap = append(l.heap, heapEntry{visible: r.visible.UnixNano(), serial: r.serial, record: r, version: r.version})
	l.siftUp(len(l.heap) - 1)
}

func (l *visibilityHeap) remove(r *record) {
	r.version++
	l.stale++
	l.compactIfNeeded()
}

// compactIfNeeded compacts the heap once more than half of its entries are stale, after a remove or a pop.
func (l *visibilityHeap) compactIfNeeded() {
	if l.stale > minStale && l.stale > len(l.heap)/2 {
		l.compact()
	}
}

// compact removes the stale entries.
func (l *visibilityHeap) compact() {
	kept := l.heap[:0]
	for _, p := range l.heap {
		if p.isCurrent() {
			kept = append(kept, p)
		}
	}
	clear(l.heap[len(kept):])
	l.heap, l.stale = kept, 0
	for i := len(kept)/2 - 1; i >= 0; i-- {
		l.siftDown(i)
	}
}

// removeFirst removes the first entry.
func (l *visibilityHeap) removeFirst() {
	last := len(l.heap) - 1
	l.heap[0] = l.heap[last]
	l.heap[last] = heapEntry{}
	l.heap = l.heap[:last]
	l.siftDown(0)
}

func (l *visibilityHeap) siftUp(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.heap[i].isBefore(&l.heap[parent]) {
			return
		}
		l.heap[i], l.heap[parent] = l.heap[parent], l.heap[i]
		i = parent
	}
}

func (l *visibilityHeap) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(l.heap) {
			return
		}
		if right := child + 1; right < len(l.heap) && l.heap[right].isBefore(&l.heap[child]) {
			child = right
		}
		if !l.heap[child].isBefore(&l.heap[i]) {
			return
		}
		l.heap[i], l.heap[child] = l.heap[child], l.heap[i]
		i = child
	}
}
