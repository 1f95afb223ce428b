package interrupted

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Report has all measurements.
type Report struct {
	Results []Result `json:"results"`
	Outages []Outage `json:"outages,omitempty"`
	Reading Reading  `json:"reading"`
}

// Table returns the report as text.
func (r Report) Table() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "messages\tknown\tSQS call\tAPI call\tside\tper second\tCPU each\tallocations each\t")
	for _, x := range r.Results {
		fmt.Fprintf(w, "%d\t%d %%\t%d ms\t%d ms\t%s\t%.0f\t%.0f µs\t%.0f\t\n", x.Messages, x.Known, x.QueueMS, x.APIMS, x.Side, x.PerSecond, x.CPUMicros, x.Allocs)
	}
	// A strings.Builder never fails.
	_ = w.Flush()
	for _, x := range r.Outages {
		fmt.Fprintf(&out, "%s after %.0f s without its %s: the first message after %.1f s at worst\n", x.Side, x.ForS, x.Cut, x.AfterS)
	}
	if x := r.Reading; x.Bodies > 0 {
		fmt.Fprintf(&out, "karpenter, of a corpus of %d bodies: loses %d of %d true events, among them %d of %d spot warnings; acts on %d of %d that are to be left alone\n",
			x.Bodies, x.Lost, x.True, x.LostWarnings, x.Warnings, x.Wrong, x.Others)
	}
	return out.String()
}
