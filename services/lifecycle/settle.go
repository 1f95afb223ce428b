package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// RefusedAnnotation marks a claim whose launch was definitely refused. Its
// value is "spent" when no copy of the request can launch any more; then the
// claim may go at once. "unspent" waits until the last request has died.
const RefusedAnnotation = "joist.sh/refused"

const (
	spent   = nodeclaim.SpentMark
	unspent = "unspent"
)

// settle takes the outcome of one intent: instances are bound, shortages are
// written down, and claims that got nothing are removed, in that order. The shortages
// are written even if a claim could not be bound.
func (s *Service) settle(ctx context.Context, e event.Envelope, b event.LaunchSettled) error {
	claims, err := s.claimsOf(ctx, b.Intent)
	if err != nil {
		return err
	}
	claims, unbound := s.bind(ctx, e, claims, b.Intent, b.Instances)
	// The shortage must be known before the claim goes, or the next plan would
	// ask for the same again.
	if err := s.blame(ctx, b.Refusals); err != nil || unbound != nil || len(b.Refusals) == 0 {
		// A claim that could not be bound has an instance all the same, so that none
		// may be refused yet. The others have theirs.
		return errors.Join(err, unbound)
	}
	return s.refuse(ctx, e, claims, b)
}

// blame writes down what refusals say is not to be had for a while.
func (s *Service) blame(ctx context.Context, refusals []event.Refusal) error {
	return s.blaming.Do(ctx, func(ctx context.Context) error {
		return admission.RecordUnavailable(ctx, s.Client, s.Namespace, refusals, s.Now())
	})
}

// few is how many claims are rather read one by one than all there are.
const few = 10

// claimsOf reads the claims of an intent, live, by name. Each says how many they
// are, so that the cache is believed that it shows all of them, though not how
// they are now; else all claims of the cluster are read.
func (s *Service) claimsOf(ctx context.Context, intent string) ([]*karpenter.NodeClaim, error) {
	known := ofIntent(cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims), intent)
	if len(known) == 0 || len(known) > few || known[0].Annotations[launchspec.ClaimsAnnotation] != strconv.Itoa(len(known)) {
		all, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
		if err != nil {
			return nil, fmt.Errorf("listing the NodeClaims of intent %s: %w", intent, err)
		}
		return ofIntent(all, intent), nil
	}
	var claims []*karpenter.NodeClaim
	for _, c := range known {
		now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
		switch {
		case err == nil && now.UID == c.UID:
			claims = append(claims, now)
		case err != nil && !fault.Is(err, fault.Missing):
			return nil, fmt.Errorf("reading NodeClaim %s of intent %s: %w", c.Name, intent, err)
		}
	}
	return claims, nil
}

