// Package example has code for each operator, and tests that notice some of the mutants.
package example

import (
	"log/slog"
	"time"

	"example/internal/limits"
)

const notChanged = 7

// highest cannot grow.
var highest uint8 = 255

var wait = 2 * time.Second

// Queue is a queue.
type Queue struct {
	Items   []int
	Limit   float64
	dropped int
	state   struct{ closed bool }
}

// Add adds the positive items until one is 0, and returns the share of the limit that is used.
func (q *Queue) Add(items ...int) (share float64, ok bool) {
	if q.state.closed || len(items) > 5 && !limits.IsHigh(len(items)) {
		return 0, false
	}
	for _, item := range items {
		if item == 0 {
			break
		}
		if item < 0 {
			q.dropped++
			continue
		}
		q.add(item)
	}
	slog.Info("added", "wait", wait)
	return float64(len(q.Items)) / (q.Limit * 2), true
}

func (q *Queue) add(item int) {
	q.Items = append(q.Items, item)
	q.state.closed = len(q.Items)%notChanged == 6
}

// Sum adds the first items.
func Sum(items []int, n int) (sum int) {
	var table [4]int
	for i := 0; i < n; i++ {
		sum += items[i] + table[3]
	}
	return sum
}
