package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/launcher/internal/batch"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// callRecorder records the items of each call and rejects items that begin with "bad".
type callRecorder struct {
	mu       sync.Mutex
	made     []string
	err      error
	duration time.Duration
}

func (c *callRecorder) recordCall(ctx context.Context, bucket string, items []string) (map[string]string, error) {
	time.Sleep(c.duration)
	if err := ctx.Err(); err != nil {
		return nil, fault.E("asking", fault.Unknown, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, bucket+":"+strings.Join(items, ","))
	if c.err != nil {
		return nil, c.err
	}
	out := map[string]string{}
	for _, item := range items {
		if strings.HasPrefix(item, "bad") {
			kind := fault.Invalid
			if strings.HasPrefix(item, "bad-rejected") {
				kind = fault.Rejected
			}
			return nil, fault.F("asking", kind, "%s", item)
		}
		out[item] = "answer of " + item
	}
	return out, nil
}

// submitAfter submits an item after a delay. The returned function waits for its value or
// the kind of its error.
func submitAfter(b *batch.Batcher[string], after time.Duration, bucket, item string) func() string {
	out := make(chan string, 1)
	go func() {
		time.Sleep(after)
		value, err := b.Submit(context.Background(), bucket, item)
		if err != nil {
			value = string(fault.KindOf(err))
		}
		out <- value
	}()
	return func() string { return <-out }
}

func TestItemsShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callRecorder{}
		b := &batch.Batcher[string]{Call: c.recordCall}
		began := time.Now()
		answers := []func() string{
			submitAfter(b, 0, "x", "b"), submitAfter(b, 50*time.Millisecond, "x", "a"), submitAfter(b, 60*time.Millisecond, "x", "b"),
			submitAfter(b, 70*time.Millisecond, "y", "c"),
			submitAfter(b, 161*time.Millisecond, "x", "d"),
		}
		var got []string
		for _, answer := range answers {
			got = append(got, answer())
		}
		if diff := cmp.Diff([]string{"answer of b", "answer of a", "answer of b", "answer of c", "answer of d"}, got); diff != "" {
			t.Error(diff)
		}
		slices.Sort(c.made)
		if diff := cmp.Diff([]string{"x:a,b", "x:d", "y:c"}, c.made); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took != 261*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

// No item waits longer than a second, and no call has more ids than EC2 accepts.
func TestBatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callRecorder{}
		b := &batch.Batcher[string]{Call: c.recordCall}
		first := submitAfter(b, 0, "", "first")
		for i := range 40 {
			defer submitAfter(b, time.Duration(i)*50*time.Millisecond, "", fmt.Sprint("more-", i))()
		}
		began := time.Now()
		first()
		if took := time.Since(began); took != time.Second {
			t.Errorf("the first item waited %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := &callRecorder{}
		b := &batch.Batcher[string]{Call: c.recordCall}
		var all []func() string
		for i := range batch.MaxItems + 1 {
			all = append(all, submitAfter(b, 0, "", fmt.Sprintf("%05d", i)))
		}
		for _, answer := range all {
			answer()
		}
		if len(c.made) != 2 || strings.Count(c.made[0], ",") != batch.MaxItems-1 {
			t.Errorf("%d calls, the first with %d ids", len(c.made), strings.Count(c.made[0], ",")+1)
		}
	})
}

// A bad item fails alone; an error that concerns no item fails all.
func TestInvalidItemFailsAlone(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		items []string
		want  []string
		most  int
	}{
		{"one bad item", nil, []string{"a", "b", "bad", "c", "d"}, []string{"answer of a", "answer of b", "invalid", "answer of c", "answer of d"}, 7},
		{"only bad items", nil, []string{"bad1", "bad2"}, []string{"invalid", "invalid"}, 3},
		{"one rejected item", nil, []string{"a", "bad-rejected"}, []string{"answer of a", "rejected"}, 3},
		{"throttled", fault.E("x", fault.Throttled, nil), []string{"a", "b"}, []string{"throttled", "throttled"}, 1},
		{"no answer", fault.E("x", fault.Unknown, nil), []string{"a", "b"}, []string{"unknown", "unknown"}, 1},
		{"denied", fault.E("x", fault.Denied, nil), []string{"a", "b"}, []string{"denied", "denied"}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &callRecorder{err: test.err}
				b := &batch.Batcher[string]{Call: c.recordCall}
				var answers []func() string
				for _, item := range test.items {
					answers = append(answers, submitAfter(b, 0, "", item))
				}
				var got []string
				for _, answer := range answers {
					got = append(got, answer())
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
				if len(c.made) > test.most {
					t.Errorf("%d calls: %v", len(c.made), c.made)
				}
			})
		})
	}
}

// A cancelled caller does not cancel the call of the others, and a call has a timeout.
func TestCancelledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callRecorder{duration: time.Second}
		b := &batch.Batcher[string]{Call: c.recordCall}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		other := submitAfter(b, 10*time.Millisecond, "", "b")
		if _, err := b.Submit(ctx, "", "a"); !fault.Is(err, fault.Retry) {
			t.Errorf("got %v", err)
		}
		if got := other(); got != "answer of b" {
			t.Errorf("the other caller got %q", got)
		}
		if _, err := b.Submit(ctx, "", "a"); !fault.Is(err, fault.Retry) {
			t.Errorf("with an ended context: got %v", err)
		}
		time.Sleep(batch.MaxWait)
		if len(c.made) != 1 {
			t.Errorf("the calls %v were made, want none for a context that has ended", c.made)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := &batch.Batcher[string]{Timeout: time.Minute, Call: func(ctx context.Context, _ string, _ []string) (map[string]string, error) {
			<-ctx.Done()
			return nil, fault.E("asking", fault.Unknown, errors.New("hung"))
		}}
		began := time.Now()
		if _, err := b.Submit(t.Context(), "", "a"); !fault.Is(err, fault.Unknown) || time.Since(began) > 61*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
