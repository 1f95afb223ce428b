package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// confirmed looks at a confirmation, and keeps what is to go on for the turn of it.
func (s *Service) confirmed(ctx context.Context, f *proposalFact) error {
	claims, err := s.carriers(ctx, f.body)
	if fault.Is(err, fault.Stale) {
		return errors.Join(err, s.drop(ctx, f.body))
	}
	if err == nil {
		err = s.ripe(f.body, claims)
	}
	if err != nil {
		return err
	}
	plan, err := s.replacementPlan(ctx, f.body)
	if err != nil {
		return err
	}
	names := replacementsOf(plan)
	if disruption.BegunOtherwise(claims, names) {
		return stale(f.body, "it acts with other replacements already")
	}
	f.acts = disruption.HasBegun(claims, names)
	f.goesOn, f.claims, f.plan = !f.acts || len(plan.Intents) > 0, claims, plan
	return nil
}

// replacementPlan reads what replaces the claims; an empty plan where nothing does.
func (s *Service) replacementPlan(ctx context.Context, b event.DisruptionProposed) (planning.Plan, error) {
	if b.Plan.IsZero() {
		return planning.Plan{}, nil
	}
	plan, err := blob.Get[planning.Plan](ctx, s.Blobs, b.Plan)
	if err != nil {
		return plan, fmt.Errorf("reading the replacements of proposal %s: %w", b.Proposal, err)
	}
	return plan, nil
}

func replacementsOf(plan planning.Plan) []string {
	var names []string
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			names = append(names, c.Object.Name)
		}
	}
	return names
}

// beginRemoval lets a proposal act that needs no replacement. The order is the safety:
// what is live is looked at once more and counted, then each claim says that it
// goes, so that the next count finds it, then its node takes no more pods, and only
// then it is deleted. Whoever dies in between leaves claims that say so, for sagas
// to go on with.
func (s *Service) beginRemoval(ctx context.Context, f *proposalFact, l *live) error {
	candidates, err := s.candidates(ctx, f.claims)
	if err != nil {
		return err
	}
	objection, found := l.take(lookOf(f, candidates, l, s.Now()))
	if found {
		return s.refuseProposal(ctx, f.body, candidates, objection)
	}
	if refused, err := s.spends(ctx, f, candidates, l); refused || err != nil {
		return err
	}
	if candidates, err = s.mark(ctx, f.e, candidates, nil); err != nil {
		return err
	}
	s.decided(f)
	return errors.Join(s.nominate(ctx, f.plan), s.remove(ctx, candidates))
}

// beginReplacement lets a proposal act that needs one, or goes on with it. The order is
// that of a removal, but that the replacements pass the door in place of the
// deletion, all of them or none, and that the outbox is read before anything is
// counted, so that nothing passes between: who dies is followed by the message that
// comes again, or by sagas, which roll back.
//
// It counts by what is known to be live, if nobody else has let anything pass since, and
// gives what is live then; nil where that is not known any more.
func (s *Service) beginReplacement(ctx context.Context, f *proposalFact, known *live) (*live, error) {
	if f.acts {
		return nil, s.resume(ctx, f)
	}
	held, err := s.free(ctx, f.body)
	if err != nil {
		return known, err
	}
	candidates, err := s.candidates(ctx, f.claims)
	if err != nil {
		return known, err
	}
	l, err := s.liveAt(ctx, held, known)
	if err != nil {
		return nil, err
	}
	if objection, found := l.take(lookOf(f, candidates, l, s.Now())); found {
		return l, s.refuseProposal(ctx, f.body, candidates, objection)
	}
	// Room that is taken is not given back: who is refused from here on leaves nothing
	// to count by.
	next, objection, found, err := s.passing(ctx, f, held, l)
	if err != nil {
		return nil, err
	}
	if found {
		return nil, s.refuseProposal(ctx, f.body, candidates, objection)
	}
	if refused, err := s.spends(ctx, f, candidates, l); refused || err != nil {
		return nil, err
	}
	if _, err = s.mark(ctx, f.e, candidates, replacementsOf(f.plan)); err != nil {
		return nil, err
	}
	if held, err = held.Swap(ctx, s.Client, next); err != nil {
		return nil, err
	}
	s.decided(f)
	if held, err = s.carryOut(ctx, f.e, held, f.plan); err != nil {
		return nil, err
	}
	l.passed(f, held)
	return l, nil
}

// free reads the outbox and waits for it: while a batch is in flight, replacements
// could be planned for the same room twice.
func (s *Service) free(ctx context.Context, b event.DisruptionProposed) (outbox.Held, error) {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return held, err
	}
	if !held.Free() {
		return held, fault.F("confirming proposal "+b.Proposal, fault.Retry, "batch %d is in flight", held.Seq)
	}
	return held, nil
}

// candidates reads the nodes of the claims and what runs there, live.
func (s *Service) candidates(ctx context.Context, claims []*karpenter.NodeClaim) ([]disruption.Candidate, error) {
	out := make([]disruption.Candidate, len(claims))
	return out, errors.Join(s.do.Each(len(claims), func(i int) (err error) {
		c := disruption.Candidate{Claim: claims[i]}
		c.Nominated, _ = time.Parse(time.RFC3339, claims[i].Annotations[NominatedAnnotation])
		if c.Node, err = s.nodeNow(ctx, claims[i]); err == nil && c.Node != nil {
			var pods []cluster.Object
			pods, err = s.Client.ListBy(ctx, cluster.Pods, cluster.ByNode, c.Node.Name)
			c.Pods = cluster.Cast[*corev1.Pod](pods)
		}
		if err != nil {
			return fmt.Errorf("reading the node of NodeClaim %s for a proposal: %w", claims[i].Name, err)
		}
		out[i] = c
		return nil
	})...)
}

