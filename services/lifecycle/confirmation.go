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

// prepareConfirmation checks a confirmation and sets the claims and the plan. The caller executes
// the valid ones.
func (s *Service) prepareConfirmation(ctx context.Context, f *proposalMessage) error {
	claims, err := s.readProposedClaims(ctx, f.body)
	if fault.Is(err, fault.Stale) {
		return errors.Join(err, s.dropProposal(ctx, f.body))
	}
	if err == nil {
		err = s.checkProposalAge(f.body, claims)
	}
	if err != nil {
		return err
	}
	plan, err := s.readReplacementPlan(ctx, f.body)
	if err != nil {
		return err
	}
	names := replacementNames(plan)
	if disruption.HasOtherReplacements(claims, names) {
		return staleProposal(f.body, "it already acts with other replacements")
	}
	f.isActing = disruption.HasBegun(claims, names)
	f.isConfirmed, f.claims, f.plan = !f.isActing || len(plan.Intents) > 0, claims, plan
	return nil
}

// readReplacementPlan reads the plan of the replacements; an empty plan without any.
func (s *Service) readReplacementPlan(ctx context.Context, b event.DisruptionProposed) (planning.Plan, error) {
	if b.Plan.IsZero() {
		return planning.Plan{}, nil
	}
	plan, err := blob.Get[planning.Plan](ctx, s.Blobs, b.Plan)
	if err != nil {
		return plan, fmt.Errorf("reading the replacements of proposal %s: %w", b.Proposal, err)
	}
	return plan, nil
}

func replacementNames(plan planning.Plan) []string {
	var names []string
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			names = append(names, c.Object.Name)
		}
	}
	return names
}

// startRemoval starts a proposal without replacements, whose claims are reserved. The order of its
// steps keeps budgets: check the live state, count, mark each claim so that the next count includes
// it, taint the nodes, check that no pods came before the taint, and then delete the claims. After a
// crash, reconcileDisruptions continues from the marks on the claims.
func (s *Service) startRemoval(ctx context.Context, f *proposalMessage, l *liveState) error {
	candidates, err := s.readCandidates(ctx, f.claims)
	if err != nil {
		return err
	}
	objection, found := l.takeBudget(s.newLiveProposal(f, candidates, l))
	if found {
		return s.rejectProposal(ctx, f.body, candidates, objection)
	}
	if refused, err := s.spendRateOrReject(ctx, f, candidates, l); refused || err != nil {
		return err
	}
	if f.body.Reboot {
		return s.startReboot(ctx, f, candidates[0])
	}
	if candidates, err = s.confirmCandidates(ctx, f.envelope, candidates, nil); err != nil {
		return err
	}
	if objection, found, err = s.findNewPods(ctx, s.newLiveProposal(f, candidates, l)); err != nil {
		return err
	}
	if found {
		return s.rejectProposal(ctx, f.body, candidates, objection)
	}
	s.countDecision(f)
	return errors.Join(s.nominateClaims(ctx, f.plan), s.deleteCandidates(ctx, candidates))
}

// startReplacement starts or resumes a proposal with replacements. The order is the same as in
// startRemoval, except that the replacements are admitted, all or none, instead of the deletion.
// The outbox is read before anything is counted, so that no other plan is admitted in between.
// After a crash, the redelivered message or reconcileDisruptions continues or rolls back. If a batch is
// sent meanwhile, the proposal waits, unconfirmed, for the message to be redelivered.
//
// It uses the known live state if no other plan has been admitted since, and otherwise lists it, with
// the failed claims of the turn as leaving. It returns the live state afterwards, or nil if that is
// unknown.
func (s *Service) startReplacement(ctx context.Context, f *proposalMessage, known *liveState, failed map[string]bool) (*liveState, error) {
	if f.isActing {
		return nil, s.resumeReplacement(ctx, f)
	}
	held, err := s.readIdleOutbox(ctx, f.body)
	if err != nil {
		return known, errors.Join(err, s.releaseClaims(ctx, f))
	}
	candidates, err := s.readCandidates(ctx, f.claims)
	if err != nil {
		return known, err
	}
	l, err := s.liveStateAt(ctx, held, known, failed)
	if err != nil {
		return nil, err
	}
	if objection, found := l.takeBudget(s.newLiveProposal(f, candidates, l)); found {
		return l, s.rejectProposal(ctx, f.body, candidates, objection)
	}
	// A consumed budget is not returned. After a rejection from here on, the live state is
	// therefore unknown.
	next, objection, found, err := s.admitReplacements(ctx, f, held, l)
	if err != nil {
		return nil, err
	}
	if found {
		return nil, s.rejectProposal(ctx, f.body, candidates, objection)
	}
	if refused, err := s.spendRateOrReject(ctx, f, candidates, l); refused || err != nil {
		return nil, err
	}
	if candidates, err = s.confirmCandidates(ctx, f.envelope, candidates, replacementNames(f.plan)); err != nil {
		return nil, err
	}
	if objection, found, err = s.findNewPods(ctx, s.newLiveProposal(f, candidates, l)); err != nil {
		return nil, err
	}
	if found {
		return nil, s.rejectProposal(ctx, f.body, candidates, objection)
	}
	if held, err = s.swapOrRevoke(ctx, f, held, next, candidates); err != nil {
		return nil, err
	}
	s.countDecision(f)
	if held, err = s.executePlan(ctx, f.envelope, held, f.plan); err != nil {
		return nil, err
	}
	l.addReplacements(f, held)
	return l, nil
}

