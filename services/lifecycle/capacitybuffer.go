package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/capacitybuffer"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// buffersEvery is how often CapacityBuffers, and what they name, are read. They are
// few, and read live: to watch all workloads of a cluster for them would cost
// more, and a cluster that lacks their kind has all else kept true.
const buffersEvery = 10 * time.Second

// capacityBuffers says on each CapacityBuffer for what room is kept. One that
// fails holds up no other.
func (s *Service) capacityBuffers(ctx context.Context, _ world) error {
	if !s.CapacityBuffers || !s.due("buffers", buffersEvery) {
		return nil
	}
	buffers, err := cluster.List[*karpenter.CapacityBuffer](ctx, s.Client, cluster.CapacityBuffers)
	if err != nil {
		return fmt.Errorf("listing CapacityBuffers: %w", err)
	}
	var failures []error
	for _, b := range buffers {
		var unread error
		status := capacitybuffer.ResolveStatus(b, func(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
			object, err := s.Client.Get(ctx, kind, key)
			if err != nil && !fault.Is(err, fault.Missing) {
				unread = err
			}
			return object, err == nil
		}, s.Now())
		if unread == nil {
			unread = s.writeBuffer(ctx, b, status)
		}
		if unread != nil {
			failures = append(failures, fmt.Errorf("CapacityBuffer %s: %w", cluster.KeyOf(b), unread))
		}
	}
	return worth(failures)
}

// buffered says on each CapacityBuffer what room the plan has found for it. Losing
// one is harmless: its pods are in the next batch again.
func (s *Service) buffered(ctx context.Context, plan planning.Plan) error {
	rooms := capacitybuffer.CountReserved(plan)
	if !s.CapacityBuffers {
		return nil
	}
	var failures []error
	order := func(a, b cluster.Key) int { return strings.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(rooms), order) {
		b, err := cluster.Get[*karpenter.CapacityBuffer](ctx, s.Client, cluster.CapacityBuffers, key)
		if err == nil {
			err = s.writeBuffer(ctx, b, capacitybuffer.WithPlan(b, rooms[key], s.Now()))
		}
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("telling CapacityBuffer %s of a plan: %w", key, err))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) writeBuffer(ctx context.Context, b *karpenter.CapacityBuffer, status karpenter.CapacityBufferStatus) error {
	if equalJSON(b.Status, status) {
		return nil
	}
	next := b.DeepCopy()
	next.Status = status
	return s.do.Do(ctx, nil, effect.UpdateStatus{Object: next})
}
