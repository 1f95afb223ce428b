// Command joist-infra synthesizes the CloudFormation stack of the clusters that the
// CDK's context names. The CDK's command line starts it; without that,
//
//	CDK_OUTDIR=cdk.out CDK_CONTEXT_JSON='{"clusterName":"prod"}' joist-infra
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/joist-autoscaler/joist/infra/stack"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func main() {
	defer jsii.Close()
	if err := synthesize(); err != nil {
		fmt.Fprintln(os.Stderr, "joist-infra:", err)
		jsii.Close()
		os.Exit(1)
	}
}

func synthesize() error {
	app := awscdk.NewApp(nil)
	config, err := stack.Context(app)
	if err != nil {
		return err
	}
	if _, err := stack.New(app, config); err != nil {
		return err
	}
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{}), nil)
	out := *app.Synth(nil).Directory()
	reports, err := filepath.Glob(filepath.Join(out, "AwsSolutions-*-NagReport.csv"))
	if err != nil {
		return err
	}
	return unclean(reports)
}

// unclean refuses a template with findings: outside of the CDK's command line they
// would only be printed.
func unclean(reports []string) error {
	for _, file := range reports {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"Non-Compliant"`) {
				return fault.F("checking the template", fault.Invalid, "cdk-nag found %s", strings.TrimSpace(line)).
					WithHint("see %s; mend it, or suppress it with a reason in infra/stack/nag.go", file)
			}
		}
	}
	return nil
}
