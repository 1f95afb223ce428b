package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// listed compares a complete inventory with the claims. The cache may be behind, so
// that what it calls for is looked at again with the claims read live after the
// inventory: an instance that it shows was launched for a claim that existed before.
func (s *Service) listed(ctx context.Context, e event.Envelope, b event.InstancesListed) error {
	if err := garbagecollection.CheckStart(b.Started, s.Now()); err != nil {
		return err
	}
	if err := s.heed(ctx, b); err != nil {
		return err
	}
	inventory, err := blob.Get[event.Inventory](ctx, s.Blobs, b.Inventory)
	if err != nil {
		return fmt.Errorf("reading the inventory: %w", err)
	}
	if !inventory.Started.Equal(b.Started) {
		return fault.F("taking an inventory", fault.Poison, "the message says that it began at %s, and the document at %s",
			b.Started.Format(time.RFC3339Nano), inventory.Started.Format(time.RFC3339Nano))
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
	unbound := s.bindListed(ctx, e, findings.Bind)
	safe, refused := findings.LimitRemovals()
	if refused != nil {
		s.count(SweepsStopped, 1)
	}
	// unbound comes last: the first error decides whether the message is retried, and
	// what binding reports is about one intent, not about the inventory.
	return errors.Join(s.carryOutSweep(ctx, e, safe), refused, unbound)
}

func (s *Service) compare(inventory event.Inventory, claims []*karpenter.NodeClaim) garbagecollection.Findings {
	findings := garbagecollection.CompareInventory(inventory, claims, s.readiness(claims), s.Now())
	findings.Orphans = s.reachable(findings.Orphans)
	return findings
}

// bindListed binds instances whose launches were never answered, intent by intent:
// a claim that cannot be bound keeps neither its intent's other claims nor other
// intents from being bound.
func (s *Service) bindListed(ctx context.Context, e event.Envelope, found []event.Listed) error {
	intents := map[string][]event.Launched{}
	for _, i := range found {
		intents[i.Intent] = append(intents[i.Intent], event.Launched{InstanceID: i.InstanceID, Offering: i.Offering, ImageID: i.ImageID})
	}
	var failures []error
	for _, intent := range slices.Sorted(maps.Keys(intents)) {
		claims, err := s.claimsOf(ctx, intent)
		if err == nil {
			_, err = s.bind(ctx, e, claims, intent, intents[intent])
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// carryOutSweep does what the findings call for. An object that cannot be written
// does not stop the others.
func (s *Service) carryOutSweep(ctx context.Context, e event.Envelope, f garbagecollection.Findings) error {
	failures := s.do.Each(len(f.Orphans), func(i int) error {
		o := f.Orphans[i]
		body := event.TerminateRequested{InstanceID: o.InstanceID, Claim: o.Claim, Intent: o.Intent, Reason: "no NodeClaim stands for it"}
		return s.do.Do(ctx, &e, effect.Send{Body: body})
	})
	failures = append(failures, updateEach(ctx, s.do, &e, f.Absent, func(c *karpenter.NodeClaim) *karpenter.NodeClaim {
		return withAnnotation(c, garbagecollection.AbsentAnnotation, f.Started.UTC().Format(time.RFC3339Nano))
	}))
	failures = append(failures, s.do.Each(len(f.Gone), func(i int) error { return s.markGone(ctx, e, f.Gone[i]) })...)
	return errors.Join(append(failures, s.relabel(ctx, f))...)
}

// relabel mends claims that were bound just before a crash, and keeps their
// notes about the instance true.
func (s *Service) relabel(ctx context.Context, f garbagecollection.Findings) error {
	// A claim is written once, and a node waits for this.
	failures := []error{updateEach(ctx, s.do, nil, f.Parted, withPartition)}
	failures = append(failures, s.do.Each(len(f.Unlabelled), func(i int) error {
		bound := f.Unlabelled[i]
		facts, err := s.facts(ctx, bound.Claim, bound.Instance.Offering)
		if err != nil {
			return err
		}
		return s.label(ctx, bound.Claim, facts, bound.Instance.Offering)
	})...)
	return errors.Join(append(failures,
		updateEach(ctx, s.do, nil, f.Returned, func(c *karpenter.NodeClaim) *karpenter.NodeClaim {
			c = c.DeepCopy()
			delete(c.Annotations, garbagecollection.AbsentAnnotation)
			return c
		}),
		updateEach(ctx, s.do, nil, f.Tagged, withTagNote),
		updateEach(ctx, s.do, nil, f.Demoted, nodeclaim.Demoted),
	)...)
}

// updateEach writes what change makes of each item, and gives all errors together:
// an object that cannot be written does not stop the others.
func updateEach[T any, O cluster.Object](ctx context.Context, do effect.Doer, cause *event.Envelope, items []T, change func(T) O) error {
	return errors.Join(do.Each(len(items), func(i int) error {
		return do.Do(ctx, cause, effect.Update{Object: change(items[i])})
	})...)
}

// withAnnotation is a copy of the claim with the annotation.
func withAnnotation(c *karpenter.NodeClaim, key, value string) *karpenter.NodeClaim {
	c = c.DeepCopy()
	annotate(c, key, value)
	return c
}

// withTagNote notes that the claim's instance carries its names.
func withTagNote(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c = withAnnotation(c, karpenter.InstanceTaggedAnnotationKey, "true")
	// Karpenter, if it takes over again, need not tag it once more.
	annotate(c, karpenter.ClusterNameTaggedCompatibilityAnnotationKey, "true")
	return c
}

// markGone writes down that the claim's instance is no more, and asks for the
// claim's deletion; Step does the rest.
func (s *Service) markGone(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim) error {
	var effects []effect.Effect
	if c.Annotations[garbagecollection.GoneAnnotation] == "" {
		marked := c.DeepCopy()
		annotate(marked, garbagecollection.GoneAnnotation, s.Now().UTC().Format(time.RFC3339))
		if c.DeletionTimestamp == nil {
			// Nothing had ended it before; else its end is the story of what did.
			s.ending(marked, e)
		}
		effects = append(effects, effect.Update{Object: marked})
	}
	if c.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "instance gone"})
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
