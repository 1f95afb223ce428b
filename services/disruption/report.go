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
	// reportInterval is the time between two reports of kept nodes. Karpenter repeats an Event
	// about a node after this time at the earliest.
	reportInterval = 2 * time.Minute
	// maxReportSize bounds the claims and details of a report in bytes of JSON. The rest of the
	// event type's limit is for the rules, each once without a detail, and for the other fields.
	maxReportSize = 184 << 10
	// maxDetailSize bounds the detail of one reason in bytes.
	maxDetailSize = 256
	// reasonSize is more than the size of a reason's JSON without its texts and claims.
	reasonSize = 64
)

// ReportSchedule records when kept nodes were last reported. A restarted process reports them
// again, but lifecycle does not publish Events sooner because of that.
type ReportSchedule struct {
	mu   sync.Mutex
	last time.Time
}

// isDue reports whether a report is due for a snapshot taken at that time.
func (r *ReportSchedule) isDue(taken time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	age := taken.Sub(r.last)
	return age >= reportInterval || age < 0
}

// nextReport returns when the next report is due if the snapshot taken at that time was not
// reported; otherwise zero.
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

// recordReport records a report of a snapshot taken at that time.
func (r *ReportSchedule) recordReport(taken time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = taken
}

// groupKept groups the kept nodes by their reasons, in at most maxReportSize bytes. It leaves out
// details that do not fit, and then nodes. unreported is the number of nodes left out.
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

// hasEvent reports whether lifecycle publishes an Event for the rule. As in Karpenter, there is no
// Event for nodes that consolidation does not consider yet, or that are being removed.
func hasEvent(rule string) bool {
	switch rule {
	case candidate.RuleConfirmed, candidate.RuleStatic, candidate.RuleConsolidateAfter,
		RuleHealthy, RuleReceives, RuleLowerPriority, RuleOverturned, RuleNotEmpty, RuleNotDrifted, RuleNotExpiring, "":
		return false
	}
	return true
}

// quoteJSON returns the text as JSON.
func quoteJSON(text string) []byte {
	out, _ := json.Marshal(text) // A string can always be encoded.
	return out
}
