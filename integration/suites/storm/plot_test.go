package storm

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// canned returns an invented report: scale-up, twelve notices, scale-down.
func canned() Report {
	r := Report{Pods: 400, Acts: []timeline.Act{
		{Name: "up", From: 0, To: 20 * time.Second},
		{Name: "storm", From: 20 * time.Second, To: 80 * time.Second},
		{Name: "down", From: 80 * time.Second, To: 120 * time.Second},
	}}
	for i := range 480 {
		at := time.Duration(i) * 250 * time.Millisecond
		t := at.Seconds()
		up := math.Min(1, t/20) * math.Max(0, math.Min(1, (120-t)/30))
		r.Samples = append(r.Samples, Sample{
			At: at, Pending: int(math.Max(0, 400-40*t)), Running: int(400 * up),
			Nodes: int(40 * up), Instances: int(42 * up), Going: int(math.Max(0, 6-math.Abs(t-50)/4)),
		})
	}
	for i := range 12 {
		warned := 20*time.Second + time.Duration(i)*5*time.Second
		r.Notices = append(r.Notices, Notice{
			Instance: "i-0123456789abcdef0", Warned: warned, Cordoned: warned + time.Duration(300+i*i*12)*time.Millisecond,
			Evicting: warned + 2*time.Second, Drained: warned + 9*time.Second, Gone: warned + 15*time.Second, Ahead: i%2 == 0,
		})
	}
	return r
}

func TestDrawing(t *testing.T) {
	got, err := SVG(canned())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := SVG(canned()); err != nil || !bytes.Equal(got, again) {
			t.Fatalf("a second drawing of the same report differs (%v)", err)
		}
	}
	for _, want := range []string{"up", "storm", "down", "pods without a node", "being drained", "p99 1.75 s"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the drawing does not say %q", want)
		}
	}
	golden.Compare(t, "testdata/storm.svg", string(got))
}

func TestNothingToDraw(t *testing.T) {
	if _, err := SVG(Report{}); err == nil {
		t.Error("a drawing of nothing is made")
	}
	if _, err := SVG(Report{Samples: []Sample{{}}}); err != nil {
		t.Errorf("a day without a notice is not drawn: %v", err)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tt := range []struct {
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{nil, 50, 0},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 0, 1},
		{hundred[:1], 99, 1}, {hundred[:3], 50, 2}, {hundred[:10], 99, 10},
	} {
		if got := Percentile(tt.sorted, tt.p); got != tt.want {
			t.Errorf("percentile %g of %d times is %d, want %d", tt.p, len(tt.sorted), got, tt.want)
		}
	}
}

func TestSummary(t *testing.T) {
	want := []string{
		"up                             20.0 s", "storm                          60.0 s", "down                           40.0 s",
		"400 pods, at most 40 nodes, at most 400 pods without a node",
		"from warning to taint          12 of 12: p50  0.60 s, p99  1.75 s, worst  1.75 s",
		"from warning to drained        12 of 12: p50  9.00 s, p99  9.00 s, worst  9.00 s",
		"replacement claimed             6 of 12 before the first pod of the node went", "",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), canned().Summary()); diff != "" {
		t.Error(diff)
	}
	missed := canned()
	missed.Notices[0].Cordoned = 0
	if got := len(missed.Cordons()); got != 11 {
		t.Errorf("%d of 12 notices reached a taint, though one did not", got)
	}
}