// ofIntent are those of the claims that are of the intent, by name.
func ofIntent(all []*karpenter.NodeClaim, intent string) []*karpenter.NodeClaim {
	claims := slices.DeleteFunc(slices.Clone(all), func(c *karpenter.NodeClaim) bool { return c.Annotations[launchspec.IntentTag] != intent })
	slices.SortFunc(claims, func(a, b *karpenter.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return claims
}

// bindTo swaps the providerID in. A lost swap is a retry of the message: who
// won may have bound another instance. A claim that is being deleted is bound without
// the intent's facts where those cannot be read: nothing else ends its instance.
func (s *Service) bindTo(ctx context.Context, e event.Envelope, claim *karpenter.NodeClaim, instance event.Launched) (*karpenter.NodeClaim, error) {
	facts, err := s.facts(ctx, claim, instance.Offering)
	if err != nil && claim.DeletionTimestamp == nil {
		return nil, err
	}
	claim = claim.DeepCopy()
	claim.Status.ProviderID = providerID(instance)
	claim.Status.ImageID = instance.ImageID
	claim.Status.Capacity, claim.Status.Allocatable = facts.Capacity, facts.Allocatable
	claim.Status.Conditions = conditions.WithTrue(claim, karpenter.ConditionTypeLaunched, s.Now())
	stored, err := s.Client.UpdateStatus(ctx, claim)
	if err != nil {
		return nil, fmt.Errorf("binding %s to NodeClaim %s: %w", instance.InstanceID, claim.Name, err)
	}
	bound := stored.(*karpenter.NodeClaim)
	told := bound.DeepCopy()
	s.within(told, e)
	return bound, s.label(ctx, told, facts, instance.Offering)
}

// facts are what the intent says of an offering.
type facts struct {
	launchspec.TypeFacts
	// perHour is what it costs, in US dollars, where priced says that this is known.
	perHour float64
	priced  bool
}

// facts reads what the intent says of the offering that the instance turned out to
// be. A type that the intent does not name cannot come from its fleet.
func (s *Service) facts(ctx context.Context, claim *karpenter.NodeClaim, o event.Offering) (facts, error) {
	ref, err := launchspec.ParseRef(claim.Annotations[launchspec.IntentRefAnnotation])
	if err != nil {
		return facts{}, fault.E("reading the intent of NodeClaim "+claim.Name, fault.Bug, err)
	}
	intent, err := blob.Get[launchspec.Intent](ctx, s.Blobs, ref)
	if err != nil {
		return facts{}, fmt.Errorf("reading the intent of NodeClaim %s: %w", claim.Name, err)
	}
	known, ok := intent.Types[o.InstanceType]
	if !ok {
		return facts{}, fault.F("binding NodeClaim "+claim.Name, fault.Bug, "intent %s does not name the type %s", intent.ID, o.InstanceType)
	}
	out := facts{TypeFacts: known}
	out.perHour, out.priced = intent.Price(o.InstanceType, o.Zone)
	return out, nil
}

// label writes what the claim turned out to be, and what that costs. It comes after the binding,
// because labels of an instance that lost the swap would be lies. What the claim
// says already came from its pool's template, and wins.
func (s *Service) label(ctx context.Context, claim *karpenter.NodeClaim, facts facts, o event.Offering) error {
	labels := map[string]string{}
	maps.Copy(labels, facts.Labels)
	labels["node.kubernetes.io/instance-type"] = o.InstanceType
	labels["topology.kubernetes.io/zone"] = o.Zone
	labels["topology.kubernetes.io/region"] = s.Region
	labels[karpenter.CapacityTypeLabelKey] = o.CapacityType
	if id := facts.ZoneIDs[o.Zone]; id != "" {
		labels[karpenter.LabelTopologyZoneID] = id
	}
	maps.Copy(labels, claim.Labels)
	claim = claim.DeepCopy()
	claim.Labels = labels
	if facts.priced {
		annotate(claim, planning.PriceAnnotation, planning.FormatPrice(facts.perHour))
	}
	return s.do.Do(ctx, nil, effect.Update{Object: claim})
}

// refuse removes the claims that the outcome left without an instance. One that
// cannot be written holds up nothing but itself.
func (s *Service) refuse(ctx context.Context, e event.Envelope, claims []*karpenter.NodeClaim, b event.LaunchSettled) error {
	if !b.Spent && len(b.Instances) > 0 {
		return nil
	}
	var failures []error
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			failures = append(failures, s.do.Do(ctx, &e, s.refused(claim, b)...))
		}
	}
	return errors.Join(failures...)
}

// refused marks a claim before it is deleted, so that whoever looks after a
// crash knows why it may go.
func (s *Service) refused(c *karpenter.NodeClaim, b event.LaunchSettled) []effect.Effect {
	var effects []effect.Effect
	mark, text := unspent, refusalText(b)
	if b.Spent {
		mark = spent
	}
	if have := c.Annotations[RefusedAnnotation]; have != spent && have != mark {
		marked := c.DeepCopy()
		annotate(marked, RefusedAnnotation, mark)
		annotate(marked, nodeclaim.RefusalAnnotation, text)
		effects = append(effects, effect.Update{Object: marked})
	}
	effects = append(effects, refusalRemark(b).About(cluster.NodeClaims, c, s.Now(), "%s", text))
	if c.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "launch refused"})
	}
	return effects
}

// refusalRemark is the Event of a refusal. It is of a shortage only if everything
// that was refused was short: else another offering would not help.
func refusalRemark(b event.LaunchSettled) events.Reason {
	short := func(r event.Refusal) bool { return len(r.Blamed) > 0 || r.Subnet != "" || r.Code == "Unfulfilled" }
	for _, r := range b.Refusals {
		if !short(r) {
			return events.LaunchFailed
		}
	}
	return events.InsufficientCapacity
}

func refusalText(b event.LaunchSettled) string {
	var parts []string
	for _, r := range b.Refusals {
		parts = append(parts, strings.TrimSpace(r.Code+" "+r.Message))
	}
	slices.Sort(parts)
	return "launch refused: " + strings.Join(slices.Compact(parts), "; ")
}
