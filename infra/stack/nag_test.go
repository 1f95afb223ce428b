package stack_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/stack"
)

// cdk-nag finds nothing that is not suppressed, and each suppression says why: the
// report of the plain app is read, since findings do not fail it.
func TestNagFindsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in synthesis) {
		if err := report(t, string(in.findings)); err != nil {
			t.Error(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(in.findings))).ReadAll()
		if err != nil || len(rows) < 20 {
			t.Fatalf("%d rows: %v", len(rows), err)
		}
		for _, row := range rows {
			if row[2] == "Suppressed" && len(row[3]) < 40 {
				t.Errorf("%s of %s is suppressed without a reason: %q", row[0], row[1], row[3])
			}
		}
	})
}

// report is what Clean says of a folder with one report.
func report(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AwsSolutions-x-NagReport.csv"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return stack.Clean(dir)
}

func TestCleanRefusesFindings(t *testing.T) {
	const head = "Rule ID,Resource ID,Compliance,Exception Reason,Rule Level,Rule Info\n"
	if err := report(t, head+`"AwsSolutions-SQS4","x/Queue","Compliant","N/A","Error","TLS"`+"\n"); err != nil {
		t.Error(err)
	}
	refused(t, report(t, head+`"AwsSolutions-SQS4","x/Queue","Non-Compliant","N/A","Error","TLS"`+"\n"), "AwsSolutions-SQS4 of x/Queue is Non-Compliant")
	refused(t, report(t, head+`"AwsSolutions-SQS4","x/Queue","UNKNOWN","N/A","Error","TLS"`+"\n"), "is UNKNOWN")
	refused(t, stack.Clean(t.TempDir()), "no report")
}
