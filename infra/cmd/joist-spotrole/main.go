// Command joist-spotrole is the Lambda function that creates the account's service-linked
// role for EC2 spot when the stack is deployed.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/joist-autoscaler/joist/infra/spotrole"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

func main() {
	loaded, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "joist-spotrole: cannot load the AWS configuration:", err)
		os.Exit(1)
	}
	loaded.AppID = cmp.Or(loaded.AppID, build.UserAgent("joist-spotrole"))
	lambda.Start(cfn.LambdaWrap(spotrole.Handler(iam.NewFromConfig(loaded))))
}
