package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// bindInstances binds instances to claims of their intent and returns the claims as stored. An
// instance without a free claim is an orphan and is terminated. An instance that another claim is
// bound to is neither bound nor terminated; the message is then fault.Poison.
func (s *Service) bindInstances(ctx context.Context, e event.Envelope, claims []*karpenter.NodeClaim, intent string, instances []event.Launched) ([]*karpenter.NodeClaim, error) {
	claims = slices.Clone(claims)
	cached := cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims)
	others := slices.DeleteFunc(slices.Clone(cached), func(c *karpenter.NodeClaim) bool { return c.Annotations[launchspec.IntentTag] == intent })
	instances, held := findUnbound(instances, others)
	instances, _ = findUnbound(instances, claims)
	matches, orphans := matchClaims(claims, instances)
	failures := s.bindInOrder(ctx, e, claims, matches)
	return claims, errors.Join(append(failures, s.terminateOrphans(ctx, e, intent, orphans), held)...)
}

// bindInOrder binds one instance after the other, and then writes the labels in parallel. After a conflict or an error that
// does not tell whether the claim was written, it binds no more: another replica may have bound one of the later instances
// to this claim, and that instance would get a second claim.
func (s *Service) bindInOrder(ctx context.Context, e event.Envelope, claims []*karpenter.NodeClaim, matches []binding) []error {
	var failures []error
	var bound []boundClaim
	for _, m := range matches {
		b, err := s.bindInstance(ctx, claims[m.claimIndex], m.instance)
		if err == nil {
			claims[m.claimIndex] = b.claim
			bound = append(bound, b)
			continue
		}
		failures = append(failures, err)
		if !fault.Is(err, fault.Bug, fault.Invalid, fault.Denied) {
			break
		}
	}
	return append(failures, s.executor.ForEach(len(bound), func(i int) error { return s.labelBound(ctx, e, bound[i]) })...)
}

// findUnbound returns the instances that are not bound to any claim, and fault.Poison for the
// others.
func findUnbound(instances []event.Launched, claims []*karpenter.NodeClaim) ([]event.Launched, error) {
	holders := map[string]string{}
	for _, c := range claims {
		if id, err := c.Instance(); err == nil {
			holders[id.InstanceID] = c.Name
		}
	}
	var free []event.Launched
	var held []string
	for _, i := range instances {
		if name := holders[i.InstanceID]; name != "" {
			held = append(held, i.InstanceID+" of NodeClaim "+name)
		} else {
			free = append(free, i)
		}
	}
	if len(held) == 0 {
		return free, nil
	}
	return free, fault.F("binding the instances of a launch", fault.Poison, "other NodeClaims already have these instances: %s", strings.Join(held, ", ")).
		WithHint("these instances were not changed; find the sender of this message")
}

// terminateOrphans requests the termination of instances without a claim, within the limits of the
// breaker. Instances in a zone that is shifted away wait for a later inventory.
func (s *Service) terminateOrphans(ctx context.Context, e event.Envelope, intent string, orphans []event.Launched) error {
	zoneID := zoneIDLookup(s.Cache)
	orphans = slices.DeleteFunc(orphans, func(i event.Launched) bool { return s.isShiftedAway(zoneID(i.Zone)) })
	if len(orphans) == 0 {
		return nil
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return fmt.Errorf("listing NodeClaims to find orphans of intent %s: %w", intent, err)
	}
	orphans, held := findUnbound(orphans, claims)
	ids := make([]string, len(orphans))
	for i := range orphans {
		ids[i] = orphans[i].InstanceID
	}
	if err := s.orphanBreaker.TakeRemoval(ids, len(onlyManaged(claims)), s.Now()); err != nil {
		s.Metrics.Record(metric.GarbageCollectionStopped, 1)
		return errors.Join(err, held)
	}
	failures := s.executor.ForEach(len(ids), func(i int) error {
		return s.executor.Execute(ctx, &e, effect.Send{Body: event.TerminateRequested{
			InstanceID: ids[i], Intent: intent, Reason: "no NodeClaim of intent " + intent + " exists for it",
		}})
	})
	return errors.Join(append(failures, held)...)
}

// binding is an instance and the index of the claim that it is bound to.
type binding struct {
	claimIndex int
	instance   event.Launched
}

// matchClaims assigns unbound instances to the first claim without an instance, and to one that is
// being deleted only if there is no other. It returns the remaining instances as orphans. A claim that
// is not admitted was never launched: a replica that had paused has created it again.
func matchClaims(claims []*karpenter.NodeClaim, instances []event.Launched) (matches []binding, orphans []event.Launched) {
	taken := map[int]bool{}
	for _, instance := range sortByID(instances) {
		free := -1
		for i, c := range claims {
			if taken[i] || !admission.IsAdmitted(c) {
				continue
			}
			if c.Status.ProviderID == "" && (free < 0 || claims[free].DeletionTimestamp != nil && c.DeletionTimestamp == nil) {
				free = i
			}
		}
		if free < 0 {
			orphans = append(orphans, instance)
			continue
		}
		taken[free] = true
		matches = append(matches, binding{free, instance})
	}
	return matches, orphans
}

func sortByID(instances []event.Launched) []event.Launched {
	out := slices.Clone(instances)
	slices.SortFunc(out, func(a, b event.Launched) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	return out
}

func providerIDOf(instance event.Launched) string {
	return karpenter.ProviderID{Zone: instance.Zone, InstanceID: instance.InstanceID}.String()
}
