// Package ssmparameters is the adapter to SSM parameters, which contain the ids of the newest images. It is one half
// of cloud.Images; ec2cloud is the other.
package ssmparameters

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
)

// timeout is the timeout of one call.
const timeout = time.Minute

// Parameters reads parameters with one client.
type Parameters struct {
	client *ssm.Client
}

// New returns Parameters with an AWS configuration.
func New(config aws.Config) Parameters {
	return Parameters{client: ssm.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// Parameter is ssm:GetParameter.
func (p Parameters) Parameter(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := p.client.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	if err != nil {
		return "", awsfault.ReadCall("reading parameter "+name, "ssm:GetParameter").Wrap(err)
	}
	return aws.ToString(out.Parameter.Value), nil
}
