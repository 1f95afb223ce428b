package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

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

// RefusedAnnotation marks a claim whose launch failed. Its value is "spent" if no copy of the
// request can launch any more; then the claim is deleted at once. With "unspent" the claim is kept
// until the last request has expired.
const RefusedAnnotation = "joist.sh/refused"

const (
	refusedSpent   = nodeclaim.SpentMark
	refusedUnspent = "unspent"
)

// handleLaunchSettled handles the result of one launch: it binds instances, records unavailable
// offerings and deletes claims without an instance, in that order. Offerings are recorded even if
// a claim could not be bound.
func (s *Service) handleLaunchSettled(ctx context.Context, e event.Envelope, b event.LaunchSettled) error {
	claims, err := s.readIntentClaims(ctx, b.Intent)
	if err != nil {
		return err
	}
	claims, unbound := s.bindInstances(ctx, e, claims, b.Intent, b.Instances)
	// Refusals must be recorded before the claims are deleted, or the next plan would request the same
	// again.
	if err := s.recordResult(ctx, claims, b, e.Time); err != nil || unbound != nil || len(b.Refusals) == 0 {
		// A claim that could not be bound may have an instance, so no claim may be deleted yet.
		return errors.Join(err, unbound)
	}
	return s.deleteRefused(ctx, e, claims, b)
}

// recordResult records what a result in a message of the time reported means for the next launches: the offerings that
// are unavailable, and whether the NodePool of the claims is paused.
func (s *Service) recordResult(ctx context.Context, claims []*karpenter.NodeClaim, b event.LaunchSettled, reported time.Time) error {
	return s.unavailableMutex.RunLocked(ctx, func(ctx context.Context) error {
		if err := admission.RecordUnavailable(ctx, s.Client, s.Namespace, b.Refusals, reported, s.Now()); err != nil {
			return err
		}
		return s.updateLaunchPause(ctx, claims, b)
	})
}

// updateLaunchPause pauses the NodePool of the claims if nothing was launched for a reason other than capacity: EC2 would
// refuse the same launch again, and its claims are deleted, so nothing else would limit how often it is planned. It ends the
// pause if an instance was launched. A claim that a user created is planned without a NodePool and pauses none.
func (s *Service) updateLaunchPause(ctx context.Context, claims []*karpenter.NodeClaim, b event.LaunchSettled) error {
	if len(claims) == 0 || launchspec.Unplanned(claims[0]) {
		return nil
	}
	name := claims[0].Labels[karpenter.NodePoolLabelKey]
	if len(b.Instances) > 0 {
		if s.unpaused[name] {
			return nil
		}
		err := admission.ResumeNodePool(ctx, s.Client, s.Namespace, name, s.Now())
		s.unpaused[name] = err == nil
		return err
	}
	at := slices.IndexFunc(b.Refusals, func(r event.Refusal) bool { return !isShortage(r) })
	key := s.launchSpecKey(name)
	if at < 0 || key == "" {
		return nil
	}
	s.unpaused[name] = false
	return admission.PauseNodePool(ctx, s.Client, s.Namespace, planning.Unavailable{NodePool: name, SpecKey: key, Reason: b.Refusals[at].Code}, s.Now())
}

// launchSpecKey returns the LaunchSpecKey of a NodePool; "" if it or its EC2NodeClass does not exist, so that nothing is
// planned with it.
func (s *Service) launchSpecKey(nodePool string) string {
	object, _ := s.Cache.Get(cluster.NodePools, cluster.Key{Name: nodePool})
	pool, _ := object.(*karpenter.NodePool)
	if pool == nil || pool.Spec.Template.Spec.NodeClassRef == nil {
		return ""
	}
	object, _ = s.Cache.Get(cluster.NodeClasses, cluster.Key{Name: pool.Spec.Template.Spec.NodeClassRef.Name})
	class, _ := object.(*karpenter.EC2NodeClass)
	if class == nil {
		return ""
	}
	return planning.LaunchSpecKey(pool, class)
}

