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
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// handleInstancesListed compares a complete inventory with the claims. Findings from the cache,
// which may be stale, are computed again from claims that are read live after the inventory: each
// instance in it was launched for a claim that existed before.
func (s *Service) handleInstancesListed(ctx context.Context, e event.Envelope, b event.InstancesListed) error {
	if err := garbagecollection.CheckStart(b.Started, s.Now()); err != nil {
		return err
	}
	if err := s.recordZonalShifts(ctx, b); err != nil {
		return err
	}
	inventory, err := blob.Get[event.Inventory](ctx, s.Blobs, b.Inventory)
	if err != nil {
		return fmt.Errorf("reading the inventory: %w", err)
	}
	if !inventory.Started.Equal(b.Started) {
		return fault.F("reading an inventory", fault.Poison, "the message gives the start time %s, and the document %s",
			b.Started.Format(time.RFC3339Nano), inventory.Started.Format(time.RFC3339Nano))
	}
	if err := inventory.Validate(); err != nil {
		return fault.E("reading an inventory", fault.Poison, err)
	}
	s.drift.setInventory(inventory)
	findings := s.compareInventory(inventory, cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims))
	if findings.Empty() {
		host.AddLogFields(ctx, "instances", len(inventory.Instances))
		return nil
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return fmt.Errorf("listing NodeClaims for the inventory: %w", err)
	}
	findings = s.compareInventory(inventory, claims)
	host.AddLogFields(ctx, "instances", len(inventory.Instances), "unbound", len(findings.Unbound), "orphans", len(findings.Orphans), "gone", len(findings.Gone))
	unbound := s.bindListed(ctx, e, findings.Unbound)
	safe, refused := findings.LimitRemovals()
	safe.Gone, err = s.limitUnexpected(safe.Gone, len(onlyManaged(claims)))
	if refused = errors.Join(refused, err); refused != nil {
		s.Metrics.Record(metric.GarbageCollectionStopped, 1)
	}
	// unbound comes last, because the first error decides whether the message is retried, and
	// unbound concerns one intent, not the inventory.
	return errors.Join(s.applyFindings(ctx, e, safe), refused, unbound)
}

// limitUnexpected returns the claims that may be marked as gone. An inventory is a message like any other: if the node
// is ready and nothing announced the end of its instance, the claim counts against the same limit as an instance.gone.
// The kubelet of a terminated instance stops, so a claim above the limit waits less than a minute if EC2 is right.
func (s *Service) limitUnexpected(gone []*karpenter.NodeClaim, size int) (allowed []*karpenter.NodeClaim, err error) {
	for _, c := range gone {
		if limited := s.limitIfUnexpected(c, size); limited != nil {
			err = errors.Join(err, limited)
		} else {
			allowed = append(allowed, c)
		}
	}
	return allowed, err
}

// limitIfUnexpected counts a claim whose instance is unexpectedly gone, and returns fault.Denied above the limit.
func (s *Service) limitIfUnexpected(c *karpenter.NodeClaim, size int) error {
	if s.cachedNodeByProviderID(c) == nil || s.expectsTermination(c) {
		return nil
	}
	id, err := c.Instance()
	if err != nil {
		return fmt.Errorf("reading the instance of NodeClaim %s, which is gone: %w", c.Name, err)
	}
	if err := s.goneBreaker.TakeRemoval([]string{id.InstanceID}, size, s.Now()); err != nil {
		return fmt.Errorf("marking NodeClaim %s as gone while its node is ready: %w", c.Name, err)
	}
	return nil
}

func (s *Service) compareInventory(inventory event.Inventory, claims []*karpenter.NodeClaim) garbagecollection.Findings {
	findings := garbagecollection.CompareInventory(inventory, claims, s.presentClaims(claims))
	findings.Orphans = s.filterReachable(findings.Orphans)
	return findings
}

