package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// reconcileDisruptions continues the disruption commands in progress from the state of their
// claims. Each old claim is tainted while its replacements launch. It is deleted when all of them
// are initialized, and rolled back if they fail.
func (s *Service) reconcileDisruptions(ctx context.Context, w clusterState) error {
	acting := map[*karpenter.NodeClaim]*planning.Proposal{}
	proposals := map[string]bool{}
	var claims []*karpenter.NodeClaim
	for _, c := range w.claims {
		p := disruption.ActingProposal(c)
		if p != nil && c.DeletionTimestamp == nil {
			proposals[p.ID] = true
		}
		if p != nil || c.DeletionTimestamp == nil && !c.IsRebooting() && disruption.IsMarked(c, w.findNode(c)) {
			acting[c] = p
			claims = append(claims, c)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	s.settled.hasWork = true
	failures := s.executor.ForEach(len(claims), func(i int) error {
		c, p := claims[i], acting[claims[i]]
		switch {
		case c.DeletionTimestamp != nil:
			return nil
		case p == nil:
			return s.clearDisruption(ctx, c)
		case p.Reboot != "":
			return s.requestReboot(ctx, c)
		default:
			return s.continueProposal(ctx, w, c, *p, len(proposals))
		}
	})
	return joinUnexpected(append(failures, s.nominateReplacements(ctx, w, claims, acting)))
}

// clearDisruption removes the condition and the taint of a disruption that is not in progress: a
// user removed the proposal, or Karpenter began the disruption. The claim is read live, because a
// claim that is being deleted keeps its taint.
func (s *Service) clearDisruption(ctx context.Context, c *karpenter.NodeClaim) error {
	now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading NodeClaim %s, whose node is marked as disrupted: %w", c.Name, err)
	}
	if now.UID != c.UID || now.DeletionTimestamp != nil || now.IsRebooting() || disruption.ActingProposal(now) != nil {
		return nil
	}
	return s.rollBackClaim(ctx, now, "")
}

// continueProposal executes the next step for one claim of a confirmed proposal.
func (s *Service) continueProposal(ctx context.Context, w clusterState, c *karpenter.NodeClaim, p planning.Proposal, acting int) error {
	progress, why, err := s.assessReplacements(ctx, p, acting, w.findClaim)
	if err != nil {
		return err
	}
	switch progress {
	case disruption.Ready:
		return s.finishReplacement(ctx, w, c, p, acting)
	case disruption.Failed:
		err := s.rollBackClaim(ctx, c, why)
		if err == nil {
			s.countFailure(w, p)
		}
		return err
	default:
		s.reportWaiting(ctx, w, p)
		_, err := s.markDisrupted(ctx, c, w.findNode(c))
		return err
	}
}

// assessReplacements returns the progress of a proposal's replacements. A replacement that find
// does not return is read from the API server and then looked up in the outbox.
func (s *Service) assessReplacements(ctx context.Context, p planning.Proposal, acting int, find func(string) *karpenter.NodeClaim) (disruption.Progress, string, error) {
	seen, coming := map[string]*karpenter.NodeClaim{}, map[string]bool{}
	for _, name := range p.Replacements {
		if seen[name] = find(name); seen[name] != nil {
			continue
		}
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: name})
		if err == nil {
			seen[name] = c
			continue
		}
		if !fault.Is(err, fault.Missing) {
			return "", "", fmt.Errorf("reading replacement NodeClaim %s: %w", name, err)
		}
		if coming[name], err = s.mayBeCreated(ctx, p, name); err != nil {
			return "", "", err
		}
	}
	progress, why := disruption.AssessProgress(disruption.ProposalView{
		Proposal: p, Acting: acting, Now: s.Now(),
		Replacement:  func(name string) *karpenter.NodeClaim { return seen[name] },
		MayBeCreated: func(name string) bool { return coming[name] },
	})
	return progress, why, nil
}

