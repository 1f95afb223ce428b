package stack

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// harmless are the verdicts of cdk-nag's reports that let a template pass; the last is
// the head of its column.
var harmless = []string{"Compliant", "N/A", "Suppressed", "Compliance"}

// Clean refuses a folder of templates for which cdk-nag has findings: outside of the
// CDK's command line they would only be printed. Errors are fault.Invalid.
func Clean(dir string) error {
	reports, err := filepath.Glob(filepath.Join(dir, "AwsSolutions-*.csv"))
	if err != nil {
		return fmt.Errorf("looking for cdk-nag's reports: %w", err)
	}
	if len(reports) == 0 {
		return fault.F("checking the templates", fault.Invalid, "cdk-nag has left no report in %s", dir).WithHint("add cdknag.NewAwsSolutionsChecks to the app")
	}
	var found []string
	for _, file := range reports {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading cdk-nag's report: %w", err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil {
			return fmt.Errorf("reading cdk-nag's report %s: %w", file, err)
		}
		for _, row := range rows {
			if rule, at, verdict := row[0], row[1], row[2]; !slices.Contains(harmless, verdict) {
				found = append(found, rule+" of "+at+" is "+verdict)
			}
		}
	}
	if len(found) > 0 {
		return fault.F("checking the templates", fault.Invalid, "cdk-nag found:\n  %s", strings.Join(found, "\n  ")).
			WithHint("mend it, or suppress it with a reason in infra/stack/nag.go")
	}
	return nil
}
