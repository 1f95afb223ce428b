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
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// sagas goes on with the proposals that act, by what their claims say: each old claim
// is kept from further pods while its replacements come up, is deleted when they are
// all initialized, and is let be again when they do not come.
func (s *Service) sagas(ctx context.Context, w world) error {
	acting := map[*karpenter.NodeClaim]*planning.Proposal{}
	proposals := map[string]bool{}
	var claims []*karpenter.NodeClaim
	for _, c := range w.claims {
		p := disruption.ActingProposal(c)
		if p != nil && c.DeletionTimestamp == nil {
			proposals[p.ID] = true
		}
		if p != nil || c.DeletionTimestamp == nil && disruption.Marked(c, w.node(c)) {
			acting[c] = p
			claims = append(claims, c)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	failures := s.do.Each(len(claims), func(i int) error {
		c, p := claims[i], acting[claims[i]]
		switch {
		case c.DeletionTimestamp != nil:
			return nil
		case p == nil:
			return s.unmark(ctx, c)
		default:
			return s.goOn(ctx, w, c, *p, len(proposals))
		}
	})
	return worth(append(failures, s.expect(ctx, w, claims, acting)))
}

// unmark takes off what is left of a disruption that nobody goes on with: somebody
// took the proposal off by hand, or Karpenter began it and has gone. The claim is read
// live, for one that is being deleted keeps its taint.
func (s *Service) unmark(ctx context.Context, c *karpenter.NodeClaim) error {
	now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading NodeClaim %s, whose node is marked as disrupted: %w", c.Name, err)
	}
	if now.UID != c.UID || now.DeletionTimestamp != nil || disruption.ActingProposal(now) != nil {
		return nil
	}
	return s.undo(ctx, now, "")
}

// goOn takes the next step for one claim of a proposal that acts.
func (s *Service) goOn(ctx context.Context, w world, c *karpenter.NodeClaim, p planning.Proposal, acting int) error {
	verdict, why, err := s.stands(ctx, p, acting, w.claim)
	if err != nil {
		return err
	}
	switch verdict {
	case disruption.Ready:
		return s.finish(ctx, w, c, p, acting)
	case disruption.Failed:
		err := s.undo(ctx, c, why)
		if err == nil {
			s.failed(w, p)
		}
		return err
	default:
		s.sayWaiting(ctx, w, p)
		_, err := s.hold(ctx, c, w.node(c))
		return err
	}
}

// stands finds out how the replacements of a proposal stand. One that is not where it
// is looked for first is looked for live, and then in the outbox.
func (s *Service) stands(ctx context.Context, p planning.Proposal, acting int, find func(string) *karpenter.NodeClaim) (disruption.Progress, string, error) {
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
			return "", "", fmt.Errorf("looking for replacement NodeClaim %s: %w", name, err)
		}
		if coming[name], err = s.coming(ctx, p, name); err != nil {
			return "", "", err
		}
	}
	verdict, why := disruption.AssessProgress(disruption.ProposalView{
		Proposal: p, Acting: acting, Now: s.Now(),
		Replacement: func(name string) *karpenter.NodeClaim { return seen[name] },
		Coming:      func(name string) bool { return coming[name] },
	})
	return verdict, why, nil
}

// coming reports whether a replacement that does not exist may yet be created: the
// door has let it pass and is not done, or its message may still be on its way.
func (s *Service) coming(ctx context.Context, p planning.Proposal, name string) (bool, error) {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return false, err
	}
	if held.Lists(name) {
		return held.State == outbox.Applying, nil
	}
	return s.Now().Sub(p.Confirmed) < disruption.AdmissionTime, nil
}

// finish deletes an old claim, after a live look at it and at its replacements: what
// the cache shows may be older than a roll-back, or than the end of a replacement.
func (s *Service) finish(ctx context.Context, w world, c *karpenter.NodeClaim, p planning.Proposal, acting int) error {
	now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading NodeClaim %s before its end: %w", c.Name, err)
	}
	if still := disruption.ActingProposal(now); still == nil || still.ID != p.ID || now.UID != c.UID {
		return nil
	}
	verdict, _, err := s.stands(ctx, p, acting, func(string) *karpenter.NodeClaim { return nil })
	if err != nil || verdict != disruption.Ready {
		return err
	}
	return s.remove(ctx, []disruption.Candidate{{Claim: now, Node: w.node(now)}})
}

// remove deletes the claims of a proposal whose replacements are there, each as it was
// read: it may be rolled back at this moment, by a replica that leads where this one was
// paused. The next look goes on with a claim that anybody else has written.
func (s *Service) remove(ctx context.Context, candidates []disruption.Candidate) error {
	return errors.Join(s.do.Each(len(candidates), func(i int) error {
		c, node := candidates[i].Claim, candidates[i].Node
		reason := disruption.ActingProposal(c).Reason
		s.both(ctx, events.DisruptionTerminating, c, node, "Disrupting Node: "+reason, "Disrupting NodeClaim: "+reason)
		return s.do.Do(ctx, nil, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: reason, Read: c})
	})...)
}