// mayBeCreated reports whether a missing replacement may still be created: its plan is admitted
// and being executed, or its message may still be delivered.
func (s *Service) mayBeCreated(ctx context.Context, p planning.Proposal, name string) (bool, error) {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return false, err
	}
	if held.ListsClaim(name) {
		return held.State == outbox.Applying, nil
	}
	return p.MayBeAdmitted(s.Now()), nil
}

// finishReplacement deletes an old claim after it and its replacements were read from the API
// server. The cache may not contain a rollback or the deletion of a replacement yet.
func (s *Service) finishReplacement(ctx context.Context, w clusterState, c *karpenter.NodeClaim, p planning.Proposal, acting int) error {
	now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading NodeClaim %s before its deletion: %w", c.Name, err)
	}
	if still := disruption.ActingProposal(now); still == nil || still.ID != p.ID || now.UID != c.UID {
		return nil
	}
	progress, _, err := s.assessReplacements(ctx, p, acting, func(string) *karpenter.NodeClaim { return nil })
	if err != nil || progress != disruption.Ready {
		return err
	}
	if len(p.Replacements) > 0 {
		return s.deleteCandidates(ctx, []disruption.Candidate{{Claim: now, Node: w.findNode(now)}})
	}
	return s.finishRemoval(ctx, now)
}

// finishRemoval deletes a claim without replacements. The process that confirmed its proposal may have stopped before the
// taint, or before it looked for new pods.
func (s *Service) finishRemoval(ctx context.Context, c *karpenter.NodeClaim) error {
	node, err := s.readNode(ctx, c)
	if err != nil {
		return fmt.Errorf("reading the node of NodeClaim %s before its deletion: %w", c.Name, err)
	}
	if c, err = s.markDisrupted(ctx, c, node); err != nil || disruption.ActingProposal(c) == nil {
		return err
	}
	p, candidates := disruption.ActingProposal(c), []disruption.Candidate{{Claim: c, Node: node}}
	objection, found, err := s.findNewPods(ctx, disruption.LiveProposal{
		Reason: karpenter.DisruptionReason(p.Reason), Method: p.Method, Candidates: candidates, Budgets: s.cachedBudgets(),
	})
	if err != nil {
		return err
	}
	if found {
		return s.rollBackClaim(ctx, c, objection.Why)
	}
	return s.deleteCandidates(ctx, candidates)
}

// deleteCandidates deletes the claims of a proposal whose replacements are ready, each only if it
// is unchanged since it was read: another leader may have rolled it back while this replica was
// paused. The next reconcile handles claims that have changed.
func (s *Service) deleteCandidates(ctx context.Context, candidates []disruption.Candidate) error {
	return errors.Join(s.executor.ForEach(len(candidates), func(i int) error {
		node := candidates[i].Node
		reason := disruption.ActingProposal(candidates[i].Claim).Reason
		c, err := s.limitDrain(ctx, candidates[i].Claim)
		if c == nil || err != nil {
			return err
		}
		s.publishOnBoth(ctx, events.DisruptionTerminating, c, node, "Disrupting Node: "+reason, "Disrupting NodeClaim: "+reason)
		return s.executor.Execute(ctx, nil, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: reason, Read: c})
	})...)
}

// limitDrain writes the deadline of a repair's drain on a claim that is about to be deleted, and
// returns the claim as stored; nil if it has changed. The deadline begins now, so that the launch of
// replacements does not shorten the drain, and never moves later.
func (s *Service) limitDrain(ctx context.Context, c *karpenter.NodeClaim) (*karpenter.NodeClaim, error) {
	p := disruption.ActingProposal(c)
	if p.GracePeriod == nil {
		return c, nil
	}
	marked, changed := nodeclaim.WithEarlierDeadline(c, s.Now().Add(*p.GracePeriod))
	if !changed {
		return c, nil
	}
	stored, err := s.Client.Update(ctx, marked)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.Missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("limiting the drain of NodeClaim %s: %w", c.Name, err)
	}
	return stored.(*karpenter.NodeClaim), nil
}

