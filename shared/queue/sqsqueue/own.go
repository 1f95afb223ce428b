package sqsqueue

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// QueueARN is the ARN of a queue of our own account and region by its name. Who we
// are is a question to STS that needs no right, unlike the one to SQS for a queue's
// URL.
func QueueARN(ctx context.Context, config aws.Config, name string) (string, error) {
	told, err := sts.NewFromConfig(config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", awsfault.ReadCall("asking STS who we are", "sts:GetCallerIdentity").Wrap(err)
	}
	// Ours is like arn:partition:sts::account:assumed-role/role/session.
	fields := strings.Split(aws.ToString(told.Arn), ":")
	if len(fields) < 6 {
		return "", fault.F("asking STS who we are", fault.Bug, "it calls us %q", aws.ToString(told.Arn))
	}
	return strings.Join([]string{"arn", fields[1], "sqs", config.Region, fields[4], name}, ":"), nil
}
