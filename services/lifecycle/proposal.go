package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/drain"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// proposed takes one phase of a disruption proposal. A first proposal is only
// written on the claims; the next snapshot carries it, and only a confirmation
// of what is written acts.
func (s *Service) proposed(ctx context.Context, e event.Envelope, b event.DisruptionProposed) error {
	for _, name := range b.Claims {
		claim, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: name})
		if fault.Is(err, fault.Missing) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading NodeClaim %s for a proposal: %w", name, err)
		}
		if err := s.phase(ctx, e, claim, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) phase(ctx context.Context, e event.Envelope, claim *karpenter.NodeClaim, b event.DisruptionProposed) error {
	written := scheduling.ProposalOf(claim)
	mine := written != nil && written.ID == b.Proposal
	switch {
	case claim.DeletionTimestamp != nil:
		return nil
	case b.Phase == event.Proposed && !mine:
		return s.write(ctx, e, claim, &scheduling.Proposal{ID: b.Proposal, Reason: b.Reason, Proposed: s.Now().UTC()})
	case b.Phase == event.Dropped && mine:
		return s.write(ctx, e, claim, nil)
	case b.Phase == event.Confirmed && mine:
		return s.act(ctx, e, claim, b, written)
	default:
		return nil
	}
}

// write puts the proposal on the claim, or takes it off.
func (s *Service) write(ctx context.Context, e event.Envelope, claim *karpenter.NodeClaim, p *scheduling.Proposal) error {
	claim = claim.DeepCopy()
	if p == nil {
		delete(claim.Annotations, scheduling.ProposalAnnotation)
		return s.do.Do(ctx, &e, effect.Update{Object: claim})
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fault.E("encoding a proposal", fault.Bug, err)
	}
	annotate(claim, scheduling.ProposalAnnotation, string(text))
	return s.do.Do(ctx, &e, effect.Update{Object: claim})
}

// act removes the claim, after one more look at what is live: the snapshot that
// confirmed it is already old.
func (s *Service) act(ctx context.Context, e event.Envelope, claim *karpenter.NodeClaim, b event.DisruptionProposed, p *scheduling.Proposal) error {
	if s.Now().Sub(p.Proposed) < scheduling.ConfirmAfter {
		return fault.F("confirming proposal "+b.Proposal, fault.Stale, "it is younger than %s", scheduling.ConfirmAfter)
	}
	why, err := s.objection(ctx, claim)
	if err != nil {
		return err
	}
	if why != "" {
		host.Say(ctx, "objection", why)
		return s.write(ctx, e, claim, nil)
	}
	return s.do.Do(ctx, &e,
		effect.Report{Event: cluster.Event{
			About: claim, Kind: cluster.NodeClaims, Type: "Normal", Reason: "DisruptionTerminating",
			Message: "Disrupting NodeClaim: " + b.Reason, Dedupe: 2 * time.Minute, Now: s.Now(),
		}},
		effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(claim), UID: claim.UID, Why: b.Reason})
}

// objection says why an empty node may not go after all.
func (s *Service) objection(ctx context.Context, claim *karpenter.NodeClaim) (string, error) {
	until, err := time.Parse(time.RFC3339, claim.Annotations[NominatedAnnotation])
	if err == nil && until.After(s.Now()) {
		return "pods are expected on it", nil
	}
	objects, err := s.Client.List(ctx, cluster.Pods, "")
	if err != nil {
		return "", fmt.Errorf("listing pods for a proposal: %w", err)
	}
	for _, pod := range cluster.Cast[*corev1.Pod](objects) {
		if pod.Spec.NodeName == claim.Status.NodeName && pod.Spec.NodeName != "" && !drain.OwnedByDaemonSet(pod) && drain.Drainable(pod, s.Now()) {
			return "pod " + cluster.KeyOf(pod).String() + " runs on it", nil
		}
	}
	return "", nil
}
