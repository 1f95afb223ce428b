package stack_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/joist-autoscaler/joist/infra/stack"
)

// cdk-nag has no finding that is not suppressed, and each suppression has a reason. The
// test reads the report of the plain app, because findings do not fail the synthesis.
func TestNoNagFindings(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, _ string, in synthesis) {
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

// report returns CheckNagReports's error for a folder with one report.
func report(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AwsSolutions-x-NagReport.csv"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return stack.CheckNagReports(dir)
}

// CloudFormation counts bytes, including the bytes that the CDK's command line adds. The
// maximum number of clusters by resources also fits by bytes, with names of 22
// characters.
func TestTemplatesFitInBytes(t *testing.T) {
	names := make([]any, 5)
	for i := range names {
		names[i] = fmt.Sprintf("production-eu-west-1-%d", i)
	}
	to := app(t, map[string]any{"aws:cdk:enable-path-metadata": true})
	if _, err := stack.New(to, configOf(t, map[string]any{"clusters": names, "stackName": "joist"})); err != nil {
		t.Fatal(err)
	}
	awscdk.Aspects_Of(to).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{}), nil)
	dir := *to.Synth(nil).Directory()
	if err := stack.CheckTemplateSizes(dir); err != nil {
		t.Error(err)
	}
	found, err := os.Stat(filepath.Join(dir, "joist.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("five clusters need %d bytes", found.Size())
}

func TestCheckTemplateSizesRejectsLargeTemplates(t *testing.T) {
	dir := t.TempDir()
	for size, says := range map[int]string{1_000_000: "", 1_000_001: "put some of the clusters into another stack"} {
		if err := os.WriteFile(filepath.Join(dir, "x.template.json"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := stack.CheckTemplateSizes(dir); says != "" {
			checkRejected(t, err, says)
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestCheckNagReportsRejectsFindings(t *testing.T) {
	const head = "Rule ID,Resource ID,Compliance,Exception Reason,Rule Level,Rule Info\n"
	if err := report(t, head+`"AwsSolutions-SQS4","x/Queue","Compliant","N/A","Error","TLS"`+"\n"); err != nil {
		t.Error(err)
	}
	checkRejected(t, report(t, head+`"AwsSolutions-SQS4","x/Queue","Non-Compliant","N/A","Error","TLS"`+"\n"), "AwsSolutions-SQS4 of x/Queue is Non-Compliant")
	checkRejected(t, report(t, head+`"AwsSolutions-SQS4","x/Queue","UNKNOWN","N/A","Error","TLS"`+"\n"), "is UNKNOWN")
	checkRejected(t, stack.CheckNagReports(t.TempDir()), "no report")
}
