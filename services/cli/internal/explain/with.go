package explain

import (
	"io"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
)

// PodWith compares a recorded decision with the one for other NodePools.
type PodWith struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Changes are the changed objects.
	Changes []string `json:"changes"`
	// Recorded and With are the plans for the whole batch.
	Recorded PlanSummary `json:"recorded"`
	With     PlanSummary `json:"with"`
	// RecordedPod and WithPod explain the pod in both.
	RecordedPod PodExplanation `json:"recordedPod"`
	WithPod     PodExplanation `json:"withPod"`
	Notes       []string       `json:"notes"`
}

// PlanSummary is a plan in numbers.
type PlanSummary struct {
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	Unplaced     int     `json:"unplaced"`
}

func (d *PlanDecision) summarize() PlanSummary {
	out := PlanSummary{Nodes: len(d.launches), PricePerHour: d.Plan.PricePerHour}
	for _, u := range d.Plan.Unplaced {
		out.Unplaced += len(u.Pods)
	}
	return out
}

// ComparePod explains a pod in two decisions about one batch.
func ComparePod(recorded, with *PlanDecision, namespace, name string, changes, notes []string) (PodWith, error) {
	out := PodWith{APIVersion: apiVersion, Kind: "PodComparison", Changes: append([]string{}, changes...), Recorded: recorded.summarize(), With: with.summarize(), Notes: append([]string{}, notes...)}
	var err error
	if out.RecordedPod, err = recorded.ExplainPod(namespace, name); err != nil {
		return out, err
	}
	out.WithPod, err = with.ExplainPod(namespace, name)
	return out, err
}

// PrintPodWith prints a comparison as text.
func PrintPodWith(w io.Writer, e PodWith) error {
	var p printer
	for _, one := range e.Changes {
		p.line("Changed: %s", one)
	}
	p.line("Recorded: %s", e.RecordedPod.Answer)
	if e.RecordedPod.Reproduction != nil {
		p.printReproduction("The recorded plan was checked", e.RecordedPod.Reproduction)
	}
	p.line("With the change: %s", e.WithPod.Answer)
	p.line("\nThe whole batch:\n")
	p.WriteString(report.FormatColumns([]string{"", "NEW NODES", "$/HOUR", "UNSCHEDULABLE PODS"}, [][]string{
		{"recorded", countText(e.Recorded.Nodes), formatDollars(e.Recorded.PricePerHour), countText(e.Recorded.Unplaced)},
		{"with the change", countText(e.With.Nodes), formatDollars(e.With.PricePerHour), countText(e.With.Unplaced)},
	}, 2, 3, 4))
	p.printNotes(e.Notes)
	if e.WithPod.Launch != nil {
		p.printLaunch(e.WithPod.Launch)
	}
	p.printPools(e.WithPod)
	p.printEdits(e.WithPod.NodePools)
	return p.flush(w)
}