// maxSingleReads is how many claims are read one by one. More are read with one list of all
// claims, which takes 750 ms in a cluster of 20,000 nodes.
const maxSingleReads = 100

// readIntentClaims reads the claims of an intent from the API server. If the cache contains as many
// claims as their annotation states, they are read by name, else all claims are listed.
func (s *Service) readIntentClaims(ctx context.Context, intent string) ([]*karpenter.NodeClaim, error) {
	known := filterByIntent(cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims), intent)
	if len(known) == 0 || len(known) > maxSingleReads || known[0].Annotations[launchspec.ClaimsAnnotation] != strconv.Itoa(len(known)) {
		var own []*karpenter.NodeClaim
		err := s.listMutex.RunLocked(ctx, func(ctx context.Context) error {
			all, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
			own = filterByIntent(all, intent)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing the NodeClaims of intent %s: %w", intent, err)
		}
		return own, nil
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

// filterByIntent returns the claims of the intent, sorted by name.
func filterByIntent(all []*karpenter.NodeClaim, intent string) []*karpenter.NodeClaim {
	claims := slices.DeleteFunc(slices.Clone(all), func(c *karpenter.NodeClaim) bool { return c.Annotations[launchspec.IntentTag] != intent })
	slices.SortFunc(claims, func(a, b *karpenter.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return claims
}

// bindInstance writes the providerID by compare-and-swap. If the swap is lost, the message is
// retried, because another instance may be bound. A claim that is being deleted is bound even if
// its intent cannot be read, because nothing else terminates its instance.
func (s *Service) bindInstance(ctx context.Context, claim *karpenter.NodeClaim, instance event.Launched) (boundClaim, error) {
	facts, err := s.readOfferingFacts(ctx, claim, instance.Offering)
	if err != nil && claim.DeletionTimestamp == nil {
		return boundClaim{}, err
	}
	claim = claim.DeepCopy()
	claim.Status.ProviderID = providerIDOf(instance)
	claim.Status.ImageID = instance.ImageID
	claim.Status.Capacity, claim.Status.Allocatable = facts.Capacity, facts.Allocatable
	claim.Status.Conditions = conditions.Compute(conditions.Observed{Claim: claim, Now: s.Now()})
	stored, err := s.Client.UpdateStatus(ctx, claim)
	if err != nil {
		return boundClaim{}, fmt.Errorf("binding %s to NodeClaim %s: %w", instance.InstanceID, claim.Name, err)
	}
	return boundClaim{stored.(*karpenter.NodeClaim), facts, instance.Offering}, nil
}

// boundClaim is a claim as stored with its instance, and what its labels are derived from.
type boundClaim struct {
	claim    *karpenter.NodeClaim
	facts    offeringFacts
	offering event.Offering
}

// labelBound writes the labels of the instance and the trace on a claim that was just bound.
func (s *Service) labelBound(ctx context.Context, e event.Envelope, b boundClaim) error {
	traced := b.claim.DeepCopy()
	s.writeTrace(traced, e)
	return s.labelClaim(ctx, traced, b.facts, b.offering)
}

// offeringFacts are the intent's facts about an offering.
type offeringFacts struct {
	launchspec.TypeFacts
	// perHour is the price in US dollars; priced reports whether it is known.
	perHour float64
	priced  bool
}

// readOfferingFacts reads the intent's facts about the launched offering. It returns fault.Bug if
// the instance type is not in the intent.
func (s *Service) readOfferingFacts(ctx context.Context, claim *karpenter.NodeClaim, o event.Offering) (offeringFacts, error) {
	ref, err := launchspec.ParseRef(claim.Annotations[launchspec.IntentRefAnnotation])
	if err != nil {
		return offeringFacts{}, fault.E("reading the intent of NodeClaim "+claim.Name, fault.Bug, err)
	}
	intent, err := blob.Get[launchspec.Intent](ctx, s.Blobs, ref)
	if err != nil {
		return offeringFacts{}, fmt.Errorf("reading the intent of NodeClaim %s: %w", claim.Name, err)
	}
	known, ok := intent.Types[o.InstanceType]
	if !ok {
		return offeringFacts{}, fault.F("binding NodeClaim "+claim.Name, fault.Bug, "intent %s does not contain the instance type %s", intent.ID, o.InstanceType)
	}
	out := offeringFacts{TypeFacts: known}
	out.perHour, out.priced = intent.Price(o.InstanceType, o.Zone)
	return out, nil
}

// labelClaim writes the labels and the price of the launched instance on the claim. It runs after
// the binding, because an instance that lost the swap must not label the claim. Existing labels
// come from the NodePool's template and are kept.
func (s *Service) labelClaim(ctx context.Context, claim *karpenter.NodeClaim, facts offeringFacts, o event.Offering) error {
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
		annotateObject(claim, planning.PriceAnnotation, planning.FormatPrice(facts.perHour))
	}
	return s.executor.Execute(ctx, nil, effect.Update{Object: claim})
}

// deleteRefused deletes the claims that got no instance. A claim that cannot be written does not
// stop the others.
func (s *Service) deleteRefused(ctx context.Context, e event.Envelope, claims []*karpenter.NodeClaim, b event.LaunchSettled) error {
	if !b.Spent && len(b.Instances) > 0 {
		return nil
	}
	var failures []error
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			failures = append(failures, s.executor.Execute(ctx, &e, s.refusalEffects(claim, b)...))
		}
	}
	return errors.Join(failures...)
}

// refusalEffects returns the effects that mark a claim as refused, report it and delete it. The
// mark comes first, so that after a crash the reason is known.
func (s *Service) refusalEffects(c *karpenter.NodeClaim, b event.LaunchSettled) []effect.Effect {
	var effects []effect.Effect
	mark, text := refusedUnspent, refusalText(b)
	if b.Spent {
		mark = refusedSpent
	}
	if have := c.Annotations[RefusedAnnotation]; have != refusedSpent && have != mark {
		marked := c.DeepCopy()
		annotateObject(marked, RefusedAnnotation, mark)
		annotateObject(marked, nodeclaim.RefusalAnnotation, text)
		effects = append(effects, effect.Update{Object: marked})
	}
	reason := refusalReason(b)
	effects = append(effects, reason.About(cluster.NodeClaims, c, s.Now(), "%s", text))
	if reason == events.InsufficientCapacity {
		effects = append(effects, s.publisher.ReportFailedPods(c.Name, text, s.cachedPod, s.Now())...)
	}
	if c.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "launch refused"})
	}
	return effects
}

// cachedPod returns a pod of the cache, nil if it does not exist.
func (s *Service) cachedPod(key cluster.Key) *corev1.Pod {
	found, _ := s.Cache.Get(cluster.Pods, key)
	pod, _ := found.(*corev1.Pod)
	return pod
}

// refusalReason returns the Event reason of a failed launch. It is InsufficientCapacity only if
// every refusal was due to capacity, because otherwise another offering would not help.
func refusalReason(b event.LaunchSettled) events.Reason {
	if slices.ContainsFunc(b.Refusals, func(r event.Refusal) bool { return !isShortage(r) }) {
		return events.LaunchFailed
	}
	return events.InsufficientCapacity
}

// isShortage reports whether EC2 lacks the capacity that was requested.
func isShortage(r event.Refusal) bool {
	return len(r.Blamed) > 0 || r.Subnet != "" || r.Code == "Unfulfilled"
}

func refusalText(b event.LaunchSettled) string {
	var parts []string
	for _, r := range b.Refusals {
		parts = append(parts, strings.TrimSpace(r.Code+" "+r.Message))
	}
	slices.Sort(parts)
	return "launch refused: " + strings.Join(slices.Compact(parts), "; ")
}
