package testbed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// Day is a world whose story has acts, and promises that hold in each.
type Day struct {
	*World
	// Patience multiplies every limit of time.
	Patience int
	// Broken are the promises that have been broken so far, and Now says in a line
	// how things stand.
	Broken func() []string
	Now    func() string

	mu   sync.Mutex
	acts []timeline.Act
}

// Act is a part of the day, without which the next makes no sense.
func (d *Day) Act(name string, play func()) {
	from := time.Since(d.Began)
	d.Say("▸ %s", name)
	play()
	to := time.Since(d.Began)
	d.mu.Lock()
	d.acts = append(d.acts, timeline.Act{Name: name, From: from, To: to})
	d.mu.Unlock()
	for _, promise := range d.Broken() {
		d.Error(promise)
	}
	if d.Failed() {
		d.Fatalf("%s went wrong\n%s", name, d.Tails())
	}
	done := fmt.Sprintf("✓ %s, in %.1f s", name, (to - from).Seconds())
	d.Say("%s", done)
	// The story comes at the end; whoever waits hears this much.
	fmt.Fprintln(os.Stderr, d.Name(), done)
}

// Acts are those that were played to their end.
func (d *Day) Acts() []timeline.Act {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.acts)
}

// Await waits, and tells how far it has come.
func (d *Day) Await(limit time.Duration, what string, holds func() bool) {
	d.Helper()
	var said time.Time
	d.Wait(limit*time.Duration(max(1, d.Patience)), what, func() bool {
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			d.Say("%s", d.Now())
		}
		return holds()
	})
}

// Keep writes what was measured, also of a day that went wrong, as name.json,
// name.svg and name.log into a folder, or into one that goes with the test.
func (d *Day) Keep(into, name string, report any, drawing []byte, summary string) {
	into = cmp.Or(into, d.TempDir())
	figures, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		d.Error(err)
	}
	d.Say("\n%s", summary)
	for suffix, text := range map[string][]byte{".svg": drawing, ".json": figures, ".log": []byte(d.Story())} {
		if err := os.WriteFile(filepath.Join(into, name+suffix), text, 0o600); err != nil {
			d.Error(err)
		}
	}
}
