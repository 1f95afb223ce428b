package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// figures returns invented figures: kinds in three sizes, of which the second planner
// does not complete the last.
func figures() []contest.Row {
	var rows []contest.Row
	for i, kind := range []string{"a", "b", "bamd", "bspot", "u", "c", "r", "d"} {
		for _, pods := range []int{100, 1000, 5000, 50000} {
			bound := float64(pods) / 25
			row := contest.Row{Scenario: kind, Kind: kind, Pods: pods, Bound: bound}
			ours := contest.Measurement{
				Planner: "joist", Pods: pods, Scheduled: pods, DollarsPerHour: bound * (1.02 + float64(i)/100), SolveUserS: float64(pods) * 9e-6,
			}
			theirs := contest.Measurement{
				Planner: "karpenter", Pods: pods, Scheduled: pods, DollarsPerHour: bound * (1.2 + float64(i)/20), SolveUserS: float64(pods) * float64(pods) * 9e-7,
			}
			if pods == 50000 {
				theirs.Scheduled, theirs.TimedOut, theirs.SolveUserS = 9000, true, 60
			}
			row.Results = []contest.Measurement{ours, theirs}
			rows = append(rows, row)
		}
	}
	return rows
}

func TestEqualFiguresGiveEqualBytes(t *testing.T) {
	first, err := SVG(figures())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, err := SVG(figures()); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("a second drawing of the same figures differs (%v)", err)
		}
	}
}

func TestDrawingIsComplete(t *testing.T) {
	drawing, err := SVG(figures())
	if err != nil {
		t.Fatal(err)
	}
	names := words(t, drawing)
	for _, want := range []string{"joist", "karpenter", "spot instances", "cost ÷ lower bound", "CPU time of planning", "10 ms", "1k"} {
		if !strings.Contains(names, want) {
			t.Errorf("the drawing does not contain %q, only %q", want, names)
		}
	}
	if strings.Contains(string(drawing), "fill:#FFFFFF") {
		t.Error("the drawing has a white background, which dark pages cannot show")
	}
}

// words returns all texts of a drawing, which must be well-formed.
func words(t *testing.T, drawing []byte) string {
	t.Helper()
	var out strings.Builder
	for decoder := xml.NewDecoder(bytes.NewReader(drawing)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatalf("the drawing is not XML: %v", err)
		}
		if text, ok := token.(xml.CharData); ok {
			out.Write(text)
		}
	}
}

func TestFailedRunsAreNotDrawn(t *testing.T) {
	rows := figures()[:1]
	rows[0].Results[1].Failure = "exit status 2"
	p := panels(rows)[0]
	if len(p.cost[0].points) != 1 || len(p.cost[1].points) != 0 || len(p.seconds[1].points) != 0 {
		t.Errorf("got %d and %d points of cost, and %d CPU points of the failed run", len(p.cost[0].points), len(p.cost[1].points), len(p.seconds[1].points))
	}
}

func TestPartialPlanHasNoCost(t *testing.T) {
	p := panels(figures())[0]
	theirs, cpu := p.cost[1], p.seconds[1]
	if len(theirs.points) != 3 || len(cpu.points) != 4 || len(cpu.partial) != 1 {
		t.Errorf("got %d costs, %d times, %d of them partial; want 3, 4 and 1", len(theirs.points), len(cpu.points), len(cpu.partial))
	}
}

func TestNoFiguresIsAnError(t *testing.T) {
	if _, err := SVG(nil); err == nil {
		t.Error("SVG returned no error without figures")
	}
}
