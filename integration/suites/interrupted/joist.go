package interrupted

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// ec2 shows every instance: the cluster's with its tags, and others with other tags.
type ec2 struct {
	link      *link
	instances map[string]cloud.Instance
}

func newEC2(l *link, messages []Message) ec2 {
	e := ec2{link: l, instances: make(map[string]cloud.Instance, len(messages))}
	tags := map[string]string{"kubernetes.io/cluster/" + cluster: "owned", "karpenter.sh/nodepool": "default"}
	others := map[string]string{"Name": "database"}
	for _, m := range messages {
		i := cloud.Instance{ID: m.Instance, Type: "m6i.large", Zone: region + "a", CapacityType: cloud.Spot, State: m.State, Tags: others}
		if m.Known {
			i.Tags = tags
		}
		e.instances[m.Instance] = i
	}
	return e
}

func (e ec2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	if err := e.link.pass(ctx); err != nil {
		return nil, err
	}
	out := make([]cloud.Instance, 0, len(filter.IDs))
	for _, id := range filter.IDs {
		if i, known := e.instances[id]; known {
			out = append(out, i)
		}
	}
	return out, nil
}

func (e ec2) DescribeStatus(context.Context) ([]cloud.Status, error) { return nil, nil }

// bus accepts and drops facts, ten per call.
type bus struct{ link *link }

func (b bus) Send(ctx context.Context, facts ...queue.Outgoing) error {
	for range slices.Chunk(facts, queue.MaxBatch) {
		if err := b.link.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readyJoist returns the service's host, configured as in its binary.
func readyJoist(ctx context.Context, b *bench, messages []Message) (func(ctx context.Context) error, error) {
	told, err := telemetry.New(ctx, telemetry.Options{Service: "interruption", Cluster: cluster, Out: io.Discard})
	if err != nil {
		return nil, fmt.Errorf("preparing telemetry: %w", err)
	}
	known := newEC2(&b.toAPI, messages)
	service := &interruption.Service{
		EC2: known, Statuses: known, Bus: queue.BatchSends(bus{&b.toAPI}, interruption.BusLanes),
		Cluster: event.Cluster{Name: cluster}, Account: account, Region: region, Now: time.Now, Limit: interruption.CallLimit,
	}
	worker := host.Worker{
		Service: "interruption", Queue: b.far(), Dead: far{b.dead, &b.toQueue, new(atomic.Int64)}, Handle: service.Handle, Log: told.LogMessage, Now: time.Now,
	}
	options := interruption.Options()
	options.HandleBatch = service.Batch
	return func(ctx context.Context) error { return host.Poll(ctx, worker, options) }, nil
}