// bindListed binds instances whose launch result never arrived. An error in one intent does not
// stop the others.
func (s *Service) bindListed(ctx context.Context, e event.Envelope, found []event.Listed) error {
	intents := map[string][]event.Launched{}
	for _, i := range found {
		intents[i.Intent] = append(intents[i.Intent], event.Launched{InstanceID: i.InstanceID, Offering: i.Offering, ImageID: i.ImageID})
	}
	var failures []error
	for _, intent := range slices.Sorted(maps.Keys(intents)) {
		claims, err := s.readIntentClaims(ctx, intent)
		if err == nil {
			_, err = s.bindInstances(ctx, e, claims, intent, intents[intent])
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// applyFindings executes the findings. An object that cannot be written does not stop the others.
func (s *Service) applyFindings(ctx context.Context, e event.Envelope, f garbagecollection.Findings) error {
	failures := s.executor.ForEach(len(f.Orphans), func(i int) error {
		o := f.Orphans[i]
		body := event.TerminateRequested{InstanceID: o.InstanceID, Claim: o.Claim, Intent: o.Intent, Reason: "no NodeClaim exists for it"}
		return s.executor.Execute(ctx, &e, effect.Send{Body: body})
	})
	failures = append(failures, updateEach(ctx, s.executor, &e, f.Absent, func(c *karpenter.NodeClaim) *karpenter.NodeClaim {
		return withAnnotation(c, garbagecollection.AbsentAnnotation, f.Started.UTC().Format(time.RFC3339Nano))
	}))
	failures = append(failures, s.executor.ForEach(len(f.Gone), func(i int) error { return s.markInstanceGone(ctx, e, f.Gone[i]) })...)
	return errors.Join(append(failures, s.updateBoundClaims(ctx, f))...)
}

// updateBoundClaims adds missing labels to claims whose binding was interrupted by a crash, and
// updates annotations about the instance.
func (s *Service) updateBoundClaims(ctx context.Context, f garbagecollection.Findings) error {
	// A claim is written once per pass. Partitions come first, because nodes wait for them.
	failures := []error{updateEach(ctx, s.executor, nil, f.Partitioned, withPartition)}
	failures = append(failures, s.executor.ForEach(len(f.Unlabelled), func(i int) error {
		bound := f.Unlabelled[i]
		facts, err := s.readOfferingFacts(ctx, bound.Claim, bound.Instance.Offering)
		if err != nil {
			return err
		}
		return s.labelClaim(ctx, bound.Claim, facts, bound.Instance.Offering)
	})...)
	return errors.Join(append(failures,
		updateEach(ctx, s.executor, nil, f.Returned, func(c *karpenter.NodeClaim) *karpenter.NodeClaim {
			c = c.DeepCopy()
			delete(c.Annotations, garbagecollection.AbsentAnnotation)
			return c
		}),
		updateEach(ctx, s.executor, nil, f.Tagged, withTaggedAnnotation),
		updateEach(ctx, s.executor, nil, f.Demoted, nodeclaim.WithOnDemandLabels),
	)...)
}

// updateEach writes the result of change for each item and joins all errors.
func updateEach[T any, O cluster.Object](ctx context.Context, do effect.Executor, cause *event.Envelope, items []T, change func(T) O) error {
	return errors.Join(do.ForEach(len(items), func(i int) error {
		return do.Execute(ctx, cause, effect.Update{Object: change(items[i])})
	})...)
}

// withAnnotation returns a copy of the claim with the annotation.
func withAnnotation(c *karpenter.NodeClaim, key, value string) *karpenter.NodeClaim {
	c = c.DeepCopy()
	annotateObject(c, key, value)
	return c
}

// withTaggedAnnotation returns the claim with the annotations that mark its instance as tagged.
func withTaggedAnnotation(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c = withAnnotation(c, karpenter.InstanceTaggedAnnotationKey, "true")
	// If Karpenter takes over again, it need not tag the instance once more.
	annotateObject(c, karpenter.ClusterNameTaggedCompatibilityAnnotationKey, "true")
	return c
}

// markInstanceGone records on the claim that its instance is terminated, and deletes the claim.
// Step completes the termination.
func (s *Service) markInstanceGone(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim) error {
	var effects []effect.Effect
	if c.Annotations[garbagecollection.GoneAnnotation] == "" {
		marked := c.DeepCopy()
		annotateObject(marked, garbagecollection.GoneAnnotation, s.Now().UTC().Format(time.RFC3339))
		if c.DeletionTimestamp == nil {
			// The claim was not being deleted, so this message is the cause of its deletion.
			s.keepTrace(marked, e)
		}
		effects = append(effects, effect.Update{Object: marked})
	}
	if c.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "instance gone"})
	}
	return s.executor.Execute(ctx, &e, effects...)
}

// presentClaims returns which claims keep their instance even if the inventory lacks it, by claim
// name: their node is Ready, or EC2 may not describe instances in their zone, which is shifted away
// (Karpenter: pkg/providers/instance/instance.go, List).
func (s *Service) presentClaims(claims []*karpenter.NodeClaim) map[string]bool {
	present := map[string]bool{}
	nodes, zoneID := nodesByProvider(s.Cache), zoneIDLookup(s.Cache)
	for _, c := range claims {
		if c.Status.ProviderID == "" {
			continue
		}
		node := nodes[c.Status.ProviderID]
		present[c.Name] = node != nil && conditions.NodeReady(node) || s.isClaimShiftedAway(c, zoneID)
	}
	return present
}