// swapOrRevoke swaps the outbox, so that the replacements may be created. If another plan took the next
// number since the outbox was read, the replacements were not admitted, and none was created. Then it
// revokes the confirmation, and the redelivered message starts the proposal again once no batch is in
// flight. After any other conflict, for example with its own write whose answer was lost, the
// redelivered message resumes the proposal or rolls it back.
func (s *Service) swapOrRevoke(ctx context.Context, f *proposalMessage, held outbox.Stored, next outbox.Outbox, candidates []disruption.Candidate) (outbox.Stored, error) {
	swapped, err := held.Swap(ctx, s.Client, next)
	if !fault.Is(err, fault.Conflict) {
		return swapped, err
	}
	now, readErr := outbox.Read(ctx, s.Client, s.Namespace)
	if readErr != nil || now.Seq != held.Seq+1 || now.Plan == f.body.Plan.Digest {
		return held, errors.Join(err, readErr)
	}
	return held, errors.Join(err, errors.Join(s.executor.ForEach(len(candidates), func(i int) error {
		return s.revokeConfirmation(ctx, candidates[i].Claim)
	})...))
}

// readIdleOutbox reads the outbox and returns fault.Retry while a batch is in flight, because
// replacements could be planned for the same capacity twice.
func (s *Service) readIdleOutbox(ctx context.Context, b event.DisruptionProposed) (outbox.Stored, error) {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return held, err
	}
	if !held.IsFree() {
		return held, fault.F("confirming proposal "+b.Proposal, fault.Retry, "batch %d is in flight", held.Seq)
	}
	return held, nil
}

// readCandidates reads the nodes of the claims and their pods from the API server.
func (s *Service) readCandidates(ctx context.Context, claims []*karpenter.NodeClaim) ([]disruption.Candidate, error) {
	out := make([]disruption.Candidate, len(claims))
	return out, errors.Join(s.executor.ForEach(len(claims), func(i int) (err error) {
		c := disruption.Candidate{Claim: claims[i]}
		c.Nominated, _ = time.Parse(time.RFC3339, claims[i].Annotations[NominatedAnnotation])
		if c.Node, err = s.readNode(ctx, claims[i]); err != nil {
			return fmt.Errorf("reading the node of NodeClaim %s for a proposal: %w", claims[i].Name, err)
		}
		out[i] = c
		return s.readPodsOnNode(ctx, &out[i])
	})...)
}

// readPodsOnNode reads the pods on the candidate's node from the API server, and stores them in the candidate.
func (s *Service) readPodsOnNode(ctx context.Context, c *disruption.Candidate) error {
	if c.Node == nil {
		return nil
	}
	pods, err := s.Client.ListBy(ctx, cluster.Pods, cluster.ByNode, c.Node.Name)
	if err != nil {
		return fmt.Errorf("reading the pods of node %s for a proposal: %w", c.Node.Name, err)
	}
	c.Pods = cluster.CastAll[*corev1.Pod](pods)
	return nil
}

// findNewPods reads the pods of tainted nodes again, and returns an objection if they block the disruption or are more than the
// confirmation found.
func (s *Service) findNewPods(ctx context.Context, l disruption.LiveProposal) (disruption.Objection, bool, error) {
	l.Candidates = slices.Clone(l.Candidates)
	err := errors.Join(s.executor.ForEach(len(l.Candidates), func(i int) error { return s.readPodsOnNode(ctx, &l.Candidates[i]) })...)
	if err != nil {
		return disruption.Objection{}, false, err
	}
	l.Now = s.Now()
	objection, found := l.FindNewPods()
	return objection, found, nil
}

// readNode reads the claim's node from the API server, or nil.
func (s *Service) readNode(ctx context.Context, c *karpenter.NodeClaim) (*corev1.Node, error) {
	if c.Status.NodeName == "" {
		return nil, nil
	}
	node, err := cluster.Get[*corev1.Node](ctx, s.Client, cluster.Nodes, cluster.Key{Name: c.Status.NodeName})
	if fault.Is(err, fault.Missing) || err == nil && node.Spec.ProviderID != c.Status.ProviderID {
		return nil, nil
	}
	return node, err
}

