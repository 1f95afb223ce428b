package contest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nine is a sample of nine nodes, which fake planners do not read.
var nine = Sample{Name: "e-9", Kind: "e", Path: "e-9.json", Nodes: 9}

func fakeFleet(t *testing.T, behaviour string) Planner {
	t.Helper()
	p := fake(t, behaviour)
	p.Command, p.Fleet = nil, p.Command
	return p
}

// lenient reports a violation in every consolidation that contains a word.
type lenient struct{ against string }

func (l lenient) CheckConsolidation(_ Sample, result []byte) ([]string, error) {
	return strict(l).CheckPlan(Sample{}, result)
}

func (lenient) RepackBound(Sample) (float64, error) { return 0.5, nil }

func TestConsolidationsAreMeasured(t *testing.T) {
	contest := Contest{Planners: []Planner{fakeFleet(t, "thrifty")}, Samples: []Sample{nine}, Runs: 2, Progress: func(int, int, string) {}}
	rows, err := contest.PlayFleets(t.Context(), lenient{})
	if err != nil {
		t.Fatal(err)
	}
	got := rows[0].Results[0]
	got.ProcessUserS = 0
	want := Consolidation{
		Planner: "thrifty", Version: "fake v1", Scenario: "e-9", Runs: 2, Nodes: 9, Pods: 40, Before: 4, After: 1.5, NodesAfter: 3, PodsMoved: 12, Complete: true,
		Steps: []Step{{"multi", 5, 1, 8, 2}, {"single", 2, 0, 4, 1.5}}, UserS: 0.25, Judged: true,
	}
	if diff := cmp.Diff(want, got); diff != "" || rows[0].Bound != 0.5 || !got.Valid() {
		t.Errorf("bound %f; measured (-want +got):\n%s", rows[0].Bound, diff)
	}
	for moves, saved := range map[int]float64{0: 0, 7: 0, 8: 2, 11: 2, 12: 2.5, 99: 2.5} {
		if is := got.SavedBy(moves); is != saved {
			t.Errorf("%d moves save %f, want %f", moves, is, saved)
		}
	}
	for moves, saved := range map[int]float64{0: 0, 4: 1, 8: 2, 10: 2.25, 12: 2.5, 99: 2.5} {
		if is := got.SavedAlong(moves); is != saved {
			t.Errorf("along the curve, %d moves save %f, want %f", moves, is, saved)
		}
	}
}

func TestFailedConsolidationsAreReported(t *testing.T) {
	hanging := fakeFleet(t, "hanging")
	hanging.Deadline = 50 * time.Millisecond
	for _, tt := range []struct {
		planner Planner
		judge   ConsolidationValidator
		want    string
	}{
		{fakeFleet(t, "honest"), nil, "the consolidation has 0 nodes, the scenario 9"},
		{fakeFleet(t, "crashing"), nil, "no memory left"},
		{fakeFleet(t, "babbling"), nil, "reading the consolidation"},
		{hanging, nil, "was stopped after 50ms"},
		{fakeFleet(t, "thrifty"), lenient{against: "fake"}, "is invalid"},
	} {
		got := consolidated(t.Context(), tt.planner, nine, tt.judge)
		if reported := got.Failure + strings.Join(got.Violations, ""); !strings.Contains(reported, tt.want) || got.Valid() {
			t.Errorf("%s: got %q, want %q", tt.planner.Name, reported, tt.want)
		}
	}
}
