package trace

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
)

// barWidth is the width of the waterfall in characters.
const barWidth = 24

// detailMax is the maximum length of a detail in a table.
const detailMax = 80

// Print prints a trace as a waterfall.
func Print(w io.Writer, t Trace) error {
	var out strings.Builder
	if len(t.Steps) == 0 {
		fmt.Fprintf(&out, "%s: no message in these logs\n", t.Of)
	} else {
		traces := ""
		if len(t.Traces) > 1 {
			traces = fmt.Sprintf(" in %d traces", len(t.Traces))
		}
		fmt.Fprintf(&out, "%s: %d steps%s, from %s UTC, %s in all\n\n", t.Of, len(t.Steps), traces, t.Begin.UTC().Format("2006-01-02 15:04:05.000"), formatSpan(t.End.Sub(t.Begin)))
		out.WriteString(formatSteps(t))
		if failed := countResults(t.Steps, ResultDLQ, ResultHidden, ResultFailed, ResultRetried); failed > 0 {
			fmt.Fprintf(&out, "\n%d steps did not succeed at once; joist dead list shows messages that are in a DLQ.\n", failed)
		}
	}
	for i, id := range t.Traces {
		if i == 0 {
			out.WriteString("\nTraces: ")
		} else {
			out.WriteString(", ")
		}
		fmt.Fprintf(&out, "%d = %s", i+1, id)
	}
	if len(t.Traces) > 0 {
		out.WriteString("\n")
	}
	if len(t.Related) > 0 {
		fmt.Fprintf(&out, "Linked traces: %s\n", strings.Join(t.Related, ", "))
	}
	if len(t.Missing) > 0 {
		out.WriteString("\nMissing:\n")
		for _, one := range t.Missing {
			out.WriteString("  - " + one + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func formatSteps(t Trace) string {
	number := map[string]int{}
	for i, id := range t.Traces {
		number[id] = i + 1
	}
	var rows [][]string
	total := t.End.Sub(t.Begin)
	for i := range t.Steps {
		s := &t.Steps[i]
		service, wait := s.Service, ""
		if service == "" {
			service = s.From
		}
		if !s.Sent.IsZero() && s.Service != "" {
			wait = formatSpan(s.Begin.Sub(s.start()))
		}
		trace := "-"
		if s.Trace != "" {
			trace = strconv.Itoa(number[s.Trace])
		}
		result := s.Result
		if s.Attempts > 1 {
			result += " after " + strconv.Itoa(s.Attempts) + " attempts"
		}
		rows = append(rows, []string{
			"+" + formatSpan(s.start().Sub(t.Begin)), formatBar(s, t.Begin, total), trace, service, strings.Repeat("› ", s.Depth) + shorten(longID.ReplaceAllString(s.What, "$1…")), wait, formatSpan(s.End.Sub(s.Begin)), result, shorten(s.Detail),
		})
	}
	return report.FormatColumns([]string{"AT", "", "TRACE", "SERVICE", "WHAT", "WAITED", "TOOK", "RESULT", "DETAIL"}, rows, 1, 3, 6, 7)
}

// formatBar draws when a step waited (–) and was handled (█) within the trace.
func formatBar(s *TraceStep, begin time.Time, total time.Duration) string {
	cell := func(at time.Time) int {
		if total <= 0 {
			return 0
		}
		return min(barWidth-1, max(0, int(float64(at.Sub(begin))/float64(total)*barWidth)))
	}
	bar := []rune(strings.Repeat("·", barWidth))
	for i := cell(s.start()); i < cell(s.Begin); i++ {
		bar[i] = '–'
	}
	for i := cell(s.Begin); i <= cell(s.End); i++ {
		bar[i] = '█'
	}
	return string(bar)
}

func countResults(steps []TraceStep, results ...string) (count int) {
	for i := range steps {
		for _, one := range results {
			if steps[i].Result == one || steps[i].Attempts > 1 && one == ResultRetried {
				count++
				break
			}
		}
	}
	return count
}

// formatSpan formats a duration with three or four digits.
func formatSpan(d time.Duration) string {
	switch {
	case d < time.Millisecond && d > -time.Millisecond:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// longID matches ids of 32 and more digits, which are shortened in tables.
var longID = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{24,}\b`)

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= detailMax {
		return text
	}
	return string(runes[:detailMax]) + "…"
}
