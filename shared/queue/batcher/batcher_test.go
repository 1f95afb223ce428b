package batcher_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

const trip = 10 * time.Millisecond

// road records the calls, each of which takes one trip time.
type road struct {
	mu             sync.Mutex
	calls          [][]int
	now, busiest   int
	bad            int // a call with this item is rejected
	panics, broken error
}

func (r *road) call(ctx context.Context, items []int) error {
	r.mu.Lock()
	r.calls = append(r.calls, slices.Clone(items))
	r.now++
	r.busiest = max(r.busiest, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now--
	}()
	select {
	case <-time.After(trip):
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case r.panics != nil:
		panic(r.panics)
	case r.bad != 0 && slices.Contains(items, r.bad):
		return fault.F("calling", fault.Invalid, "%d is bad", r.bad)
	default:
		return r.broken
	}
}

// sizes returns the sizes of the calls.
func (r *road) sizes() []int {
	var out []int
	for _, c := range r.calls {
		out = append(out, len(c))
	}
	return out
}

// all starts n callers one after another, each with its number, before the first call ends, and returns their
// results.
func all(t *testing.T, n int, do func(ctx context.Context, item int) error) []error {
	t.Helper()
	answers := make([]error, n+1)
	var wait sync.WaitGroup
	for i := 1; i <= n; i++ {
		wait.Go(func() { answers[i] = do(t.Context(), i) })
		synctest.Wait()
	}
	wait.Wait()
	return answers[1:]
}

func TestCallersShare(t *testing.T) {
	for _, c := range []struct {
		name    string
		options batcher.Options[int]
		n       int
		want    []int
		took    time.Duration
	}{
		{"a lone caller", batcher.Options[int]{MaxCalls: 1, MaxItems: 10}, 1, []int{1}, trip},
		{"as many as lanes", batcher.Options[int]{MaxCalls: 4, MaxItems: 10}, 4, []int{1, 1, 1, 1}, trip},
		{"the rest together", batcher.Options[int]{MaxCalls: 1, MaxItems: 10}, 25, []int{1, 10, 10, 4}, 4 * trip},
		{"over two lanes", batcher.Options[int]{MaxCalls: 2, MaxItems: 10}, 22, []int{1, 1, 10, 10}, 2 * trip},
		{"by weight", batcher.Options[int]{MaxCalls: 1, MaxItems: 10, MaxWeight: 9, ItemWeight: func(i int) int { return i }}, 6, []int{1, 3, 1, 1}, 4 * trip},
		{"one at a time", batcher.Options[int]{}, 3, []int{1, 1, 1}, 3 * trip},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r road
				c.options.Call = r.call
				shared := batcher.New(c.options)
				began := time.Now()
				answers := all(t, c.n, func(ctx context.Context, item int) error { return shared.Do(ctx, item) })
				if took := time.Since(began); took != c.took || !slices.Equal(r.sizes(), c.want) {
					t.Errorf("calls of %v in %s, want %v in %s", r.sizes(), took, c.want, c.took)
				}
				if r.busiest > max(1, c.options.MaxCalls) || errors.Join(answers...) != nil {
					t.Errorf("%d calls at a time: %v", r.busiest, answers)
				}
				// Calls that start at the same time are recorded in any order.
				slices.SortStableFunc(r.calls, slices.Compare[[]int])
				var seen []int
				for _, call := range r.calls {
					seen = append(seen, call...)
				}
				for i := range c.n {
					if seen[i] != i+1 {
						t.Fatalf("out of order: %v", seen)
					}
				}
			})
		})
	}
}

// A bad item fails only its own caller.
func TestEachHearsItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := road{bad: 5}
		shared := batcher.New(batcher.Options[int]{MaxCalls: 1, MaxItems: 10, Call: r.call})
		for i, err := range all(t, 8, func(ctx context.Context, item int) error { return shared.Do(ctx, item) }) {
			if (i+1 == 5) != fault.Is(err, fault.Invalid) || i+1 != 5 && err != nil {
				t.Errorf("%d: %v", i+1, err)
			}
		}
		if want := []int{1, 7, 1, 1, 1, 1, 1, 1, 1}; !slices.Equal(r.sizes(), want) {
			t.Errorf("calls of %v, want %v", r.sizes(), want)
		}
	})
}

// An error that affects all callers is returned to all, and not retried here.
func TestAnOutageIsEverybodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := road{broken: fault.F("calling", fault.Retry, "down")}
		shared := batcher.New(batcher.Options[int]{MaxCalls: 1, MaxItems: 10, Call: r.call})
		for _, err := range all(t, 5, func(ctx context.Context, item int) error { return shared.Do(ctx, item) }) {
			if !fault.Is(err, fault.Retry) {
				t.Error(err)
			}
		}
		if want := []int{1, 4}; !slices.Equal(r.sizes(), want) {
			t.Errorf("calls of %v, want %v", r.sizes(), want)
		}
	})
}

// A caller whose context ends fails alone: while waiting, as the one that makes the call, or in another's call.
func TestGivingUp(t *testing.T) {
	for name, c := range map[string]struct {
		who   int // whose context ends
		after time.Duration
		want  []int
	}{
		"in the line":  {3, trip / 2, []int{1, 2}},
		"at the wheel": {2, trip + trip/2, []int{1, 3, 1, 1}},
		"on board":     {3, trip + trip/2, []int{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r road
				shared := batcher.New(batcher.Options[int]{MaxCalls: 1, MaxItems: 10, Call: r.call})
				answers := all(t, 4, func(ctx context.Context, item int) error {
					if item == c.who {
						limited, cancel := context.WithTimeout(ctx, c.after)
						defer cancel()
						ctx = limited
					}
					return shared.Do(ctx, item)
				})
				for i, err := range answers {
					gaveUp := i+1 == c.who && name != "on board"
					if errors.Is(err, context.DeadlineExceeded) != gaveUp || !gaveUp && err != nil {
						t.Errorf("%d: %v", i+1, err)
					}
				}
				if !slices.Equal(r.sizes(), c.want) {
					t.Errorf("calls of %v, want %v", r.sizes(), c.want)
				}
			})
		})
	}
}

// A panic reaches its caller; the others get a Bug error, and the slot is reused.
func TestAPanicFreesTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := road{panics: errors.New("oh")}
		shared := batcher.New(batcher.Options[int]{MaxCalls: 1, MaxItems: 10, Call: r.call})
		panicked := 0
		var mu sync.Mutex
		answers := all(t, 4, func(ctx context.Context, item int) (err error) {
			defer func() {
				if recover() != nil {
					mu.Lock()
					defer mu.Unlock()
					panicked++
				}
			}()
			return shared.Do(ctx, item)
		})
		bugs := 0
		for _, err := range answers {
			if fault.Is(err, fault.Bug) {
				bugs++
			}
		}
		if panicked != 2 || bugs != 2 {
			t.Errorf("%d calls panicked and %d requests got fault.Bug", panicked, bugs)
		}
		r.panics = nil
		if err := shared.Do(t.Context(), 9); err != nil {
			t.Error(err)
		}
	})
}
