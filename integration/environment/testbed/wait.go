package testbed

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// runEvery calls f at once and then at each interval until the test bed ends.
func (w *TestBed) runEvery(interval time.Duration, f func() error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := f(); err != nil && w.Ctx.Err() == nil && !w.options.Outages {
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
		// During outages a service may end by itself, and the test starts it again (StartEnded).
		if err := p.exitError(); err != nil && !p.killed && !w.options.Outages {
			return err
		}
	}
	if w.karpenter != nil {
		if err := w.karpenter.exitError(); err != nil {
			return err
		}
	}
	for i, f := range w.functions {
		if text := w.Server.Lambda.InitError(w.functionNames[i]); text != "" {
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
	w.waitWith(&patience{limit: limit, most: limit}, what, nil, holds)
}

// maxExtension is by how much WaitWhileChanging extends its limit at most. A cluster that changes back and forth ends the wait.
const maxExtension = 4

// WaitWhileChanging waits until the condition is true, and fails the test when the state has not changed for the limit, or
// after maxExtension times the limit. A machine with other work needs more time for the same steps, but it takes each of them.
func (w *TestBed) WaitWhileChanging(limit time.Duration, what string, state func() string, holds func() bool) {
	w.Helper()
	w.waitWith(&patience{limit: limit, most: maxExtension * limit}, what, state, holds)
}

func (w *TestBed) waitWith(p *patience, what string, state func() string, holds func() bool) {
	w.Helper()
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
		now := ""
		if state != nil {
			now = state()
		}
		if why := p.checkState(now, time.Now()); why != "" {
			w.Fatalf("timed out waiting for %s: %s\n%s", what, why, w.LastLogs())
		}
		select {
		case <-w.Cache.Changed():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// patience limits a wait: by limit since the last change of a state, and by most since the first check.
type patience struct {
	limit, most time.Duration

	began, changed time.Time
	state          string
}

// checkState records the state, and returns why the wait is over; empty if it is not.
func (p *patience) checkState(state string, now time.Time) string {
	if p.began.IsZero() {
		p.began = now
	}
	if p.changed.IsZero() || state != p.state {
		p.changed, p.state = now, state
	}
	switch {
	case now.Sub(p.began) > p.most:
		return fmt.Sprintf("it took longer than %s", p.most)
	case now.Sub(p.changed) > p.limit:
		return fmt.Sprintf("nothing changed for %s", p.limit)
	}
	return ""
}

// RunPhase runs a phase that the following ones depend on, and stops the test if it fails.
func (w *TestBed) RunPhase(name string, play func()) {
	began := time.Now()
	w.Logf("▸ %s", name)
	play()
	if w.Failed() {
		w.Fatalf("%s went wrong\n%s", name, w.LastLogs())
	}
	done := fmt.Sprintf("✓ %s, in %.1f s", name, time.Since(began).Seconds())
	w.Logf("%s", done)
	// The log is printed at the end; this line shows the progress.
	fmt.Fprintln(os.Stderr, w.Name(), done)
}

// WaitForPods waits until n pods with the label app run and no other pod has it, on nodes whose NodeClaims are initialized and
// whose instances have their name.
func (w *TestBed) WaitForPods(app string, n int) {
	w.Helper()
	w.WaitUntil(90*time.Second, fmt.Sprintf("%d running pods, and initialized and tagged nodes", n), func() bool {
		for _, claim := range w.Claims() {
			r, _ := w.Cloud.Record(InstanceID(claim.Status.ProviderID))
			if !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || r.Tags[karpenter.NodeClaimTagKey] != claim.Name {
				return false
			}
		}
		return w.CountRunningPods(app) == n && len(w.Pods(app)) == n
	})
}

// CountRunningPods counts the ready pods with the label app that are not being deleted.
func (w *TestBed) CountRunningPods(app string) int {
	n := 0
	for _, pod := range w.Pods(app) {
		if pod.DeletionTimestamp == nil && IsPodReady(pod) {
			n++
		}
	}
	return n
}

// RequireNoOrphans fails the test if NodeClaims, Nodes of NodePools and instances do not belong together.
func (w *TestBed) RequireNoOrphans() {
	w.Helper()
	var claims, nodes, instances []string
	for _, c := range w.Claims() {
		claims = append(claims, InstanceID(c.Status.ProviderID))
	}
	for _, n := range w.ManagedNodes() {
		nodes = append(nodes, InstanceID(n.Spec.ProviderID))
	}
	for _, r := range w.RunningInstances() {
		instances = append(instances, r.ID)
	}
	for _, list := range [][]string{claims, nodes, instances} {
		slices.Sort(list)
	}
	if !slices.Equal(claims, instances) || !slices.Equal(nodes, instances) {
		w.Errorf("instances %s, of NodeClaims %s, of Nodes %s", strings.Join(instances, " "), strings.Join(claims, " "), strings.Join(nodes, " "))
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
		w.Fatalf("%v", err)
	}
}
