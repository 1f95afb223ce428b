package ec2cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
)

// Reboot is ec2:RebootInstances. EC2 answers when it has accepted the request, and has no token for repeated calls.
func (c Cloud) Reboot(ctx context.Context, id string) error {
	what := awsfault.WriteCall("rebooting instance "+id, "ec2:RebootInstances")
	_, err := call(ctx, what, func(ctx context.Context) (*ec2.RebootInstancesOutput, error) {
		return c.client.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{id}})
	})
	return err
}
