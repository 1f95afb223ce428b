package memqueue

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestVisibilityHeapMatchesSortedList compares a heap with a list that is sorted before each access.
func TestVisibilityHeapMatchesSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l visibilityHeap
		var list []*record
		var serial uint64
		order := func(a, b *record) int {
			return cmp.Or(a.visible.Compare(b.visible), cmp.Compare(a.serial, b.serial))
		}
		pick := func(t *rapid.T) *record {
			if len(list) == 0 {
				t.Skip("the heap is empty")
			}
			return rapid.SampledFrom(list).Draw(t, "record")
		}
		out := func(r *record) {
			list = slices.DeleteFunc(list, func(other *record) bool { return other == r })
		}
		at := func(t *rapid.T) time.Time { return time.Unix(rapid.Int64Range(0, 9).Draw(t, "visible"), 0) }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "many") {
					serial++
					r := &record{serial: serial, visible: at(t)}
					l.add(r)
					list = append(list, r)
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "many") {
					r := pick(t)
					l.remove(r)
					out(r)
				}
			},
			"hide": func(t *rapid.T) {
				r := pick(t)
				l.remove(r)
				r.visible = at(t)
				l.add(r)
			},
			"next": func(t *rapid.T) {
				want := slices.MinFunc(append(list, pick(t)), order)
				if got := l.popFirst(); got != want {
					t.Fatalf("popped %d, want %d", got.serial, want.serial)
				}
				out(want)
			},
			"": func(t *rapid.T) {
				if l.len() != len(list) {
					t.Fatalf("len = %d, want %d", l.len(), len(list))
				}
				if len(list) == 0 {
					if l.firstRecord() != nil {
						t.Fatal("an empty heap has a first record")
					}
				} else if got, want := l.firstRecord(), slices.MinFunc(list, order); got != want {
					t.Fatalf("first record %d, want %d", got.serial, want.serial)
				}
				if got := slices.SortedFunc(l.allRecords(), order); !slices.Equal(got, slices.SortedFunc(slices.Values(list), order)) {
					t.Fatalf("all records = %v", got)
				}
				if l.stale > minStale && l.stale > len(l.heap)/2+1 {
					t.Fatalf("%d of %d entries are stale", l.stale, len(l.heap))
				}
			},
		})
	})
}
