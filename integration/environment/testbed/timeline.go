package testbed

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// Timeline runs the phases of a scenario and requires that promises hold in each.
type Timeline struct {
	*TestBed
	// Patience multiplies every time limit.
	Patience int
	// Broken returns the promises that have been broken, and Now the state in one line.
	Broken func() []string
	Now    func() string

	mu   sync.Mutex
	acts []timeline.Act
}

// RunPhase runs one phase and stops the test if it fails.
func (d *Timeline) RunPhase(name string, play func()) {
	d.TestBed.RunPhase(name, func() {
		from := time.Since(d.Began)
		play()
		d.mu.Lock()
		d.acts = append(d.acts, timeline.Act{Name: name, From: from, To: time.Since(d.Began)})
		d.mu.Unlock()
		for _, promise := range d.Broken() {
			d.Error(promise)
		}
	})
}

// Phases returns the completed phases.
func (d *Timeline) Phases() []timeline.Act {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.acts)
}

// WaitFor waits for a condition and logs the progress. The limit is that of WaitWhileChanging for the state that Now describes.
func (d *Timeline) WaitFor(limit time.Duration, what string, holds func() bool) {
	d.Helper()
	var logged time.Time
	d.WaitWhileChanging(limit*time.Duration(max(1, d.Patience)), what, d.Now, func() bool {
		if time.Since(logged) > 2*time.Second {
			logged = time.Now()
			d.Logf("%s", d.Now())
		}
		return holds()
	})
}

// WriteResults writes the measurements, also of a failed test, as name.json, name.svg and name.log.
func (d *Timeline) WriteResults(into, name string, report any, drawing []byte, summary string) {
	into = cmp.Or(into, d.TempDir())
	figures, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		d.Error(err)
	}
	d.Logf("\n%s", summary)
	d.output.Lock()
	log := []byte(d.log.String())
	d.output.Unlock()
	for suffix, text := range map[string][]byte{".svg": drawing, ".json": figures, ".log": log} {
		if err := os.WriteFile(filepath.Join(into, name+suffix), text, 0o600); err != nil {
			d.Error(err)
		}
	}
}
