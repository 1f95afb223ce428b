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

// overlaid says on each NodeOverlay whether it counts. Only a planner can
// tell, who has the instance types, so that an overlay stands as the last plan that
// knew it has it. Losing one is harmless: the next plan says the same.
func (s *Service) overlaid(ctx context.Context, plan planning.Plan) error {
	var failures []error
	for _, verdict := range plan.Overlays {
		err := s.judge(ctx, verdict)
		if err != nil && !fault.Is(err, fault.Missing) {
			failures = append(failures, fmt.Errorf("telling NodeOverlay %s of a plan: %w", verdict.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) judge(ctx context.Context, verdict planning.OverlayVerdict) error {
	o, err := cluster.Get[*karpenter.NodeOverlay](ctx, s.Client, cluster.NodeOverlays, cluster.Key{Name: verdict.Name})
	if err != nil {
		return err
	}
	status, known := nodeoverlay.ComputeStatus(o, verdict, s.Now())
	if !known || equalJSON(o.Status, status) {
		return nil
	}
	next := o.DeepCopy()
	next.Status = status
	return s.do.Do(ctx, nil, effect.UpdateStatus{Object: next})
}
