package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/door"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/remark"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/saga"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/outbox"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// confirm lets a proposal act. The order is the safety: what is live is looked at
// once more and counted, then each claim says that it goes, so that the next count
// finds it, then its node takes no more pods, and only then its replacements pass
// the door, all of them or none. Whoever dies in between leaves claims that say
// what they wait for: the message that comes again goes on, or sagas rolls back.
func (s *Service) confirm(ctx context.Context, e event.Envelope, b event.DisruptionProposed) error {
	claims, err := s.carriers(ctx, b)
	if fault.Is(err, fault.Stale) {
		return errors.Join(err, s.drop(ctx, b))
	}
	if err == nil {
		err = s.ripe(b, claims)
	}
	if err != nil {
		return err
	}
	plan, err := s.replacementPlan(ctx, b)
	if err != nil {
		return err
	}
	names := replacementsOf(plan)
	switch {
	case saga.Otherwise(claims, names):
		return stale(b, "it acts with other replacements already")
	case saga.Begun(claims, names):
		return s.resume(ctx, e, b, claims, plan)
	default:
		return s.start(ctx, e, b, claims, plan)
	}
}

// replacementPlan reads what replaces the claims; an empty plan where nothing does.
func (s *Service) replacementPlan(ctx context.Context, b event.DisruptionProposed) (scheduling.Plan, error) {
	if b.Plan.IsZero() {
		return scheduling.Plan{}, nil
	}
	plan, err := blob.Get[scheduling.Plan](ctx, s.Blobs, b.Plan)
	if err != nil {
		return plan, fmt.Errorf("reading the replacements of proposal %s: %w", b.Proposal, err)
	}
	return plan, nil
}

func replacementsOf(plan scheduling.Plan) []string {
	var names []string
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			names = append(names, c.Object.Name)
		}
	}
	return names
}

// start begins a proposal, unless something that is live objects to it.
func (s *Service) start(ctx context.Context, e event.Envelope, b event.DisruptionProposed, claims []*karpenter.NodeClaim, plan scheduling.Plan) error {
	held, err := s.free(ctx, b, plan)
	if err != nil {
		return err
	}
	candidates, err := s.candidates(ctx, claims)
	if err != nil {
		return err
	}
	objection, next, err := s.objection(ctx, b, candidates, held, plan)
	if err != nil {
		return err
	}
	if objection.Why != "" {
		return s.refuseProposal(ctx, b, candidates, objection)
	}
	if candidates, err = s.mark(ctx, candidates, replacementsOf(plan)); err != nil {
		return err
	}
	if len(plan.Intents) == 0 {
		return errors.Join(s.nominate(ctx, plan), s.remove(ctx, candidates))
	}
	if held, err = held.Swap(ctx, s.Client, next); err != nil {
		return err
	}
	_, err = s.carryOut(ctx, e, held, plan)
	return err
}

