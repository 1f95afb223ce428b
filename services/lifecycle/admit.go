package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// NominatedAnnotation says until when pods are expected on a claim.
const NominatedAnnotation = "joist.sh/nominated-until"

// NominationWindow is max(2×batchMaxDuration, 10 s) at the default of 10 s.
const NominationWindow = 20 * time.Second

// admit passes a plan through the door. The order is the safety: the outbox is
// read first, then what exists is counted, then the swap makes the count count,
// then claims are created, and only the second swap lets them be launched.
func (s *Service) admit(ctx context.Context, e event.Envelope, b event.PlanMade) error {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return err
	}
	if err := held.Fits(b); err != nil {
		return err
	}
	if held.State == outbox.Done {
		return nil
	}
	plan, err := blob.Get[planning.Plan](ctx, s.Blobs, b.Plan)
	if err != nil {
		return fmt.Errorf("reading the plan of batch %d: %w", b.Seq, err)
	}
	if held.State == outbox.Sent {
		if held, err = s.pass(ctx, held, plan, b); err != nil {
			return err
		}
	}
	held, err = s.carryOut(ctx, e, held, plan)
	if err != nil && held.State != outbox.Done {
		return err
	}
	return errors.Join(err, s.replacements(ctx, plan), s.advise(ctx, plan, held.Outbox))
}

// carryOut creates the claims of a plan that has passed, and has them launched once
// the outbox says which of them exist.
func (s *Service) carryOut(ctx context.Context, e event.Envelope, held outbox.Held, plan planning.Plan) (outbox.Held, error) {
	if held.State == outbox.Applying {
		refused, err := s.create(ctx, e, held, plan)
		if err != nil {
			return held, err
		}
		if held, err = held.Swap(ctx, s.Client, finished(held.Outbox, refused, s.Now())); err != nil {
			return held, err
		}
	}
	if err := s.nominate(ctx, plan); err != nil {
		return held, err
	}
	return held, s.launch(ctx, &e, held.Outbox)
}

// pass counts and swaps sent → applying.
func (s *Service) pass(ctx context.Context, held outbox.Held, plan planning.Plan, b event.PlanMade) (outbox.Held, error) {
	pools, err := cluster.List[*karpenter.NodePool](ctx, s.Client, cluster.NodePools)
	if err != nil {
		return held, fmt.Errorf("listing NodePools at the door: %w", err)
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return held, fmt.Errorf("listing NodeClaims at the door: %w", err)
	}
	admission, err := s.admitPlan(ctx, admission.Admitter{PriceLimit: s.PriceLimit}, plan, pools, claims)
	if err != nil {
		return held, err
	}
	s.explainNotLaunched(ctx, plan, admission.Refused)
	next := held.Outbox
	next.State, next.Plan, next.Claims, next.Since = outbox.Applying, b.Plan.Digest, admission.Claims, s.Now()
	return held.Swap(ctx, s.Client, next)
}

// listedClaim is a planned claim that the outbox lists, with its place in the plan.
type listedClaim struct {
	planning.PlannedClaim
	intent int
}

// create makes the claims that the outbox lists, and gives the names of those that are
// dropped: the claims of every intent of which the API server refuses one as invalid.
// The same plan would be refused for ever, so that it goes on without them. A name that
// is taken is a claim that an earlier delivery made.
func (s *Service) create(ctx context.Context, e event.Envelope, held outbox.Held, plan planning.Plan) (dropped []string, err error) {
	var listed []listedClaim
	for at, intent := range plan.Intents {
		for _, planned := range intent.Claims {
			if held.Lists(planned.Object.Name) {
				listed = append(listed, listedClaim{planned, at})
			}
		}
	}
	failures := s.do.Each(len(listed), func(i int) error { return s.createClaim(ctx, e, held, listed[i].PlannedClaim) })
	invalid := map[int]bool{}
	for i, failure := range failures {
		if at := listed[i].intent; fault.Is(failure, fault.Invalid) {
			s.reportRefused(ctx, plan.Intents[at].NodePool, failure)
			invalid[at], failures[i] = true, nil
		}
	}
	for _, one := range listed {
		if invalid[one.intent] {
			dropped = append(dropped, one.Object.Name)
		}
	}
	if len(dropped) > 0 {
		host.Say(ctx, "dropped_claims", len(dropped))
	}
	return dropped, errors.Join(failures...)
}

// createClaim makes one claim, or writes on one that a person created. Replacements are planned without a number, and get the
// one that they pass with.
func (s *Service) createClaim(ctx context.Context, e event.Envelope, held outbox.Held, planned planning.PlannedClaim) error {
	if planned.Object.UID != "" {
		return s.writeLaunch(ctx, held, planned)
	}
	claim := planned.Object.DeepCopy()
	annotate(claim, launchspec.BatchAnnotation, admission.BatchID(held.UID(), held.Seq))
	if planned.Pods > 0 {
		annotate(claim, NominatedAnnotation, s.Now().Add(NominationWindow).Format(time.RFC3339))
	}
	s.within(claim, e)
	if _, err := s.Client.Create(ctx, claim); err != nil && !fault.Is(err, fault.Conflict) {
		return fmt.Errorf("creating NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// reportRefused says on a NodePool that the API server refuses one of its claims.
func (s *Service) reportRefused(ctx context.Context, pool string, refusal error) {
	if object, known := s.Cache.Get(cluster.NodePools, cluster.Key{Name: pool}); known {
		_ = s.do.One(ctx, events.NodeClaimRefused.About(cluster.NodePools, object, s.Now(), "the API server refuses a planned NodeClaim: %v", refusal))
	}
}

// finished is the outbox once every claim exists but those that are dropped. What a
// batch has lost stays until the next one: a replacement of nodes answers no batch.
func finished(o outbox.Outbox, dropped []string, now time.Time) outbox.Outbox {
	o.State, o.Since = outbox.Done, now
	o.Claims = slices.DeleteFunc(slices.Clone(o.Claims), func(name string) bool { return slices.Contains(dropped, name) })
	if !o.Batch.IsZero() {
		o.Refused = dropped
	}
	return o
}

// nominate keeps disruption away from existing claims on which the plan expects
// pods. Losing one is harmless: the pods are in the next batch again. Room for a
// buffer is no pod, and does not keep a node from being replaced.
func (s *Service) nominate(ctx context.Context, plan planning.Plan) error {
	var names []string
	for _, n := range plan.Nominations {
		if n.Pod.Buffer == "" {
			names = append(names, n.Claim)
		}
	}
	slices.Sort(names)
	until := s.Now().Add(NominationWindow).Format(time.RFC3339)
	names = slices.Compact(names)
	return errors.Join(s.do.Each(len(names), func(i int) error {
		object, ok := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: names[i]})
		if !ok {
			return nil
		}
		claim := object.(*karpenter.NodeClaim).DeepCopy()
		annotate(claim, NominatedAnnotation, until)
		return s.do.Do(ctx, nil, effect.Update{Object: claim})
	})...)
}

func annotate(o cluster.Object, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations[key] = value
	o.SetAnnotations(annotations)
}
