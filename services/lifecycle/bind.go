package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// bind gives instances to claims of their intent, and returns the claims as they
// are then. An instance for which no claim is left is an orphan, and ends. An instance
// that another claim has is neither bound nor ended: the message contradicts what is
// true, which is fault.Poison.
func (s *Service) bind(ctx context.Context, e event.Envelope, claims []*karpenter.NodeClaim, intent string, instances []event.Launched) ([]*karpenter.NodeClaim, error) {
	claims = slices.Clone(claims)
	cached := cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims)
	others := slices.DeleteFunc(slices.Clone(cached), func(c *karpenter.NodeClaim) bool { return c.Annotations[launchspec.IntentTag] == intent })
	instances, held := unheld(instances, others)
	instances, _ = unheld(instances, claims)
	matches, orphans := match(claims, instances)
	failures := s.do.Each(len(matches), func(i int) error {
		m := matches[i]
		bound, err := s.bindTo(ctx, e, claims[m.claim], m.instance)
		if err == nil {
			claims[m.claim] = bound
		}
		return err
	})
	return claims, errors.Join(append(failures, s.endOrphans(ctx, e, intent, orphans), held)...)
}

// unheld gives the instances that none of the claims has, and an error about the
// others, which is fault.Poison; nil without any.
func unheld(instances []event.Launched, claims []*karpenter.NodeClaim) ([]event.Launched, error) {
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
	return free, fault.F("taking instances of a launch", fault.Poison, "other claims have them: %s", strings.Join(held, ", ")).
		WithHint("find out who sent this message; these instances were not touched")
}

// endOrphans ends instances that no claim has by a live list of all claims, as far as
// the breaker lets it. Where a zone is shifted away from, inventories see to it
// later.
func (s *Service) endOrphans(ctx context.Context, e event.Envelope, intent string, orphans []event.Launched) error {
	zoneID := zoneIDs(s.Cache)
	orphans = slices.DeleteFunc(orphans, func(i event.Launched) bool { return s.shifted(zoneID(i.Zone)) })
	if len(orphans) == 0 {
		return nil
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return fmt.Errorf("listing NodeClaims for instances of intent %s that no claim of it has: %w", intent, err)
	}
	orphans, held := unheld(orphans, claims)
	ids := make([]string, len(orphans))
	for i := range orphans {
		ids[i] = orphans[i].InstanceID
	}
	if err := s.unclaimed.TakeRemoval(ids, len(claims), s.Now()); err != nil {
		s.count(SweepsStopped, 1)
		return errors.Join(err, held)
	}
	failures := s.do.Each(len(ids), func(i int) error {
		return s.do.Do(ctx, &e, effect.Send{Body: event.TerminateRequested{
			InstanceID: ids[i], Intent: intent, Reason: "no claim of intent " + intent + " stands for it",
		}})
	})
	return errors.Join(append(failures, held)...)
}

// matched is an instance, and the claim that is to have it, by its place.
type matched struct {
	claim    int
	instance event.Launched
}

// match chooses a claim for each instance that no claim has yet, in their order:
// the first that has none, and one that is being deleted only when there is no
// other. Orphans are those for which none is left.
func match(claims []*karpenter.NodeClaim, instances []event.Launched) (matches []matched, orphans []event.Launched) {
	has, taken := map[string]bool{}, map[int]bool{}
	for _, c := range claims {
		has[c.Status.ProviderID] = true
	}
	for _, instance := range sorted(instances) {
		if has[providerID(instance)] {
			continue
		}
		free := -1
		for i, c := range claims {
			if taken[i] {
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
		matches = append(matches, matched{free, instance})
	}
	return matches, orphans
}

func sorted(instances []event.Launched) []event.Launched {
	out := slices.Clone(instances)
	slices.SortFunc(out, func(a, b event.Launched) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	return out
}

func providerID(instance event.Launched) string {
	return karpenter.ProviderID{Zone: instance.Zone, InstanceID: instance.InstanceID}.String()
}