// free reads the outbox and waits for it: while a batch is in flight, replacements
// could be planned for the same room twice.
func (s *Service) free(ctx context.Context, b event.DisruptionProposed, plan scheduling.Plan) (outbox.Held, error) {
	if len(plan.Intents) == 0 {
		return outbox.Held{}, nil
	}
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
func (s *Service) candidates(ctx context.Context, claims []*karpenter.NodeClaim) ([]saga.Candidate, error) {
	out := make([]saga.Candidate, len(claims))
	return out, errors.Join(s.do.Each(len(claims), func(i int) (err error) {
		c := saga.Candidate{Claim: claims[i]}
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

// objection looks at what is live and counts it. Without one it gives the outbox as
// it is once the replacements may be created.
func (s *Service) objection(ctx context.Context, b event.DisruptionProposed, candidates []saga.Candidate, held outbox.Held, plan scheduling.Plan) (saga.Objection, outbox.Outbox, error) {
	pools, err := cluster.List[*karpenter.NodePool](ctx, s.Client, cluster.NodePools)
	if err != nil {
		return saga.Objection{}, outbox.Outbox{}, fmt.Errorf("listing NodePools for a proposal: %w", err)
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return saga.Objection{}, outbox.Outbox{}, fmt.Errorf("listing NodeClaims for a proposal: %w", err)
	}
	budgets, err := cluster.List[*policyv1.PodDisruptionBudget](ctx, s.Client, cluster.DisruptionBudgets)
	if err != nil {
		return saga.Objection{}, outbox.Outbox{}, fmt.Errorf("listing PodDisruptionBudgets for a proposal: %w", err)
	}
	nodes := nodesByProvider(s.Cache)
	look := saga.Look{
		Reason: karpenter.DisruptionReason(b.Reason), Moved: b.Moved, Candidates: candidates, Budgets: podspec.NewBudgets(budgets),
		Pools: pools, Claims: claims, Now: s.Now(),
		Ready: func(c *karpenter.NodeClaim) bool {
			node := nodes[c.Status.ProviderID]
			return node != nil && isReady(node)
		},
	}
	if objection, found := look.Object(); found {
		return objection, outbox.Outbox{}, nil
	}
	objection, next := s.passing(b, held, plan, pools, claims)
	return objection, next, nil
}

// passing asks the door for the replacements, which pass together or not at all.
func (s *Service) passing(b event.DisruptionProposed, held outbox.Held, plan scheduling.Plan, pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) (saga.Objection, outbox.Outbox) {
	if len(plan.Intents) == 0 {
		return saga.Objection{}, outbox.Outbox{}
	}
	next := held.Outbox
	next.Seq++
	plan.Outbox, plan.Seq = held.UID(), next.Seq
	admission := door.Admit(plan, pools, claims)
	if len(admission.Refused) > 0 {
		refused := admission.Refused[0]
		return saga.Objection{Pool: refused.NodePool, Why: "a replacement may not be launched: " + refused.Reason}, next
	}
	next.State, next.Batch, next.Plan, next.Since = outbox.Applying, event.Ref{}, b.Plan.Digest, s.Now()
	next.Claims = also(admission.Claims, held, claims)
	return saga.Objection{}, next
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
func (s *Service) refuseProposal(ctx context.Context, b event.DisruptionProposed, candidates []saga.Candidate, o saga.Objection) error {
	host.Say(ctx, "objection", o.Why)
	s.sayBlocked(ctx, candidates, o)
	failures := []error{s.drop(ctx, b)}
	for _, c := range candidates {
		if saga.Acting(c.Claim) != nil {
			failures = append(failures, s.undo(ctx, c.Claim, o.Why))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) sayBlocked(ctx context.Context, candidates []saga.Candidate, o saga.Objection) {
	if pool, ok := s.Cache.Get(cluster.NodePools, cluster.Key{Name: o.Pool}); ok && o.Pool != "" {
		_ = s.do.One(ctx, remark.BudgetBlocked.On(cluster.NodePools, pool, s.Now(), "%s", o.Why))
	}
	for _, c := range candidates {
		if c.Claim.Name == o.Claim {
			s.both(ctx, remark.DisruptionBlocked, c.Claim, c.Node, o.Why, o.Why)
		}
	}
}

// mark writes on every claim that its proposal acts, and only then taints the nodes:
// a claim that does not say so is no part of the next count.
func (s *Service) mark(ctx context.Context, candidates []saga.Candidate, replacements []string) ([]saga.Candidate, error) {
	candidates = slices.Clone(candidates)
	err := errors.Join(s.do.Each(len(candidates), func(i int) (err error) {
		candidates[i].Claim, err = s.begin(ctx, candidates[i].Claim, replacements)
		return err
	})...)
	if err != nil {
		return nil, err
	}
	return candidates, errors.Join(s.do.Each(len(candidates), func(i int) error {
		return s.hold(ctx, candidates[i].Claim, candidates[i].Node)
	})...)
}

// resume goes on with a proposal that acts already. Its replacements passed the door
// if they are all there; if they did not, or are gone, they never come: their names
// and tokens may have been used.
func (s *Service) resume(ctx context.Context, e event.Envelope, b event.DisruptionProposed, claims []*karpenter.NodeClaim, plan scheduling.Plan) error {
	if len(plan.Intents) == 0 {
		return nil
	}
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return err
	}
	if held.Plan == b.Plan.Digest {
		_, err = s.carryOut(ctx, e, held, plan)
		return err
	}
	for _, name := range replacementsOf(plan) {
		_, err := s.Client.Get(ctx, cluster.NodeClaims, cluster.Key{Name: name})
		if fault.Is(err, fault.Missing) {
			return errors.Join(s.do.Each(len(claims), func(i int) error {
				return s.undo(ctx, claims[i], fmt.Sprintf("replacement NodeClaim %s did not come", name))
			})...)
		}
		if err != nil {
			return fmt.Errorf("looking for replacement NodeClaim %s: %w", name, err)
		}
	}
	return nil
}
