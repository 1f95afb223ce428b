package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/nodeoverlay"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// updateOverlayStatuses writes the plan's result on each NodeOverlay. Only the planner can
// evaluate overlays, because it has the instance types. Losing a write is harmless, because the
// next plan repeats it.
func (s *Service) updateOverlayStatuses(ctx context.Context, plan planning.Plan) error {
	var failures []error
	for _, planned := range plan.OverlayStatuses {
		err := s.updateOverlayStatus(ctx, planned)
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("writing the result of a plan on NodeOverlay %s: %w", planned.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) updateOverlayStatus(ctx context.Context, planned planning.OverlayStatus) error {
	o, err := cluster.Get[*karpenter.NodeOverlay](ctx, s.Client, cluster.NodeOverlays, cluster.Key{Name: planned.Name})
	if err != nil {
		return err
	}
	status, known := nodeoverlay.ComputeStatus(o, planned, s.Now())
	if !known || equalJSON(o.Status, status) {
		return nil
	}
	next := o.DeepCopy()
	next.Status = status
	return s.executor.Execute(ctx, nil, effect.UpdateStatus{Object: next})
}