// markDisrupted writes the condition DisruptionReason on the claim, taints its node and returns
// the claim as stored.
func (s *Service) markDisrupted(ctx context.Context, c *karpenter.NodeClaim, node *corev1.Node) (*karpenter.NodeClaim, error) {
	updated, err := s.updateClaim(ctx, c, s.Client.UpdateStatus, func(c *karpenter.NodeClaim) bool {
		p := disruption.ActingProposal(c)
		if p == nil || c.Status.Conditions.IsTrue(karpenter.ConditionTypeDisruptionReason) {
			return false
		}
		c.Status.Conditions = conditions.With(c, metav1.Condition{
			Type: karpenter.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: p.Reason, Message: p.Reason,
		}, s.Now())
		return true
	})
	if err != nil {
		return c, fmt.Errorf("setting the condition DisruptionReason of NodeClaim %s: %w", c.Name, err)
	}
	if node == nil || !disruption.IsUntainted(node) {
		return updated, nil
	}
	if acts, err := s.isStillActing(ctx, c, updated); err != nil || !acts {
		return updated, err
	}
	return updated, s.updateTaints(ctx, c, node, disruption.WithTaint)
}

// isStillActing reports whether the proposal on a claim is still confirmed. It uses a newer read
// than known, which may be older than a rollback.
func (s *Service) isStillActing(ctx context.Context, known, since *karpenter.NodeClaim) (bool, error) {
	if since.UID == known.UID && since.ResourceVersion != known.ResourceVersion {
		return disruption.ActingProposal(since) != nil, nil
	}
	now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(known))
	if fault.Is(err, fault.Missing) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading NodeClaim %s before its node is tainted: %w", known.Name, err)
	}
	return now.UID == known.UID && disruption.ActingProposal(now) != nil, nil
}

// updateTaints writes the node as changed by change. After a conflict it reads the node and tries
// again.
func (s *Service) updateTaints(ctx context.Context, c *karpenter.NodeClaim, node *corev1.Node, change func(*corev1.Node) (*corev1.Node, bool)) (err error) {
	for range maxWriteAttempts {
		next, changes := change(node)
		if !changes {
			return nil
		}
		if _, err = s.Client.Update(ctx, next); err == nil || fault.Is(err, fault.Missing) {
			return nil
		}
		if !fault.Is(err, fault.Conflict) {
			break
		}
		now, failure := s.readNode(ctx, c)
		if failure != nil || now == nil {
			return failure
		}
		node = now
	}
	return fmt.Errorf("changing the taints of node %s: %w", node.Name, err)
}

// rollBackClaim ends a disruption, and reports why.
func (s *Service) rollBackClaim(ctx context.Context, known *karpenter.NodeClaim, why string) error {
	c, node, err := s.endDisruption(ctx, known, nil)
	if c == nil || err != nil {
		return err
	}
	text := "Disruption was rolled back: " + why
	s.publishOnBoth(ctx, events.DisruptionBlocked, c, node, text, text)
	return nil
}

// revokeConfirmation ends a disruption whose replacements were not admitted. The proposal stays and may
// be confirmed again.
func (s *Service) revokeConfirmation(ctx context.Context, known *karpenter.NodeClaim) error {
	p := *disruption.ActingProposal(known)
	p.ConfirmedAt, p.Replacements, p.MovingPods, p.Condition, p.GracePeriod, p.Reboot = time.Time{}, nil, nil, "", nil, ""
	_, _, err := s.endDisruption(ctx, known, &p)
	return err
}