// hold keeps further pods away from the node of a claim that is to go, and says why. It
// gives the claim as it is then.
func (s *Service) hold(ctx context.Context, c *karpenter.NodeClaim, node *corev1.Node) (*karpenter.NodeClaim, error) {
	said, err := s.rewrite(ctx, c, s.Client.UpdateStatus, func(c *karpenter.NodeClaim) bool {
		p := disruption.ActingProposal(c)
		if p == nil || c.Status.Conditions.True(karpenter.ConditionTypeDisruptionReason) {
			return false
		}
		c.Status.Conditions = conditions.With(c, metav1.Condition{
			Type: karpenter.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: p.Reason, Message: p.Reason,
		}, s.Now())
		return true
	})
	if err != nil {
		return c, fmt.Errorf("saying that NodeClaim %s is disrupted: %w", c.Name, err)
	}
	if node == nil || !disruption.Taintless(node) {
		return said, nil
	}
	if acts, err := s.actsNow(ctx, c, said); err != nil || !acts {
		return said, err
	}
	return said, s.retaint(ctx, c, node, disruption.Tainted)
}

// actsNow reports whether the proposal on a claim acts, by what was read of the claim
// since it was known: what was known may be older than its being rolled back.
func (s *Service) actsNow(ctx context.Context, known, since *karpenter.NodeClaim) (bool, error) {
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

// retaint writes the node as change makes it, from what it is now where that has
// changed meanwhile.
func (s *Service) retaint(ctx context.Context, c *karpenter.NodeClaim, node *corev1.Node, change func(*corev1.Node) (*corev1.Node, bool)) (err error) {
	for range tries {
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
		now, failure := s.nodeNow(ctx, c)
		if failure != nil || now == nil {
			return failure
		}
		node = now
	}
	return fmt.Errorf("changing the taints of node %s: %w", node.Name, err)
}

// undo lets a claim be as if nothing had been proposed: its node takes pods again,
// and what says that it goes comes off last, so that whoever dies before is followed
// by somebody who goes on.
func (s *Service) undo(ctx context.Context, c *karpenter.NodeClaim, why string) error {
	node, err := s.nodeNow(ctx, c)
	if err != nil {
		return fmt.Errorf("reading the node of NodeClaim %s to roll back: %w", c.Name, err)
	}
	if node != nil {
		if err := s.retaint(ctx, c, node, disruption.Untainted); err != nil {
			return err
		}
	}
	c, err = s.rewrite(ctx, c, s.Client.UpdateStatus, func(c *karpenter.NodeClaim) bool {
		_, found := c.Status.Conditions.Get(karpenter.ConditionTypeDisruptionReason)
		c.Status.Conditions = c.Status.Conditions.Without(karpenter.ConditionTypeDisruptionReason)
		return found
	})
	if err != nil {
		return fmt.Errorf("taking back that a NodeClaim is disrupted: %w", err)
	}
	if disruption.ActingProposal(c) == nil {
		return nil
	}
	if _, err := s.note(ctx, c, nil, nil); err != nil {
		return err
	}
	text := "Disruption is rolled back: " + why
	s.both(ctx, events.DisruptionBlocked, c, node, text, text)
	return nil
}

// keep is how long a replacement is kept from counting as empty, and half of it how
// soon that is written anew.
const keep = time.Minute

// expect keeps replacements for the pods of the claims that they replace, until
// those are gone: nothing is scheduled to them before, and they look empty.
func (s *Service) expect(ctx context.Context, w world, claims []*karpenter.NodeClaim, acting map[*karpenter.NodeClaim]*planning.Proposal) error {
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
		if !names[c.Name] || c.DeletionTimestamp != nil || until.Sub(s.Now()) > keep/2 {
			continue
		}
		kept := c.DeepCopy()
		annotate(kept, NominatedAnnotation, s.Now().Add(keep).UTC().Format(time.RFC3339))
		failures = append(failures, s.do.Do(ctx, nil, effect.Update{Object: kept}))
	}
	return errors.Join(failures...)
}

// sayWaiting tells, on the replacements, what they are for and what is waited for.
func (s *Service) sayWaiting(ctx context.Context, w world, p planning.Proposal) {
	for _, name := range p.Replacements {
		c := w.claim(name)
		if c == nil || c.Status.Conditions.True(karpenter.ConditionTypeInitialized) || !s.due("replacing/"+name, events.RepeatAfter) {
			continue
		}
		for _, said := range []effect.Report{
			events.DisruptionLaunching.About(cluster.NodeClaims, c, s.Now(), "Launching NodeClaim: %s", p.Reason),
			events.DisruptionWaitingReadiness.About(cluster.NodeClaims, c, s.Now(), "Waiting on readiness to continue disruption"),
		} {
			_ = s.do.One(ctx, said)
		}
	}
}

// both tells something about a node, if there is one, and its claim. Nothing rests on
// whether it is heard.
func (s *Service) both(ctx context.Context, r events.Reason, c *karpenter.NodeClaim, node *corev1.Node, onNode, onClaim string) {
	if node != nil {
		_ = s.do.One(ctx, r.About(cluster.Nodes, node, s.Now(), "%s", onNode))
	}
	_ = s.do.One(ctx, r.About(cluster.NodeClaims, c, s.Now(), "%s", onClaim))
}
