package contest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakePlanner as the first argument makes this test binary a planner, which prints the
// plan named by the second argument.
const fakePlanner = "fake-planner"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == fakePlanner {
		os.Exit(pretend(os.Args[2]))
	}
	os.Exit(m.Run())
}

// pretend prints the output of the named behaviour and returns its exit status.
func pretend(behaviour string) int {
	const plan = `{"planner": "fake v1", "pods": 3, "newNodes": [{"price": 0.25, "options": 9}, {"price": 0.5, "options": 4}],
		"summary": {"newNodes": %d, "scheduled": %d, "unscheduled": 0, "dollarsPerHour": 99, "solveUserS": 0.25, "solveMallocs": 7}}`
	switch behaviour {
	case "honest":
		fmt.Printf(plan, 2, 3)
	case "diligent":
		fmt.Printf(plan, 2, 3)
	case "forgetful":
		fmt.Printf(plan, 2, 2)
	case "miscounting":
		fmt.Printf(plan, 1, 3)
	case "thrifty":
		fmt.Print(`{"planner": "fake v1", "nodes": 9, "pods": 40, "costBefore": 4, "costAfter": 1.5, "nodesAfter": 3, "podsMoved": 12, "complete": true, "userS": 0.25, "rounds": [
			{"method": "multi", "removed": ["a", "b", "c", "d", "e"], "replacements": [{}], "podsMoved": 8, "costAfter": 2}, {"method": "single", "removed": ["f", "g"], "podsMoved": 4, "costAfter": 1.5}]}`)
	case "crashing":
		fmt.Fprintln(os.Stderr, "no memory left")
		return 3
	case "babbling":
		fmt.Println("here is your plan:")
	case "hanging":
		time.Sleep(time.Hour)
	}
	return 0
}

func fake(t *testing.T, behaviour string) Planner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Planner{Name: behaviour, Command: []string{self, fakePlanner, behaviour, File}, Deadline: time.Minute}
}

// three is a sample of three pods, which fake planners do not read.
var three = Sample{Name: "a-3", Kind: "a", Path: "a-3.json", Pods: 3}

func TestPlannerOutputIsMeasured(t *testing.T) {
	m := once(t.Context(), fake(t, "honest"), three, nil)
	// Dollars is the sum of the nodes' prices, not the summary's value.
	want := Measurement{
		Planner: "honest", Version: "fake v1", Scenario: "a-3", Kind: "a", Pods: 3, Runs: 1, Scheduled: 3, Nodes: 2,
		DollarsPerHour: 0.75, OptionsLeast: 4, OptionsMedian: 4, SolveUserS: 0.25, Mallocs: 7,
	}
	m.ProcessUserS = 0
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

func TestFailedPlannersAreReported(t *testing.T) {
	hanging := fake(t, "hanging")
	hanging.Deadline = 50 * time.Millisecond
	for _, tt := range []struct {
		planner Planner
		want    string
	}{
		{fake(t, "forgetful"), "does not mention 1 of 3 pods"},
		{fake(t, "miscounting"), "the plan's summary has 1 new nodes, the plan 2"},
		{fake(t, "crashing"), "no memory left"},
		{fake(t, "babbling"), "reading the plan"},
		{hanging, "was stopped after 50ms"},
		{Planner{Name: "absent", Command: []string{"./no-such-planner"}, Deadline: time.Minute}, "no-such-planner"},
	} {
		m := once(t.Context(), tt.planner, three, nil)
		if !strings.Contains(m.Failure, tt.want) || m.Valid() {
			t.Errorf("%s: got failure %q, want %q", tt.planner.Name, m.Failure, tt.want)
		}
	}
}

// strict reports a violation in every plan of one planner.
type strict struct{ against string }

func (s strict) CheckPlan(_ Sample, plan []byte) ([]string, error) {
	if s.against != "" && strings.Contains(string(plan), s.against) {
		return []string{"pod a-0 is invalid"}, nil
	}
	return nil, nil
}

func (s strict) Bound(Sample) (float64, error) { return 0.5, nil }

func TestPlannersAlternate(t *testing.T) {
	var heard []string
	contest := Contest{
		Planners: []Planner{fake(t, "honest"), fake(t, "diligent")}, Samples: []Sample{three}, Runs: 2, Judge: strict{},
		Progress: func(done, all int, what string) { heard = append(heard, fmt.Sprintf("%d/%d %s", done, all, what)) },
	}
	rows, err := contest.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0/4 honest on a-3, run 1 of 2", "1/4 diligent on a-3, run 1 of 2", "2/4 honest on a-3, run 2 of 2", "3/4 diligent on a-3, run 2 of 2",
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if len(rows) != 1 || rows[0].Bound != 0.5 || len(rows[0].Results) != 2 || rows[0].Results[1].Runs != 2 || !rows[0].Results[1].Judged {
		t.Errorf("rows: %+v", rows)
	}
}

func TestInvalidPlanIsInTable(t *testing.T) {
	contest := Contest{
		Planners: []Planner{fake(t, "honest")}, Samples: []Sample{three}, Runs: 1, Judge: strict{against: "fake"}, Progress: func(int, int, string) {},
	}
	rows, err := contest.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m := rows[0].Results[0]; m.Valid() || !m.Judged || len(m.Violations) != 1 {
		t.Errorf("an invalid plan is measured as %+v", m)
	}
}

func TestMedianRunCountsUnlessOneFails(t *testing.T) {
	runs := []Measurement{{SolveUserS: 9}, {SolveUserS: 1}, {SolveUserS: 4}}
	if got := middle(runs); got.SolveUserS != 4 || got.Runs != 3 {
		t.Errorf("the median of %+v is %+v", runs, got)
	}
	runs = append(runs, Measurement{Failure: errors.ErrUnsupported.Error()})
	if got := middle(runs); got.Failure == "" {
		t.Errorf("a failed run of %d is ignored: %+v", len(runs), got)
	}
}

func TestSetEntries(t *testing.T) {
	for _, set := range []Set{Usual, Alone} {
		entries, err := set.Entries()
		if err != nil || len(entries) < 6 {
			t.Errorf("%q: %d entries, %v", set, len(entries), err)
		}
	}
	for set, want := range map[Set]string{
		"a": "has no sizes", "a=": "invalid size", "a=0": "invalid size", "z=5": `unknown kind of scenario "z"`, "a=5;": "has no sizes",
	} {
		if _, err := set.Entries(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", set, err, want)
		}
	}
}

func TestSamplesOfGeneratedSet(t *testing.T) {
	dir := t.TempDir()
	if err := Set("d,b,u=20,10;e=3").Generate(dir, 7); err != nil {
		t.Fatal(err)
	}
	samples, fleet, err := Samples(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range samples {
		got = append(got, fmt.Sprintf("%s %s %d", s.Name, s.Kind, s.Pods))
	}
	want := []string{"b-hetero-10 b 10", "b-hetero-20 b 20", "u-unique-10 u 10", "u-unique-20 u 20", "d-multi-10 d 10", "d-multi-20 d 20"}
	if diff := cmp.Diff(want, got); diff != "" || len(fleet) != 1 || fleet[0].Name != "e-consolidate-3" || fleet[0].Nodes != 3 {
		t.Errorf("without pods: %v; samples (-want +got):\n%s", fleet, diff)
	}
}
