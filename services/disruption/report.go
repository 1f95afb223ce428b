package disruption

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// reportInterval is the time between two reports of the nodes that stay. It is the
	// shortest after which Karpenter repeats an Event about one of them.
	reportInterval = 2 * time.Minute
	// maxReportSize bounds the claims and the details of a report in bytes of JSON. The rest of
	// the type's limit is for the rules, each once without a detail, and for what else the
	// report has.
	maxReportSize = 184 << 10
	// maxDetailSize bounds the words of one reason.
	maxDetailSize = 256
	// reasonSize is more than the JSON of a reason without its texts and claims.
	reasonSize = 64
)

// ReportSchedule remembers when nodes that stay were last reported. A process that forgets it
// reports them again, and lifecycle publishes no Event sooner for it.
type ReportSchedule struct {
	mu   sync.Mutex
	last time.Time
}

// isDue reports whether a report is due in a snapshot of that time.
func (r *ReportSchedule) isDue(taken time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	age := taken.Sub(r.last)
	return age >= reportInterval || age < 0
}

// nextReport gives when a snapshot of that time may be reported that was too early for a
// report; zero where it was reported.
func (r *ReportSchedule) nextReport(taken time.Time) time.Time {
	if r == nil {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.Equal(taken) {
		return time.Time{}
	}
	return r.last.Add(reportInterval)
}

// recordReport remembers that nodes were reported as of that time.
func (r *ReportSchedule) recordReport(taken time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = taken
}

// groupKept groups the nodes that stay by their reasons, in at most reportMax bytes. Details
// that do not fit are left out, and then nodes, of which it gives the number.
func groupKept(s *planning.Snapshot, kept []Kept) (report []event.Kept, unreported int) {
	left := maxReportSize
	var reported []Kept
	for _, k := range kept {
		if !hasEvent(k.reason.Rule) {
			continue
		}
		if size := len(quoteJSON(s.Nodes[k.Index].Claim)) + 1; size <= left {
			left -= size
			reported = append(reported, k)
		} else {
			unreported++
		}
	}
	at := map[candidate.Objection]int{}
	for _, k := range reported {
		why := k.reason
		why.Detail = strings.ToValidUTF8(why.Detail[:min(len(why.Detail), maxDetailSize)], "")
		size := reasonSize + len(quoteJSON(why.Rule)) + len(quoteJSON(why.Subject)) + len(quoteJSON(why.Detail))
		i, known := at[why]
		if !known && size > left {
			why.Subject, why.Detail = "", ""
			i, known = at[why]
		}
		if !known {
			i, at[why] = len(report), len(report)
			left -= size
			report = append(report, event.Kept{Rule: why.Rule, Subject: why.Subject, Detail: why.Detail})
		}
		report[i].Claims = append(report[i].Claims, s.Nodes[k.Index].Claim)
	}
	return report, unreported
}

// hasEvent reports whether a rule leads to an Event. Karpenter has none about nodes on
// which consolidation has not begun to work, nor about those that go.
func hasEvent(rule string) bool {
	switch rule {
	case candidate.RuleConfirmed, candidate.RuleStatic, candidate.RuleNotQuiet,
		RuleReceives, RuleTurn, RuleOverturned, RuleInUse, RuleNotDrifted, RuleNotExpiring, "":
		return false
	}
	return true
}

// quoteJSON is the text as JSON has it.
func quoteJSON(text string) []byte {
	out, _ := json.Marshal(text) // A string always has a form in JSON.
	return out
}
