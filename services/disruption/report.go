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
	// reportEvery is the time between two reports of the nodes that stay. It is the
	// shortest after which Karpenter repeats an Event about one of them.
	reportEvery = 2 * time.Minute
	// reportMax bounds the claims and the details of a report in bytes of JSON. The rest of
	// the type's limit is for the rules, each once without a detail, and for what else the
	// report has.
	reportMax = 184 << 10
	// detailMax bounds the words of one reason.
	detailMax = 256
	// reasonSize is more than the JSON of a reason without its texts and claims.
	reasonSize = 64
)

// Reports remembers when nodes that stay were last reported. A process that forgets it
// reports them again, and lifecycle publishes no Event sooner for it.
type Reports struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether a report is due in a snapshot of that time.
func (r *Reports) due(taken time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	age := taken.Sub(r.last)
	return age >= reportEvery || age < 0
}

// pending gives when a snapshot of that time may be reported that was too early for a
// report; zero where it was reported.
func (r *Reports) pending(taken time.Time) time.Time {
	if r == nil {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.Equal(taken) {
		return time.Time{}
	}
	return r.last.Add(reportEvery)
}

// note remembers that nodes were reported as of that time.
func (r *Reports) note(taken time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = taken
}

// reportOf groups the nodes that stay by their reasons, in at most reportMax bytes. Details
// that do not fit are left out, and then nodes, of which it gives the number.
func reportOf(s *planning.Snapshot, kept []Kept) (report []event.Kept, unreported int) {
	left := reportMax
	var reported []Kept
	for _, k := range kept {
		if !hasEvent(k.reason.Rule) {
			continue
		}
		if size := len(quote(s.Nodes[k.Index].Claim)) + 1; size <= left {
			left -= size
			reported = append(reported, k)
		} else {
			unreported++
		}
	}
	at := map[candidate.Objection]int{}
	for _, k := range reported {
		why := k.reason
		why.Detail = strings.ToValidUTF8(why.Detail[:min(len(why.Detail), detailMax)], "")
		size := reasonSize + len(quote(why.Rule)) + len(quote(why.Subject)) + len(quote(why.Detail))
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

// quote is the text as JSON has it.
func quote(text string) []byte {
	out, _ := json.Marshal(text) // A string always has a form in JSON.
	return out
}
