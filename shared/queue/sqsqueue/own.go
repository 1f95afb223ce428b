package sqsqueue

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// QueueARN returns the ARN of the queue with a name in the process's own account and region. The account comes from
// STS GetCallerIdentity, which needs no permission, unlike SQS GetQueueUrl.
func QueueARN(ctx context.Context, config aws.Config, name string) (string, error) {
	told, err := sts.NewFromConfig(config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", awsfault.ReadCall("reading the caller's identity", "sts:GetCallerIdentity").Wrap(err)
	}
	// The caller's ARN is like arn:partition:sts::account:assumed-role/role/session.
	fields := strings.Split(aws.ToString(told.Arn), ":")
	if len(fields) < 6 {
		return "", fault.F("reading the caller's identity", fault.Bug, "STS returned the malformed ARN %q", aws.ToString(told.Arn))
	}
	return strings.Join([]string{"arn", fields[1], "sqs", config.Region, fields[4], name}, ":"), nil
}
