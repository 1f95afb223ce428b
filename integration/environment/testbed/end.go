package testbed

import (
	"slices"
	"strings"
)

// Stop stops Joist, and looks for what it left behind: a process that stops
// badly, a line of level ERROR, a message that was lost or given up.
func (w *World) Stop() {
	w.Helper()
	for _, p := range w.processes {
		if err := p.stop(); err != nil {
			w.Error(err)
		}
	}
	for _, p := range slices.Concat(w.dead, w.processes, w.functions) {
		if complaints := p.errors(); len(complaints) > 0 {
			w.Errorf("lines of level ERROR:\n%s", strings.Join(complaints, "\n"))
		}
	}
	w.processes = nil
	w.judgeQueues()
	w.judgeRights()
}

// judgeQueues proves that no message was lost and none was given up.
func (w *World) judgeQueues() {
	w.Helper()
	if err := w.Broker.Conserved(); err != nil {
		w.Error(err)
	}
	for _, name := range w.Broker.Queues() {
		q, _ := w.Broker.Lookup(name)
		if visible, hidden, err := q.Depth(w.Ctx); strings.HasSuffix(name, "-dead") && (err != nil || visible+hidden > 0) {
			messages, _ := q.Receive(w.Ctx, 10, 0, 0)
			w.Errorf("%s holds %d messages (%v)", name, visible+hidden, err)
			for _, m := range messages {
				w.Logf("%v %s", m.Attributes, m.Body)
			}
		}
	}
}
