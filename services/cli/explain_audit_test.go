package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/internal/explain"
	"github.com/joist-autoscaler/joist/services/cli/internal/servicelog"
	"github.com/joist-autoscaler/joist/shared/event"
)

// TestExplainComparesAuditedDecisions explains a node at the time of each proposal in the audit log of the demo:
// every decision is the recorded one. A record that was changed is not.
func TestExplainComparesAuditedDecisions(t *testing.T) {
	dir := recordDemo(t)
	name := filepath.Join(dir, "facts.jsonl")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	decisions, last := map[string]int{}, ""
	explainAt := func(claim string, at time.Time, log string) *explain.AuditedDecision {
		t.Helper()
		stdout, stderr, code := runJoist(t, "", nil, "explain", "nodeclaim", claim, "--store", dir, "--log", log, "--until", at.Format(time.RFC3339Nano), "-o", "json")
		if code != cli.ExitNothing {
			t.Fatalf("%s at %s: %s", claim, at, stderr)
		}
		return parseJSON[explain.NodeExplanation](t, stdout).Audited
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		var fact servicelog.AuditFact
		var body event.DisruptionProposed
		if err := json.Unmarshal([]byte(line), &fact); err != nil {
			t.Fatal(err)
		}
		if fact.Detail.Type != event.DisruptionProposedType || json.Unmarshal(fact.Detail.Data, &body) != nil {
			continue
		}
		got := explainAt(body.Claims[0], fact.Detail.Time, name)
		if got == nil || !got.IsReproduced || len(got.Differences) > 0 {
			t.Errorf("%s of %s: %+v", body.Phase, body.Claims[0], got)
			continue
		}
		decisions[got.Decision]++
		if got.Message == fact.Detail.ID && body.Phase == event.Confirmed {
			last = line
		}
	}
	if decisions["proposed"] == 0 || decisions["confirmed"] == 0 || last == "" {
		t.Fatalf("decisions %v", decisions)
	}
	var fact servicelog.AuditFact
	var body event.DisruptionProposed
	if err := json.Unmarshal([]byte(last), &fact); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fact.Detail.Data, &body); err != nil {
		t.Fatal(err)
	}
	body.SavedPerHr, body.Claims = body.SavedPerHr+1, append(body.Claims, "another")
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	fact.Detail.Data = data
	changed, err := servicelog.Encode(fact)
	if err != nil {
		t.Fatal(err)
	}
	got := explainAt(body.Claims[0], fact.Detail.Time, writeFile(t, "facts.jsonl", changed))
	if got == nil || got.IsReproduced || len(got.Differences) != 2 || len(got.Same) == 0 {
		t.Errorf("a changed record: %+v", got)
	}
}
