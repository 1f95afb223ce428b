package batch

import (
	"context"
	"testing"
	"time"
)

// The timer of a batch may fire while it is reset: the batch then closes twice, and its call is made once.
func TestBatchThatClosesTwice(t *testing.T) {
	calls := 0
	b := &Batcher[string]{Call: func(context.Context, string, []string) (map[string]string, error) {
		calls++
		return map[string]string{"a": "answer"}, nil
	}}
	w := b.joinWindow(t.Context(), "", "a")
	w.timer.Stop()
	b.closeWindow(t.Context(), "", w)
	b.closeWindow(t.Context(), "", w)
	if calls != 1 || w.answers["a"].value != "answer" {
		t.Errorf("%d calls, and the answers %v", calls, w.answers)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if answer, err := b.Submit(ctx, "", "a"); err != nil || answer != "answer" {
		t.Errorf("the next batch answers %q (%v)", answer, err)
	}
}
