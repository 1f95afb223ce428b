package sidebyside

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

// inventedReport returns two sides of a whole day: the second has a cheaper afternoon, and twice the evictions.
func inventedReport() Comparison {
	r := Comparison{Seed: 1, To: 24 * time.Hour, Pace: 120}
	for i, name := range []string{"one", "other"} {
		side := DayMeasurements{
			Name: name, Fill: 10 * time.Second, Starts: []time.Duration{time.Second, 2 * time.Second, 9 * time.Second},
			Fleet:   []NodeLife{{}, {To: 2 * time.Hour}, {From: time.Hour, To: 2 * time.Hour}, {From: time.Hour, To: 3 * time.Hour}, {From: time.Hour}},
			Evicted: 24 * (i + 1), Lost: i, CPUSeconds: map[string]float64{"a": 1.5, "b": 2}, LoadAverage: 2,
		}
		for hour := range 25 {
			sample := DaySample{At: time.Duration(hour) * time.Hour, PerHour: 4, Nodes: 10 + hour/3, Pending: hour % 5, Running: 100, Evicted: hour * (i + 1)}
			if i == 1 && hour >= 12 {
				sample.PerHour = 3
			}
			side.Samples = append(side.Samples, sample)
		}
		r.Sides = append(r.Sides, side)
	}
	return r
}

func TestDrawReport(t *testing.T) {
	got, err := SVG(inventedReport())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "other", "from 18:00", "US dollars an hour", "evictions"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the drawing does not contain %q", want)
		}
	}
	golden.Compare(t, "testdata/sidebyside.svg", string(got))
	if _, err := SVG(Comparison{To: time.Hour, Pace: 1, Sides: []DayMeasurements{{Name: "one"}}}); err == nil {
		t.Error("a side without samples has a drawing")
	}
}

func TestWriteTable(t *testing.T) {
	want := `|  | one | other |
|---|---|---|
| cost of the 24 hours | $96.00 | $84.00 |
| pods that started | 3 | 3 |
| creation to running, median | 2.0 s | 2.0 s |
| p95 | 9.0 s | 9.0 s |
| maximum | 9.0 s | 9.0 s |
| pods without a node, mean | 1.92 | 1.92 |
| pods without a node, maximum | 4 | 4 |
| evictions | 24 | 48 |
| pods deleted with their nodes | 0 | 1 |
| nodes launched | 3 | 3 |
| nodes removed | 3 | 3 |
| nodes removed within an hour of their launch | 1 | 1 |
| nodes, maximum | 18 | 18 |
| from an empty cluster to the first hour's pods | 10.0 s | 10.0 s |
| CPU of the controllers | 4 s | 4 s |
| load average of the machine | 2.0 | 2.0 |
`
	if diff := cmp.Diff(want, inventedReport().Table()); diff != "" {
		t.Error(diff)
	}
}
