package lifecycle

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// writeLaunch adds to a user-created NodeClaim the labels and annotations that planned NodeClaims
// are created with. Its own labels and annotations are kept. A NodeClaim that is deleted, being
// deleted or already admitted is not changed. It returns the NodeClaim as stored, nil if it does not exist any more.
func (s *Service) writeLaunch(ctx context.Context, held outbox.Stored, planned planning.PlannedClaim) (*karpenter.NodeClaim, error) {
	object := planned.Object
	c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(&object))
	if fault.Is(err, fault.Missing) || err == nil && c.UID != object.UID {
		return nil, nil
	}
	if err == nil && !launchspec.WaitsUnplanned(c) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading NodeClaim %s, which a person created: %w", object.Name, err)
	}
	c = c.DeepCopy()
	labels := map[string]string{}
	maps.Copy(labels, object.Labels)
	maps.Copy(labels, c.Labels)
	delete(labels, corev1.LabelInstanceTypeStable) // Its presence would mean that the instance is known.
	c.Labels = labels
	for key, value := range object.Annotations {
		annotateObject(c, key, value)
	}
	annotateObject(c, launchspec.BatchAnnotation, admission.BatchID(held.UID(), held.Seq))
	delete(c.Annotations, nodeclaim.RefusalAnnotation)
	stored, err := s.Client.Update(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("writing the launch of NodeClaim %s on it: %w", c.Name, err)
	}
	return stored.(*karpenter.NodeClaim), nil
}

// explainNotLaunched writes why user-created NodeClaims are not launched into an annotation, from
// which their condition Launched is derived, and into an Event. Errors are ignored: the next plan
// writes it again.
func (s *Service) explainNotLaunched(ctx context.Context, plan planning.Plan, refused []admission.Refusal) {
	for _, not := range plan.UnlaunchableClaims {
		s.explainClaim(ctx, not.Claim, not.Reason)
	}
	for _, refusal := range refused {
		for _, intent := range plan.Intents {
			if intent.ID == refusal.Intent && intent.Claims[0].Object.UID != "" {
				s.explainClaim(ctx, intent.Claims[0].Object.Name, refusal.Reason)
			}
		}
	}
}

func (s *Service) explainClaim(ctx context.Context, name, why string) {
	object, known := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
	c, _ := object.(*karpenter.NodeClaim)
	if !known || !launchspec.WaitsUnplanned(c) {
		return
	}
	if c.Annotations[nodeclaim.RefusalAnnotation] != why {
		explained := c.DeepCopy()
		annotateObject(explained, nodeclaim.RefusalAnnotation, why)
		_, _ = s.Client.Update(ctx, explained)
	}
	_ = s.executor.ExecuteOne(ctx, events.LaunchFailed.About(cluster.NodeClaims, c, s.Now(), "%s", why))
}