// nodeNow reads the claim's node, live; nil where there is none.
func (s *Service) nodeNow(ctx context.Context, c *karpenter.NodeClaim) (*corev1.Node, error) {
	if c.Status.NodeName == "" {
		return nil, nil
	}
	node, err := cluster.Get[*corev1.Node](ctx, s.Client, cluster.Nodes, cluster.Key{Name: c.Status.NodeName})
	if fault.Is(err, fault.Missing) || err == nil && node.Spec.ProviderID != c.Status.ProviderID {
		return nil, nil
	}
	return node, err
}

// passing gives the outbox as it is once the replacements of a proposal may be created,
// which pass the door together or not at all; or the objection to that.
func (s *Service) passing(ctx context.Context, f *proposalFact, held outbox.Held, l *live) (outbox.Outbox, disruption.Objection, bool, error) {
	next := held.Outbox
	next.Seq++
	plan := f.plan
	plan.Outbox, plan.Seq = held.UID(), next.Seq
	leaving := slices.Concat(l.leaving, f.claimNames())
	admission, err := s.admitPlan(ctx, admission.Admitter{PriceLimit: s.PriceLimit, Leaving: leaving}, plan, l.pools, l.claims)
	if err != nil {
		return next, disruption.Objection{}, false, err
	}
	if len(admission.Refused) > 0 {
		refused := admission.Refused[0]
		return next, disruption.Objection{Pool: refused.NodePool, Why: "a replacement may not be launched: " + refused.Reason}, true, nil
	}
	next.State, next.Batch, next.Plan, next.Since = outbox.Applying, event.Ref{}, f.body.Plan.Digest, s.Now()
	next.Claims = also(admission.Claims, held, l.claims)
	return next, disruption.Objection{}, false, nil
}

// also adds the claims of the plan before that are still coming up: the watcher has
// built no batch since, so that it may not have seen them either.
func also(names []string, held outbox.Held, claims []*karpenter.NodeClaim) []string {
	for _, c := range claims {
		if held.Lists(c.Name) && !c.Status.Conditions.True(karpenter.ConditionTypeInitialized) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refuseProposal takes a proposal back that may not act after all, and says why.
func (s *Service) refuseProposal(ctx context.Context, b event.DisruptionProposed, candidates []disruption.Candidate, o disruption.Objection) error {
	host.Say(ctx, "objection", o.Why)
	s.sayBlocked(ctx, candidates, o)
	failures := []error{s.drop(ctx, b)}
	for _, c := range candidates {
		if disruption.ActingProposal(c.Claim) != nil {
			failures = append(failures, s.undo(ctx, c.Claim, o.Why))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) sayBlocked(ctx context.Context, candidates []disruption.Candidate, o disruption.Objection) {
	if pool, ok := s.Cache.Get(cluster.NodePools, cluster.Key{Name: o.Pool}); ok && o.Pool != "" {
		_ = s.do.One(ctx, events.BudgetBlocked.About(cluster.NodePools, pool, s.Now(), "%s", o.Why))
	}
	for _, c := range candidates {
		if c.Claim.Name == o.Claim {
			s.both(ctx, events.DisruptionBlocked, c.Claim, c.Node, o.Why, o.Why)
		}
	}
}

// mark writes on every claim that its proposal acts, and only then taints the nodes:
// a claim that does not say so is no part of the next count. Nothing goes on from a claim
// that says something else by then: it was rolled back while this replica was paused.
func (s *Service) mark(ctx context.Context, e event.Envelope, candidates []disruption.Candidate, replacements []string) ([]disruption.Candidate, error) {
	candidates = slices.Clone(candidates)
	err := errors.Join(s.do.Each(len(candidates), func(i int) (err error) {
		candidates[i].Claim, err = s.begin(ctx, e, candidates[i].Claim, replacements)
		return err
	})...)
	if err != nil {
		return nil, err
	}
	return candidates, errors.Join(s.do.Each(len(candidates), func(i int) (err error) {
		id := proposalID(candidates[i].Claim)
		if candidates[i].Claim, err = s.hold(ctx, candidates[i].Claim, candidates[i].Node); err != nil {
			return err
		}
		return begun(candidates[i].Claim, id, replacements)
	})...)
}

// resume goes on with a proposal that acts already. Its replacements passed the door
// if they are all there; if they did not, or are gone, they never come: their names
// and tokens may have been used.
func (s *Service) resume(ctx context.Context, f *proposalFact) error {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return err
	}
	if held.Plan == f.body.Plan.Digest {
		_, err = s.carryOut(ctx, f.e, held, f.plan)
		return err
	}
	for _, name := range replacementsOf(f.plan) {
		_, err := s.Client.Get(ctx, cluster.NodeClaims, cluster.Key{Name: name})
		if fault.Is(err, fault.Missing) {
			return errors.Join(s.do.Each(len(f.claims), func(i int) error {
				return s.undo(ctx, f.claims[i], fmt.Sprintf("replacement NodeClaim %s did not come", name))
			})...)
		}
		if err != nil {
			return fmt.Errorf("looking for replacement NodeClaim %s: %w", name, err)
		}
	}
	return nil
}
