package testbed

import (
	"slices"
	"strings"
)

// Stop stops Joist and fails the test if a process does not stop cleanly, a log line has level ERROR, or a message
// is lost or dead-lettered. With Options.ProxySeed, services in the cluster may log errors.
func (w *TestBed) Stop() {
	w.Helper()
	if complaints := w.StopAfterOutages(); len(complaints) > 0 {
		w.Errorf("lines of level ERROR:\n%s", strings.Join(complaints, "\n"))
	}
}

// StopAfterOutages is Stop for a run in which services were killed or could not reach others: it returns the log lines
// of level ERROR and does not fail because of them.
func (w *TestBed) StopAfterOutages() []string {
	w.Helper()
	for _, p := range w.processes {
		if err := p.stopProcess(); err != nil {
			w.Error(err)
		}
	}
	var complaints []string
	for _, p := range slices.Concat(w.stoppedProcesses, w.processes, w.functions) {
		// A service logs the requests that its proxy lets fail.
		failing := w.Proxies[strings.TrimPrefix(p.name, "joist-")] != nil
		if !failing {
			complaints = append(complaints, p.errorLines()...)
		}
	}
	w.processes = nil
	w.requireEmptyQueues()
	w.requireNoDenials()
	return complaints
}

// requireEmptyQueues requires that no message is lost or in a DLQ.
func (w *TestBed) requireEmptyQueues() {
	w.Helper()
	if err := w.Broker.CheckConservation(); err != nil {
		w.Error(err)
	}
	for _, name := range w.Broker.Queues() {
		q, _ := w.Broker.FindQueue(name)
		if visible, hidden, err := q.Depth(w.Ctx); strings.HasSuffix(name, "-dead") && (err != nil || visible+hidden > 0) {
			messages, _ := q.Receive(w.Ctx, 10, 0, 0)
			w.Errorf("%s has %d messages (%v)", name, visible+hidden, err)
			for _, m := range messages {
				w.Logf("%v %s", m.Attributes, m.Body)
			}
		}
	}
}