// endDisruption removes the taint and the condition, and then writes p in place of the proposal, or
// removes it if p is nil. In this order the confirmed proposal is still there after a crash, and the rollback continues. It
// reads the claim again: this replica may have been paused, and a claim that another replica deletes, or that carries another
// proposal, keeps its taint. It returns the claim and its node, or nil if no confirmed proposal was replaced.
func (s *Service) endDisruption(ctx context.Context, known *karpenter.NodeClaim, p *planning.Proposal) (*karpenter.NodeClaim, *corev1.Node, error) {
	c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(known))
	if fault.Is(err, fault.Missing) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading NodeClaim %s to roll back: %w", known.Name, err)
	}
	if c.UID != known.UID || c.DeletionTimestamp != nil || readMarks(c) != readMarks(known) {
		return nil, nil, nil
	}
	node, err := s.readNode(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the node of NodeClaim %s to roll back: %w", c.Name, err)
	}
	if node != nil {
		if err := s.updateTaints(ctx, c, node, disruption.WithoutTaint); err != nil {
			return nil, nil, err
		}
	}
	c, err = s.updateClaim(ctx, c, s.Client.UpdateStatus, func(c *karpenter.NodeClaim) bool {
		_, found := c.Status.Conditions.Get(karpenter.ConditionTypeDisruptionReason)
		c.Status.Conditions = c.Status.Conditions.Without(karpenter.ConditionTypeDisruptionReason)
		return found
	})
	if err != nil {
		return nil, nil, fmt.Errorf("removing the condition DisruptionReason of a NodeClaim: %w", err)
	}
	if disruption.ActingProposal(c) == nil {
		return nil, nil, nil
	}
	if _, err := s.writeProposal(ctx, c, p, nil); err != nil {
		return nil, nil, err
	}
	return c, node, nil
}

// replacementNomination is how long a replacement does not count as empty. It is renewed after half
// of that time.
const replacementNomination = time.Minute

// nominateReplacements nominates replacements for the pods of the claims that they replace. No pod
// is scheduled to them before those claims are deleted, so they would count as empty.
func (s *Service) nominateReplacements(ctx context.Context, w clusterState, claims []*karpenter.NodeClaim, acting map[*karpenter.NodeClaim]*planning.Proposal) error {
	names := map[string]bool{}
	for _, c := range claims {
		if p := acting[c]; p != nil && disruption.WithinTimeout(*p, s.Now()) {
			for _, name := range p.Replacements {
				names[name] = true
			}
		}
	}
	var failures []error
	for _, c := range w.claims {
		until, _ := time.Parse(time.RFC3339, c.Annotations[NominatedAnnotation])
		if !names[c.Name] || c.DeletionTimestamp != nil || until.Sub(s.Now()) > replacementNomination/2 {
			continue
		}
		kept := c.DeepCopy()
		annotateObject(kept, NominatedAnnotation, s.Now().Add(replacementNomination).UTC().Format(time.RFC3339))
		failures = append(failures, s.executor.Execute(ctx, nil, effect.Update{Object: kept}))
	}
	return errors.Join(failures...)
}

// reportWaiting publishes Events on the replacements that are not initialized yet.
func (s *Service) reportWaiting(ctx context.Context, w clusterState, p planning.Proposal) {
	for _, name := range p.Replacements {
		c := w.findClaim(name)
		if c == nil || c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || !s.allowAction("replacing/"+name, events.RepeatAfter) {
			continue
		}
		for _, report := range []effect.Report{
			events.DisruptionLaunching.About(cluster.NodeClaims, c, s.Now(), "Launching NodeClaim: %s", p.Reason),
			events.DisruptionWaitingReadiness.About(cluster.NodeClaims, c, s.Now(), "Waiting on readiness to continue disruption"),
		} {
			_ = s.executor.ExecuteOne(ctx, report)
		}
	}
}

// publishOnBoth publishes an Event on the claim and on its node, if there is one. Errors are
// ignored.
func (s *Service) publishOnBoth(ctx context.Context, r events.Reason, c *karpenter.NodeClaim, node *corev1.Node, onNode, onClaim string) {
	if node != nil {
		_ = s.executor.ExecuteOne(ctx, r.About(cluster.Nodes, node, s.Now(), "%s", onNode))
	}
	_ = s.executor.ExecuteOne(ctx, r.About(cluster.NodeClaims, c, s.Now(), "%s", onClaim))
}
