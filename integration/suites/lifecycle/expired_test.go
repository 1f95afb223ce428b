package lifecycle

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watches is a proxy between lifecycle and the API server that can cut lifecycle's
// watches.
type watches struct {
	http.RoundTripper

	mu sync.Mutex
	// cut rejects new watches.
	cut  bool
	open map[*watch]bool
	// gone counts the watches that got 410 Gone.
	gone int
}

func newWatches() *watches { return &watches{open: map[*watch]bool{}} }

func (w *watches) wrap(to http.RoundTripper) http.RoundTripper {
	w.RoundTripper = to
	return w
}

func (w *watches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return w.RoundTripper.RoundTrip(r)
	}
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return nil, fmt.Errorf("the watch was cut: %w", syscall.ECONNREFUSED)
	}
	w.mu.Unlock()
	answer, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusGone {
		w.expired()
	}
	body := &watch{ReadCloser: answer.Body, of: w}
	w.mu.Lock()
	w.open[body] = true
	w.mu.Unlock()
	answer.Body = body
	return answer, nil
}

func (w *watches) expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone++
}

// answered returns how many watches got 410 Gone.
func (w *watches) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

// watch is the body of one watch response.
type watch struct {
	io.ReadCloser
	of *watches
	// closed makes the body end without an error, like a watch whose time is over.
	closed atomic.Bool
}

// Read detects the event with which the API server reports an expired resource version.
func (b *watch) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.closed.Load() {
		err = io.EOF
	}
	if bytes.Contains(p[:n], []byte("too old resource version")) {
		b.of.expired()
	}
	return n, err
}

func (b *watch) Close() error {
	b.of.mu.Lock()
	delete(b.of.open, b)
	b.of.mu.Unlock()
	return b.ReadCloser.Close()
}

// closeAll cuts every watch and returns their number.
func (w *watches) closeAll() int {
	w.mu.Lock()
	w.cut = true
	var open []*watch
	for body := range w.open {
		open = append(open, body)
	}
	w.mu.Unlock()
	for _, body := range open {
		body.closed.Store(true)
		_ = body.Close()
	}
	return len(open)
}

// reopen permits watches again.
func (w *watches) reopen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// TestExpiredWatches cuts lifecycle's watches during drains and restarts the API server, which
// answers each resumed watch with 410 Gone, as after a compaction. Changes in between are
// visible only in a new list: a budget permitted an eviction, a pod was deleted, and
// another was created with the name of a deleted one.
func TestExpiredWatches(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	s := newSite(t)
	waits, other := s.machine("waits"), s.machine("other")
	waits.pod("kept")
	waits.budget("kept", "kept", 1)
	first := other.pod("db-0")
	other.budget("db-0", "db-0", 1)
	waits.deleteClaim()
	other.deleteClaim()
	waits.waitForEvent(30*time.Second, "FailedDraining", "PodDisruptionBudget kept")

	if open := s.watches.closeAll(); open < 8 {
		s.Fatalf("only %d watches were open, want one for each of 8 kinds", open)
	}
	waits.endPod("kept")
	other.endPod("db-0")
	s.check(s.kube.CoreV1().ConfigMaps("default").Delete(s.Context(), "db-0", metav1.DeleteOptions{}))
	second := other.pod("db-0", func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" })
	if first.UID == second.UID {
		s.Fatal("the pod was not replaced")
	}
	s.check(s.plane.Restart(s.Context()))
	s.watches.reopen()

	// client-go restarts a watch after up to a minute, depending on how long the API
	// server was unavailable; the test's time limits start after that.
	s.waitUntil(time.Minute, "answered with 410 for each of 8 kinds", func() bool { return s.watches.answered() >= 8 })
	waits.requireTermination()
	other.requireTermination()
	if gone, _ := other.podDeletion("db-0"); gone {
		s.Error("the successor of a drained pod on another node was evicted")
	}
}
