package consolidation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/timeline"
)

// canned returns an invented report: 40 nodes become 12.
func canned() Report {
	r := Report{
		Pods: 100, Before: 8, After: 2.4, Fresh: 2.2, NodesBefore: 40, NodesAfter: 12,
		Acts: []timeline.Act{{Name: "apart", From: 0, To: 10 * time.Second}, {Name: "together", From: 10 * time.Second, To: 60 * time.Second}},
	}
	for i := range 120 {
		gone := min(28, max(0, i-20)/2)
		r.Samples = append(r.Samples, Sample{
			At: time.Duration(i) * 500 * time.Millisecond, PerHour: 8 - 0.2*float64(gone), Nodes: 40 - gone,
			Going: i / 20 % 3, Allowed: (40 - gone + 9) / 10, Running: 100, Evicted: 3 * gone,
		})
	}
	return r
}

func TestDrawReport(t *testing.T) {
	got, err := SVG(canned())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apart", "together", "US dollars an hour", "a fresh plan for the same pods", "allowed", "pods moved"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the drawing does not contain %q", want)
		}
	}
	golden.Compare(t, "testdata/consolidation.svg", string(got))
	if _, err := SVG(Report{}); err == nil {
		t.Error("an empty report has a drawing")
	}
}

func TestSummarizeReport(t *testing.T) {
	want := []string{
		"apart                          10.0 s", "together                       50.0 s",
		"100 pods on 40 nodes for $8.00/h became 12 nodes for $2.40/h; a fresh plan would cost $2.20/h",
		"84 pods were moved, 0.84 of the running pods; at most 2 nodes went at a time", "",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), canned().Summary()); diff != "" {
		t.Error(diff)
	}
}
