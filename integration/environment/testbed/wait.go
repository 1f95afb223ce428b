package testbed

import (
	"fmt"
	"strings"
	"time"
)

// every calls f at once and then at each interval, until the world ends.
func (w *World) every(interval time.Duration, f func() error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := f(); err != nil && w.Ctx.Err() == nil {
			select {
			case w.trouble <- err:
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

// healthy says what is wrong beside the scenario.
func (w *World) healthy() error {
	for _, p := range append(append([]*process{}, w.processes...), w.functions...) {
		if err := p.ended(); err != nil {
			return err
		}
	}
	for _, f := range w.functions {
		if text := w.Server.Lambda.InitError(f.name); text != "" {
			return fmt.Errorf("%s did not start: %s\n%s", f.name, text, f.tail())
		}
	}
	select {
	case err := <-w.trouble:
		return err
	case <-w.Plane.Died():
		return w.Plane.Err()
	default:
		return nil
	}
}

// Wait looks on until the condition holds, and gives up after a limit.
func (w *World) Wait(limit time.Duration, what string, holds func() bool) {
	w.Helper()
	deadline := time.Now().Add(limit)
	for {
		if w.options.Look != nil {
			w.options.Look()
		}
		if holds() {
			return
		}
		if err := w.healthy(); err != nil {
			w.Fatalf("while waiting for %s: %v", what, err)
		}
		if time.Now().After(deadline) {
			w.Fatalf("waited %s for %s, in vain\n%s", limit, what, w.Tails())
		}
		select {
		case <-w.Cache.Changed():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Tails is the end of the log of every process.
func (w *World) Tails() string {
	var all []string
	for _, p := range append(append([]*process{}, w.processes...), w.functions...) {
		all = append(all, p.tail())
	}
	for _, text := range w.guard.Denied() {
		all = append(all, "--- denied: "+text)
	}
	return strings.Join(all, "\n")
}

// Check ends the test when there is an error.
func (w *World) Check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
