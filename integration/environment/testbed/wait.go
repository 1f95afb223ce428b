package testbed

import (
	"fmt"
	"strings"
	"time"
)

// runEvery calls f at once and then at each interval until the test bed ends.
func (w *TestBed) runEvery(interval time.Duration, f func() error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := f(); err != nil && w.Ctx.Err() == nil {
			select {
			case w.backgroundErrors <- err:
			default: // the first hundred are enough
			}
		}
		select {
		case <-w.Ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkHealth returns errors of processes and background work.
func (w *TestBed) checkHealth() error {
	for _, p := range append(append([]*process{}, w.processes...), w.functions...) {
		if err := p.exitError(); err != nil {
			return err
		}
	}
	if w.karpenter != nil {
		if err := w.karpenter.exitError(); err != nil {
			return err
		}
	}
	for _, f := range w.functions {
		if text := w.Server.Lambda.InitError(f.name); text != "" {
			return fmt.Errorf("%s did not start: %s\n%s", f.name, text, f.lastLines())
		}
	}
	select {
	case err := <-w.backgroundErrors:
		return err
	case <-w.Plane.Died():
		return w.Plane.Err()
	default:
		return nil
	}
}

// WaitUntil waits until the condition is true, and fails the test after the limit.
func (w *TestBed) WaitUntil(limit time.Duration, what string, holds func() bool) {
	w.Helper()
	deadline := time.Now().Add(limit)
	for {
		if w.options.Look != nil {
			w.options.Look()
		}
		if holds() {
			return
		}
		if err := w.checkHealth(); err != nil {
			w.Fatalf("while waiting for %s: %v", what, err)
		}
		if time.Now().After(deadline) {
			w.Fatalf("timed out after %s waiting for %s\n%s", limit, what, w.LastLogs())
		}
		select {
		case <-w.Cache.Changed():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// LastLogs returns the end of the log of every process.
func (w *TestBed) LastLogs() string {
	var all []string
	for _, p := range append(append([]*process{}, w.processes...), w.functions...) {
		all = append(all, p.lastLines())
	}
	if w.karpenter != nil {
		all = append(all, w.karpenter.lastLines())
	}
	for _, text := range w.authorizer.Denied() {
		all = append(all, "--- denied: "+text)
	}
	return strings.Join(all, "\n")
}

// RequireNoError ends the test if err is not nil.
func (w *TestBed) RequireNoError(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
