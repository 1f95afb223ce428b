package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/sweep"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// listed compares a complete inventory with the claims. The cache may be behind, so
// that what it calls for is looked at again with the claims read live after the
// inventory: an instance that it shows was launched for a claim that existed before.
func (s *Service) listed(ctx context.Context, e event.Envelope, b event.InstancesListed) error {
	if err := s.heed(ctx, b); err != nil {
		return err
	}
	inventory, err := blob.Get[event.Inventory](ctx, s.Blobs, b.Inventory)
	if err != nil {
		return fmt.Errorf("reading the inventory: %w", err)
	}
	s.drift.told(inventory)
	findings := s.compare(inventory, cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims))
	if findings.Empty() {
		host.Say(ctx, "instances", len(inventory.Instances))
		return nil
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return fmt.Errorf("listing NodeClaims for the inventory: %w", err)
	}
	findings = s.compare(inventory, claims)
	host.Say(ctx, "instances", len(inventory.Instances), "bind", len(findings.Bind), "orphans", len(findings.Orphans), "gone", len(findings.Gone))
	for _, found := range findings.Bind {
		if err := s.bindListed(ctx, e, found); err != nil {
			return err
		}
	}
	safe, refused := findings.Safe()
	if refused != nil {
		s.count(SweepsStopped, 1)
	}
	if err := s.carryOutSweep(ctx, e, safe); err != nil {
		return err
	}
	return refused
}

func (s *Service) compare(inventory event.Inventory, claims []*karpenter.NodeClaim) sweep.Findings {
	findings := sweep.Compare(inventory, claims, s.readiness(claims), s.Now())
	findings.Orphans = s.reachable(findings.Orphans)
	return findings
}

// bindListed binds an instance whose launch was never answered.
func (s *Service) bindListed(ctx context.Context, e event.Envelope, found event.Listed) error {
	claims, err := s.claimsOf(ctx, found.Intent)
	if err != nil {
		return err
	}
	_, err = s.bind(ctx, e, claims, found.Intent, []event.Launched{{InstanceID: found.InstanceID, Offering: found.Offering, ImageID: found.ImageID}})
	return err
}

func (s *Service) carryOutSweep(ctx context.Context, e event.Envelope, f sweep.Findings) error {
	for _, o := range f.Orphans {
		send := effect.Send{Body: event.TerminateRequested{InstanceID: o.InstanceID, Reason: "no NodeClaim stands for it"}}
		if err := s.do.Do(ctx, &e, send); err != nil {
			return err
		}
	}
	for _, claim := range f.Absent {
		marked := claim.DeepCopy()
		annotate(marked, sweep.AbsentAnnotation, f.Started.UTC().Format(time.RFC3339Nano))
		if err := s.do.Do(ctx, &e, effect.Update{Object: marked}); err != nil {
			return err
		}
	}
	gone := s.do.Each(len(f.Gone), func(i int) error { return s.markGone(ctx, e, f.Gone[i]) })
	if err := errors.Join(gone...); err != nil {
		return err
	}
	return s.relabel(ctx, f)
}

// relabel mends claims that were bound just before a crash, and keeps their
// notes about the instance true.
func (s *Service) relabel(ctx context.Context, f sweep.Findings) error {
	// A claim is written once, and a node waits for this.
	if err := s.part(ctx, f.Parted); err != nil {
		return err
	}
	for _, bound := range f.Unlabelled {
		facts, err := s.facts(ctx, bound.Claim, bound.Instance.Offering)
		if err != nil {
			return err
		}
		if err := s.label(ctx, bound.Claim, facts, bound.Instance.Offering); err != nil {
			return err
		}
	}
	for _, claim := range f.Returned {
		back := claim.DeepCopy()
		delete(back.Annotations, sweep.AbsentAnnotation)
		if err := s.do.Do(ctx, nil, effect.Update{Object: back}); err != nil {
			return err
		}
	}
	tagged := s.do.Each(len(f.Tagged), func(i int) error { return s.tagged(ctx, f.Tagged[i]) })
	return errors.Join(append(tagged, s.demote(ctx, f.Demoted))...)
}

// tagged notes that the claim's instance carries its names.
func (s *Service) tagged(ctx context.Context, claim *karpenter.NodeClaim) error {
	claim = claim.DeepCopy()
	annotate(claim, karpenter.InstanceTaggedAnnotationKey, "true")
	// Karpenter, if it takes over again, need not tag it once more.
	annotate(claim, karpenter.ClusterNameTaggedCompatibilityAnnotationKey, "true")
	return s.do.Do(ctx, nil, effect.Update{Object: claim})
}

// markGone writes down that the claim's instance is no more, and asks for the
// claim's deletion; Step does the rest.
func (s *Service) markGone(ctx context.Context, e event.Envelope, claim *karpenter.NodeClaim) error {
	var effects []effect.Effect
	if claim.Annotations[sweep.GoneAnnotation] == "" {
		marked := claim.DeepCopy()
		annotate(marked, sweep.GoneAnnotation, s.Now().UTC().Format(time.RFC3339))
		if claim.DeletionTimestamp == nil {
			// Nothing had ended it before; else its end is the story of what did.
			s.ending(marked, e)
		}
		effects = append(effects, effect.Update{Object: marked})
	}
	if claim.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(claim), UID: claim.UID, Why: "instance gone"})
	}
	return s.do.Do(ctx, &e, effects...)
}

// readiness says which claims have a node that is Ready, by providerID.
func (s *Service) readiness(claims []*karpenter.NodeClaim) map[string]bool {
	ready := map[string]bool{}
	nodes := nodesByProvider(s.Cache)
	for _, c := range claims {
		if node := nodes[c.Status.ProviderID]; node != nil && c.Status.ProviderID != "" {
			ready[c.Name] = isReady(node)
		}
	}
	return ready
}
