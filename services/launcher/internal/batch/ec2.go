package batch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// BatchedEC2 batches the calls to EC2 that concern one instance. Calls with several IDs, tags or
// states are not batched.
type BatchedEC2 struct {
	cloud.Launcher
	instances    *Batcher[*cloud.Instance]
	terminations *Batcher[struct{}]
	tags         *Batcher[struct{}]
}

var _ cloud.Launcher = BatchedEC2{}

// New returns an EC2 that batches calls to ec2. The timeout limits each call.
func New(ec2 cloud.Launcher, timeout time.Duration) BatchedEC2 {
	return BatchedEC2{
		Launcher:  ec2,
		instances: &Batcher[*cloud.Instance]{Timeout: timeout, Call: describeItems(ec2)},
		terminations: &Batcher[struct{}]{Timeout: timeout, Call: func(ctx context.Context, _ string, ids []string) (map[string]struct{}, error) {
			return nil, ec2.Terminate(ctx, ids)
		}},
		tags: &Batcher[struct{}]{Timeout: timeout, Call: func(ctx context.Context, bucket string, ids []string) (map[string]struct{}, error) {
			var tags map[string]string
			if err := json.Unmarshal([]byte(bucket), &tags); err != nil {
				return nil, fault.E("decoding the tags of a batch", fault.Bug, err)
			}
			return nil, ec2.Tag(ctx, ids, tags)
		}},
	}
}

func describeItems(ec2 cloud.Launcher) func(context.Context, string, []string) (map[string]*cloud.Instance, error) {
	return func(ctx context.Context, _ string, ids []string) (map[string]*cloud.Instance, error) {
		found, err := ec2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: ids})
		out := make(map[string]*cloud.Instance, len(found))
		for i := range found {
			out[found[i].ID] = &found[i]
		}
		return out, err
	}
}

// DescribeInstances batches calls for a single id.
func (c BatchedEC2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	if len(filter.IDs) != 1 || len(filter.Tags) > 0 || len(filter.States) > 0 {
		return c.Launcher.DescribeInstances(ctx, filter)
	}
	found, err := c.instances.Submit(ctx, "", filter.IDs[0])
	if err != nil || found == nil {
		return nil, err
	}
	return []cloud.Instance{*found}, nil
}

// Terminate batches calls for a single id.
func (c BatchedEC2) Terminate(ctx context.Context, ids []string) error {
	if len(ids) != 1 {
		return c.Launcher.Terminate(ctx, ids)
	}
	_, err := c.terminations.Submit(ctx, "", ids[0])
	return err
}

// Tag batches calls for a single id that set the same tags.
func (c BatchedEC2) Tag(ctx context.Context, ids []string, tags map[string]string) error {
	bucket, err := json.Marshal(tags)
	if err != nil || len(ids) != 1 {
		return c.Launcher.Tag(ctx, ids, tags)
	}
	_, err = c.tags.Submit(ctx, string(bucket), ids[0])
	return err
}
