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

// bufferInterval is how often CapacityBuffers and the workloads that they reference are read. They
// are few and are read live, because a watch of all workloads would cost more, and because a
// cluster without the CRD must work.
const bufferInterval = 10 * time.Second

// reconcileCapacityBuffers writes ReadyForProvisioning on each CapacityBuffer. An error on one
// does not stop the others.
func (s *Service) reconcileCapacityBuffers(ctx context.Context, _ clusterState) error {
	if !s.CapacityBuffers || !s.allowAction("buffers", bufferInterval) {
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
			unread = s.updateBufferStatus(ctx, b, status)
		}
		if unread != nil {
			failures = append(failures, fmt.Errorf("CapacityBuffer %s: %w", cluster.KeyOf(b), unread))
		}
	}
	return joinUnexpected(failures)
}

// recordBufferPlacements writes on each CapacityBuffer how much capacity the plan found for it.
// Losing a write is harmless, because the buffer's pods are in the next batch again.
func (s *Service) recordBufferPlacements(ctx context.Context, plan planning.Plan) error {
	rooms := capacitybuffer.CountReserved(plan)
	if !s.CapacityBuffers {
		return nil
	}
	var failures []error
	order := func(a, b cluster.Key) int { return strings.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(rooms), order) {
		b, err := cluster.Get[*karpenter.CapacityBuffer](ctx, s.Client, cluster.CapacityBuffers, key)
		if err == nil {
			err = s.updateBufferStatus(ctx, b, capacitybuffer.WithPlan(b, rooms[key], s.Now()))
		}
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("writing the result of a plan on CapacityBuffer %s: %w", key, err))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) updateBufferStatus(ctx context.Context, b *karpenter.CapacityBuffer, status karpenter.CapacityBufferStatus) error {
	if equalJSON(b.Status, status) {
		return nil
	}
	next := b.DeepCopy()
	next.Status = status
	return s.executor.Execute(ctx, nil, effect.UpdateStatus{Object: next})
}
