package interrupted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Joist's goals, which are checked only in the full comparison, because they need an
// otherwise idle machine.
const (
	perSecondMin = 4000
	cpuMax       = 10.0 // µs
	recoveryMax  = 2 * time.Second
)

// The scenes: calls without latency show the CPU time, and calls with AWS's latency show
// the waiting.
var scenes = []Scene{{}, {QueueTrip: 10 * time.Millisecond, APITrip: 5 * time.Millisecond}}

// TestSideBySide runs both sides on the same messages and prints the figures.
// JOIST_INTERRUPTED names a folder, and runs the full comparison: 15,000 messages,
// outages of 45 s in real time, and the goals.
func TestSideBySide(t *testing.T) {
	into := os.Getenv("JOIST_INTERRUPTED")
	messages := 600
	if into != "" {
		messages = 15_000
	}
	report := Report{Reading: Read(time.Now().Truncate(time.Second))}
	for _, scene := range scenes {
		for _, known := range []int{100, 50, 0} {
			results, err := Match(t.Context(), scene, known, Mix(messages, known, time.Now()), rounds(scene, into))
			if err != nil {
				t.Fatal(err)
			}
			report.Results = append(report.Results, results...)
		}
	}
	if into != "" {
		report.Outages = outages(t, 45*time.Second)
	}
	t.Logf("\n%s", report.Table())
	if into == "" {
		return
	}
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"interrupted.json": text, "interrupted.txt": []byte(report.Table())} {
		if err := os.WriteFile(filepath.Join(into, name), content, 0o600); err != nil {
			t.Error(err)
		}
	}
	promises(t, report)
}

// rounds returns the number of rounds in the full comparison: five if CPU time is
// measured, because a single run of a tenth of a second is imprecise, and one if waiting
// dominates.
func rounds(scene Scene, into string) int {
	if into == "" || scene.QueueTrip > 0 {
		return 1
	}
	return 5
}

// tries is the number of outages per side; the slowest recovery counts.
const tries = 5

// outages cuts each side off from each of its dependencies, all at the same time, because
// the sides are almost idle meanwhile.
func outages(t *testing.T, length time.Duration) []Outage {
	cuts, sides := []string{"queue", "api"}, []Side{Joist, Karpenter}
	all := make([]Outage, len(cuts)*len(sides))
	var mu sync.Mutex
	var wait sync.WaitGroup
	for c, cut := range cuts {
		for s, side := range sides {
			slowest := &all[c*len(sides)+s]
			for range tries {
				wait.Go(func() {
					outage, err := Recover(t.Context(), side, scenes[1], cut, length)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					if outage.AfterS >= slowest.AfterS {
						*slowest = outage
					}
				})
			}
		}
	}
	wait.Wait()
	return all
}

func promises(t *testing.T, r Report) {
	for _, x := range r.Results {
		if x.Side != Joist.Name {
			continue
		}
		if x.QueueMS > 0 && x.PerSecond < perSecondMin {
			t.Errorf("%.0f messages a second with %d %% known instances, want %d", x.PerSecond, x.Known, perSecondMin)
		}
		if x.QueueMS == 0 && x.CPUMicros > cpuMax {
			t.Errorf("%.1f µs of CPU per message with %d %% known instances, want %g", x.CPUMicros, x.Known, cpuMax)
		}
	}
	for _, x := range r.Outages {
		if x.Side == Joist.Name && x.AfterS > recoveryMax.Seconds() {
			t.Errorf("the first message was handled %.1f s after the %s was restored, want %s", x.AfterS, x.Cut, recoveryMax)
		}
	}
}

// TestRecover runs a short outage of both sides, to test the measurement itself.
func TestRecover(t *testing.T) {
	for _, outage := range outages(t, time.Second) {
		if outage.AfterS <= 0 || outage.AfterS > 30 {
			t.Errorf("%+v", outage)
		}
	}
}

// TestKarpenterReadsCorpus checks that the comparison is fair: Karpenter's parser reads
// AWS's events, and the corpus contains events that it loses.
func TestKarpenterReadsCorpus(t *testing.T) {
	r := Read(time.Now().Truncate(time.Second))
	if r.Lost == 0 || r.Lost > r.True/2 || r.Wrong == 0 || r.LostWarnings >= r.Warnings {
		t.Errorf("%+v", r)
	}
}
