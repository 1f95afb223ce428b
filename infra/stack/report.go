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

// acceptedResults are the accepted results in cdk-nag's reports; the last is the column's
// header.
var acceptedResults = []string{"Compliant", "N/A", "Suppressed", "Compliance"}

// CheckNagReports fails if cdk-nag's reports in the folder have findings, which are only
// printed without the CDK's command line. Errors are fault.Invalid.
func CheckNagReports(dir string) error {
	reports, err := filepath.Glob(filepath.Join(dir, "AwsSolutions-*.csv"))
	if err != nil {
		return fmt.Errorf("listing cdk-nag's reports: %w", err)
	}
	if len(reports) == 0 {
		return fault.F("checking the templates", fault.Invalid, "there is no report of cdk-nag in %s", dir).WithHint("add cdknag.NewAwsSolutionsChecks to the app")
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
			if rule, at, result := row[0], row[1], row[2]; !slices.Contains(acceptedResults, result) {
				found = append(found, rule+" of "+at+" is "+result)
			}
		}
	}
	if len(found) > 0 {
		return fault.F("checking the templates", fault.Invalid, "cdk-nag found:\n  %s", strings.Join(found, "\n  ")).
			WithHint("fix it, or suppress it with a reason in infra/stack/nag.go")
	}
	return nil
}

// templateMax is CloudFormation's limit of an uploaded template in bytes: 1 MB
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html).
const templateMax = 1_000_000

// CheckTemplateSizes fails if a template in the folder exceeds CloudFormation's size limit. It
// counts the bytes of the file, which the CDK's command line uploads. Errors are
// fault.Invalid.
func CheckTemplateSizes(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.template.json"))
	if err != nil {
		return fmt.Errorf("listing templates: %w", err)
	}
	for _, file := range files {
		found, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("reading the size of a template: %w", err)
		}
		if found.Size() > templateMax {
			return fault.F("checking the templates", fault.Invalid, "%s has %d bytes; CloudFormation allows %d", filepath.Base(file), found.Size(), templateMax).
				WithHint("put some of the clusters into another stack")
		}
	}
	return nil
}
