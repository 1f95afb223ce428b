// Command joist-infra synthesizes the CloudFormation template of the clusters in the CDK's
// context. The CDK's command line runs it; without it, run
//
//	CDK_OUTDIR=cdk.out CDK_CONTEXT_JSON='{"clusterName":"prod"}' joist-infra
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/joist-autoscaler/joist/infra/stack"
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
	config, err := stack.ReadConfig(app)
	if err != nil {
		return err
	}
	if _, err := stack.New(app, config); err != nil {
		return err
	}
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{}), nil)
	dir := *app.Synth(nil).Directory()
	if err := stack.CheckNagReports(dir); err != nil {
		return err
	}
	return stack.CheckTemplateSizes(dir)
}