// admitReplacements admits the replacements of a proposal, all or none. It returns the outbox that
// allows their creation, or an objection.
func (s *Service) admitReplacements(ctx context.Context, f *proposalMessage, held outbox.Stored, l *liveState) (outbox.Outbox, disruption.Objection, bool, error) {
	next := held.Outbox
	next.Seq++
	plan := f.plan
	plan.Outbox, plan.Seq = held.UID(), next.Seq
	leaving := slices.Concat(l.leaving, f.claimNames())
	var sources launchSources
	if err := s.readAll(s.sourceReads(ctx, plan, &sources)); err != nil {
		return next, disruption.Objection{}, false, err
	}
	admission, err := s.admitPlan(ctx, admission.Admitter{PriceLimit: s.PriceLimit, Leaving: leaving}, plan, sources, l.pools, l.claims)
	if err != nil {
		return next, disruption.Objection{}, false, err
	}
	if len(admission.Refused) > 0 {
		refused := admission.Refused[0]
		return next, disruption.Objection{Pool: refused.NodePool, Why: "a replacement was not admitted: " + refused.Reason}, true, nil
	}
	next.State, next.Batch, next.Plan, next.Since = outbox.Applying, event.Ref{}, f.body.Plan.Digest, s.Now()
	next.Claims = addUninitialized(admission.Claims, held, l.claims)
	next.UIDs = findUIDs(next.Claims, plan, l.claims)
	return next, disruption.Objection{}, false, nil
}

// addUninitialized adds the claims of the previous plan that are not initialized yet. The watcher
// has built no batch since, so its snapshot may not contain them.
func addUninitialized(names []string, held outbox.Stored, claims []*karpenter.NodeClaim) []string {
	for _, c := range claims {
		if held.ListsClaim(c.Name) && !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rejectProposal drops a proposal after an objection, reports it and rolls back claims on which it
// is already confirmed.
func (s *Service) rejectProposal(ctx context.Context, b event.DisruptionProposed, candidates []disruption.Candidate, o disruption.Objection) error {
	host.AddLogFields(ctx, "rejection_reason", o.Why)
	s.reportBlocked(ctx, candidates, o)
	failures := []error{s.dropProposal(ctx, b)}
	for _, c := range candidates {
		if disruption.ActingProposal(c.Claim) != nil {
			failures = append(failures, s.rollBackClaim(ctx, c.Claim, o.Why))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) reportBlocked(ctx context.Context, candidates []disruption.Candidate, o disruption.Objection) {
	if pool, ok := s.Cache.Get(cluster.NodePools, cluster.Key{Name: o.Pool}); ok {
		_ = s.executor.ExecuteOne(ctx, events.BudgetBlocked.About(cluster.NodePools, pool, s.Now(), "%s", o.Why))
	}
	for _, c := range candidates {
		if c.Claim.Name == o.Claim {
			s.publishOnBoth(ctx, events.DisruptionBlocked, c.Claim, c.Node, o.Why, o.Why)
		}
	}
}

// confirmCandidates writes the confirmation on every claim, and only then taints the nodes, because
// the next count needs the mark. It returns an error if a claim has changed meanwhile, for example
// because another replica rolled it back while this one was paused.
func (s *Service) confirmCandidates(ctx context.Context, e event.Envelope, candidates []disruption.Candidate, replacements []string) ([]disruption.Candidate, error) {
	candidates = slices.Clone(candidates)
	err := errors.Join(s.executor.ForEach(len(candidates), func(i int) (err error) {
		candidates[i].Claim, err = s.confirmClaim(ctx, e, candidates[i], replacements)
		return err
	})...)
	if err != nil {
		return nil, err
	}
	return candidates, errors.Join(s.executor.ForEach(len(candidates), func(i int) (err error) {
		id := proposalID(candidates[i].Claim)
		if candidates[i].Claim, err = s.markDisrupted(ctx, candidates[i].Claim, candidates[i].Node); err != nil {
			return err
		}
		return checkConfirmed(candidates[i].Claim, id, replacements)
	})...)
}

// resumeReplacement continues a confirmed proposal. If the outbox no longer has its plan and a
// replacement does not exist, the replacement can never be created, because its name and token may
// be used: the proposal is rolled back.
func (s *Service) resumeReplacement(ctx context.Context, f *proposalMessage) error {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return err
	}
	if held.Plan == f.body.Plan.Digest {
		_, err = s.executePlan(ctx, f.envelope, held, f.plan)
		return err
	}
	for _, name := range replacementNames(f.plan) {
		_, err := s.Client.Get(ctx, cluster.NodeClaims, cluster.Key{Name: name})
		if fault.Is(err, fault.Missing) {
			return errors.Join(s.executor.ForEach(len(f.claims), func(i int) error {
				return s.rollBackClaim(ctx, f.claims[i], fmt.Sprintf("replacement NodeClaim %s was not created", name))
			})...)
		}
		if err != nil {
			return fmt.Errorf("reading replacement NodeClaim %s: %w", name, err)
		}
	}
	return nil
}
