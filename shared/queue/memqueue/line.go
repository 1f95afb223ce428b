package memqueue

import "iter"

// line orders records by when they become visible, then by age. It is a heap in
// which a record that leaves only gives up its place; the place goes when it comes
// to be the first, or when half of all places are given up. So receiving and
// deleting cost little in a queue of any length. The zero value is empty.
type line struct {
	heap []place
	// left counts the places that were given up.
	left int
}

// place is a record's place in line, with what it is ordered by.
type place struct {
	visible int64
	serial  uint64
	record  *record
	turn    uint32
}

func (p *place) before(other *place) bool {
	return p.visible < other.visible || p.visible == other.visible && p.serial < other.serial
}

// taken reports whether the record still stands here.
func (p *place) taken() bool { return p.record.turn == p.turn }

// leastLeft is how many places may be given up in any line.
const leastLeft = 32

func (l *line) len() int { return len(l.heap) - l.left }

// all are the records, in no order.
func (l *line) all() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for i := range l.heap {
			if l.heap[i].taken() && !yield(l.heap[i].record) {
				return
			}
		}
	}
}

// first is the record that is visible first, or nil.
func (l *line) first() *record {
	for len(l.heap) > 0 {
		if l.heap[0].taken() {
			return l.heap[0].record
		}
		l.left--
		l.drop()
	}
	return nil
}

// next takes the first out of a line that is not empty.
func (l *line) next() *record {
	r := l.first()
	r.turn++
	l.drop()
	l.tighten()
	return r
}

func (l *line) add(r *record) {
	r.turn++
	l.heap = append(l.heap, place{visible: r.visible.UnixNano(), serial: r.serial, record: r, turn: r.turn})
	l.up(len(l.heap) - 1)
}

func (l *line) remove(r *record) {
	r.turn++
	l.left++
	l.tighten()
}

// tighten closes ranks once half of the places are given up: by those who left, or by
// those who were served and made the line shorter.
func (l *line) tighten() {
	if l.left > leastLeft && l.left > len(l.heap)/2 {
		l.close()
	}
}

// close closes ranks: it drops the places that were given up.
func (l *line) close() {
	kept := l.heap[:0]
	for _, p := range l.heap {
		if p.taken() {
			kept = append(kept, p)
		}
	}
	clear(l.heap[len(kept):])
	l.heap, l.left = kept, 0
	for i := len(kept)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
}

// drop removes the first place.
func (l *line) drop() {
	last := len(l.heap) - 1
	l.heap[0] = l.heap[last]
	l.heap[last] = place{}
	l.heap = l.heap[:last]
	l.down(0)
}

func (l *line) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.heap[i].before(&l.heap[parent]) {
			return
		}
		l.heap[i], l.heap[parent] = l.heap[parent], l.heap[i]
		i = parent
	}
}

func (l *line) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(l.heap) {
			return
		}
		if right := child + 1; right < len(l.heap) && l.heap[right].before(&l.heap[child]) {
			child = right
		}
		if !l.heap[child].before(&l.heap[i]) {
			return
		}
		l.heap[i], l.heap[child] = l.heap[child], l.heap[i]
		i = child
	}
}
