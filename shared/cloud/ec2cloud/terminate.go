package ec2cloud

import (
	"context"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
)

// unknownInstance is EC2's error code for unknown ids. The message contains the ids.
const unknownInstance = "InvalidInstanceID.NotFound"

var instanceID = regexp.MustCompile(`\bi-[0-9a-f]+\b`)

// Terminate is ec2:TerminateInstances, without the ids that EC2 does not know.
func (c Cloud) Terminate(ctx context.Context, ids []string) error {
	for some := range slices.Chunk(ids, batch) {
		if err := c.terminate(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// terminate repeats the call until all ids are terminated or unknown: each round removes at least one id.
func (c Cloud) terminate(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		err := c.terminateAll(ctx, ids)
		if awsfault.ErrorCode(err) != unknownInstance {
			return err
		}
		unknown := instanceID.FindAllString(err.Error(), -1)
		known := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(unknown, id) })
		if len(known) == len(ids) {
			return c.terminateEach(ctx, ids)
		}
		ids = known
	}
	return nil
}

func (c Cloud) terminateAll(ctx context.Context, ids []string) error {
	what := awsfault.WriteCall("terminating instances", "ec2:TerminateInstances")
	_, err := call(ctx, what, func(ctx context.Context) (*ec2.TerminateInstancesOutput, error) {
		return c.client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	})
	return err
}

// terminateEach terminates one by one if the error does not name the unknown ids.
func (c Cloud) terminateEach(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if err := c.terminateAll(ctx, []string{id}); err != nil && awsfault.ErrorCode(err) != unknownInstance {
			return err
		}
	}
	return nil
}
