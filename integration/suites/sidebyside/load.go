package sidebyside

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// stepLength is the interval of the traces.
const stepLength = 5 * time.Minute

//go:embed testdata/day.csv
var dayFile []byte

// Day is one day of load. Its traces have one value for each step, as a part of the day's maximum.
type Day struct {
	Traces map[string][]float64
	Apps   []App
}

// App is a Deployment.
type App struct {
	Name        string
	CPU, Memory string
	// CapacityType is the node selector of the pods.
	CapacityType string
	// Trace is the trace that the replicas follow, and Most their number at its maximum.
	Trace string
	Most  int
	// Shift is by how many steps the app is behind its trace, and Noise the standard deviation of its replicas in parts of the
	// trace's value.
	Shift int
	Noise float64
	// Kept is how many percent of the replicas a PodDisruptionBudget keeps available; zero is no budget.
	Kept int
	// Protected pods have the annotation karpenter.sh/do-not-disrupt.
	Protected bool
	// Rolls are the times of day at which all pods are replaced by a rolling update.
	Rolls []time.Duration
}

// LoadStep is the state that the load requires from a time of day on.
type LoadStep struct {
	At time.Duration
	// Replicas are the numbers of all apps, and Rolled the apps whose rolling update begins.
	Replicas map[string]int
	Rolled   []string
}

// ReadTraces reads the traces of a day, and scales each to a maximum of 1. Lines with # are comments.
func ReadTraces(text []byte) (map[string][]float64, error) {
	reader := csv.NewReader(bytes.NewReader(text))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading traces: %w", err)
	}
	if want := int(24*time.Hour/stepLength) + 1; len(rows) != want {
		return nil, fmt.Errorf("reading traces: %d lines with the names, want %d: one for each %s of a day", len(rows), want, stepLength)
	}
	out := map[string][]float64{}
	for column, name := range rows[0] {
		most := 0.0
		for i, row := range rows[1:] {
			value, err := strconv.ParseFloat(row[column], 64)
			if err != nil || value < 0 {
				return nil, fmt.Errorf("reading traces: value %d of %s is %q, want a number of at least 0", i+1, name, row[column])
			}
			out[name], most = append(out[name], value), max(most, value)
		}
		if most == 0 {
			return nil, fmt.Errorf("reading traces: all values of %s are 0", name)
		}
		for i := range out[name] {
			out[name][i] /= most
		}
	}
	return out, nil
}

// Names of traces. The nightly one is not in the file: it is 1 from 1:00 to 3:00 and from 22:00 to 23:00, and 0 otherwise.
const (
	azureTrace   = "azure"
	googleTrace  = "google"
	nightlyTrace = "nightly"
)

// NewDay returns the day of the embedded traces, with apps whose differences depend on the seed. Its scale multiplies the
// number of replicas.
func NewDay(seed uint64, scale float64) (Day, error) {
	traces, err := ReadTraces(dayFile)
	if err != nil {
		return Day{}, err
	}
	for i := range traces[azureTrace] {
		value := 0.0
		if hour := time.Duration(i) * stepLength / time.Hour; hour == 1 || hour == 2 || hour == 22 {
			value = 1
		}
		traces[nightlyTrace] = append(traces[nightlyTrace], value)
	}
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a repeatable load
	web := App{CapacityType: "on-demand", Trace: azureTrace, Noise: 0.03, Kept: 80}
	worker := App{CapacityType: "spot", Trace: googleTrace, Noise: 0.05}
	nightly := App{CapacityType: "spot", Trace: nightlyTrace, Protected: true}
	d := Day{Traces: traces, Apps: []App{
		web.of("web-0", "500m", "1Gi", 30), web.of("web-1", "1", "2Gi", 24), web.of("web-2", "250m", "512Mi", 20),
		web.of("web-3", "1500m", "3Gi", 16), web.of("web-4", "750m", "3Gi", 12), web.of("web-5", "2", "8Gi", 8),
		worker.of("worker-0", "1", "2Gi", 20), worker.of("worker-1", "2", "8Gi", 16), worker.of("worker-2", "500m", "1Gi", 12),
		worker.of("worker-3", "3500m", "6Gi", 6), nightly.of("nightly-0", "3", "12Gi", 10),
	}}
	for i := range d.Apps {
		a := &d.Apps[i]
		a.Most = max(1, int(math.Round(float64(a.Most)*scale)))
		if a.Trace != nightlyTrace {
			a.Shift = random.IntN(13) - 6
		}
		if a.Trace == azureTrace {
			a.Rolls = []time.Duration{time.Duration(8+i) * time.Hour, time.Duration(15+i) * time.Hour}
		}
	}
	return d, nil
}

func (a App) of(name, cpu, memory string, most int) App {
	a.Name, a.CPU, a.Memory, a.Most = name, cpu, memory, most
	return a
}

// Steps returns the day from one time to another. The same seed gives the same steps.
func (d Day) Steps(seed uint64, from, to time.Duration) []LoadStep {
	random := rand.New(rand.NewPCG(seed, seed+1)) //nolint:gosec // a repeatable load
	var out []LoadStep
	for i := range int(24 * time.Hour / stepLength) {
		step := LoadStep{At: time.Duration(i) * stepLength, Replicas: map[string]int{}}
		for _, a := range d.Apps {
			trace := d.Traces[a.Trace]
			value := trace[(i-a.Shift+len(trace))%len(trace)] * (1 + a.Noise*random.NormFloat64())
			step.Replicas[a.Name] = max(0, int(math.Round(float64(a.Most)*value)))
			for _, at := range a.Rolls {
				if at == step.At {
					step.Rolled = append(step.Rolled, a.Name)
				}
			}
		}
		if step.At >= from && step.At < to {
			out = append(out, step)
		}
	}
	return out
}
