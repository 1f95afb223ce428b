package trace_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// FuzzReadLog: a log is Invalid with its name and a hint, or every line is an entry or counted as skipped, and a log
// of the same facts has the same facts.
func FuzzReadLog(f *testing.F) {
	line := lineOf("planner", "pods.unschedulable.v1", "m1", "batch/1", 1, "")
	fact := `{"version":"0","detail-type":"instance.gone.v1","source":"joist/interruption","detail":{"specversion":"1.0","id":"m2","source":"joist/interruption","type":"instance.gone.v1","subject":"instance/i-1","time":"2026-01-02T03:04:09Z","correlation":"` + id + `","data":{"instanceId":"i-1"}}}`
	quoted, err := json.Marshal(fact)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line + "\n" + fact + "\n")
	f.Add("2026-01-02T03:04:05 stream " + line + "\r\n\nSTART RequestId: 1\n{broken\n")
	f.Add(`{"events":[{"message":` + string(quoted) + `}],"searchedLogStreams":[]}`)
	f.Add(`{"events": [`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := trace.ReadLog("the.log", strings.NewReader(text))
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "the.log") || fault.FindHint(err) == "" {
				t.Fatalf("%s: %v", fault.KindOf(err), err)
			}
			return
		}
		if most := strings.Count(text, "\n") + 1; !strings.Contains(text, `"events"`) && !strings.Contains(text, `"searchedLogStreams"`) && entries.Count()+entries.Skipped > most {
			t.Fatalf("%d entries and %d skipped lines of %d", entries.Count(), entries.Skipped, most)
		}
		if len(entries.Facts) == 0 {
			return
		}
		var again strings.Builder
		for _, fact := range entries.Facts {
			one, err := json.Marshal(fact)
			if err != nil {
				return // The log had data that is not JSON for its type, which is shown and not passed on.
			}
			again.Write(append(one, '\n'))
		}
		if other, err := trace.ReadLog("the.log", strings.NewReader(again.String())); err == nil && len(other.Facts) > len(entries.Facts) {
			t.Fatalf("%d facts became %d", len(entries.Facts), len(other.Facts))
		}
	})
}

// FuzzReadOTLP: spans are Invalid with their file's name and a hint, or each has a name's text, hexadecimal ids and
// attributes.
func FuzzReadOTLP(f *testing.F) {
	f.Add([]byte(spans))
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"a","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"b"}]}}]}}}]}]}]}]}`))
	f.Add([]byte(`{"resourceSpans":[null,{}],"x":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := trace.ReadOTLP("the.json", strings.NewReader(string(text)))
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "the.json") || fault.FindHint(err) == "" {
				t.Fatalf("%s: %v", fault.KindOf(err), err)
			}
			return
		}
		for _, s := range entries.Spans {
			for _, one := range append([]string{s.Trace, s.ID, s.Parent}, s.Links...) {
				if strings.Trim(one, "0123456789abcdefABCDEF") != "" || len(one)%2 != 0 {
					t.Fatalf("the id %q is not hexadecimal: %+v", one, s)
				}
			}
		}
	})
}
