package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// propose writes the proposal on all of its claims.
func (s *Service) propose(ctx context.Context, b event.DisruptionProposed) error {
	claims, err := s.together(ctx, b)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if p := planning.ProposalOf(c); p != nil && p.ID != b.Proposal {
			return stale(b, "NodeClaim %s carries another, %s", c.Name, p.ID)
		}
	}
	return errors.Join(s.do.Each(len(claims), func(i int) error {
		if planning.ProposalOf(claims[i]) != nil {
			return nil
		}
		_, err := s.note(ctx, claims[i], &planning.Proposal{ID: b.Proposal, Reason: b.Reason, Method: b.Method, Proposed: s.Now().UTC()}, nil)
		return err
	})...)
}

// drop takes the proposal off the claims that carry it and do not act on it.
func (s *Service) drop(ctx context.Context, b event.DisruptionProposed) error {
	return errors.Join(s.do.Each(len(b.Claims), func(i int) error {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: b.Claims[i]})
		if fault.Is(err, fault.Missing) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading NodeClaim %s to drop a proposal: %w", b.Claims[i], err)
		}
		p := planning.ProposalOf(c)
		if p == nil || p.ID != b.Proposal || !p.Confirmed.IsZero() {
			return nil
		}
		if _, err = s.note(ctx, c, nil, nil); err == nil {
			s.count(Invalid, 1, karpenter.ConsolidationType(p.Method))
		}
		return err
	})...)
}

// together reads the claims of a proposal, live. They go together: one that is gone
// or going makes the whole proposal stale.
func (s *Service) together(ctx context.Context, b event.DisruptionProposed) ([]*karpenter.NodeClaim, error) {
	claims := make([]*karpenter.NodeClaim, len(b.Claims))
	for i, name := range b.Claims {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: name})
		switch {
		case fault.Is(err, fault.Missing):
			return nil, stale(b, "NodeClaim %s is gone", name)
		case err != nil:
			return nil, fmt.Errorf("reading NodeClaim %s for a proposal: %w", name, err)
		case c.DeletionTimestamp != nil:
			return nil, stale(b, "NodeClaim %s is being deleted", name)
		}
		claims[i] = c
	}
	return claims, nil
}

// carriers are the same, if each carries the proposal.
func (s *Service) carriers(ctx context.Context, b event.DisruptionProposed) ([]*karpenter.NodeClaim, error) {
	claims, err := s.together(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		if proposalID(c) != b.Proposal {
			return nil, stale(b, "NodeClaim %s does not carry it", c.Name)
		}
	}
	return claims, nil
}

// ripe refuses a proposal that some claim does not carry for long enough. It
// stays: a later snapshot confirms it again.
func (s *Service) ripe(b event.DisruptionProposed, claims []*karpenter.NodeClaim) error {
	for _, c := range claims {
		if s.Now().Sub(planning.ProposalOf(c).Proposed) < planning.ConfirmAfter {
			return stale(b, "on NodeClaim %s it is younger than %s", c.Name, planning.ConfirmAfter)
		}
	}
	return nil
}

// note writes a proposal on the claim, or takes it off where it is nil, and gives
// the claim as it is then. A claim that says something else by now is left alone. The
// message is the one with which the proposal acts; nil where it does not.
func (s *Service) note(ctx context.Context, c *karpenter.NodeClaim, p *planning.Proposal, acts *event.Envelope) (*karpenter.NodeClaim, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fault.E("encoding a proposal", fault.Bug, err)
	}
	was := c.Annotations[planning.ProposalAnnotation]
	stored, err := s.rewrite(ctx, c, s.Client.Update, func(c *karpenter.NodeClaim) bool {
		if c.Annotations[planning.ProposalAnnotation] != was {
			return false
		}
		if p == nil {
			delete(c.Annotations, planning.ProposalAnnotation)
		} else {
			annotate(c, planning.ProposalAnnotation, string(text))
		}
		if acts != nil {
			s.within(c, *acts)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("writing a proposal on NodeClaim %s: %w", c.Name, err)
	}
	return stored, nil
}

func proposalID(c *karpenter.NodeClaim) string {
	if p := planning.ProposalOf(c); p != nil {
		return p.ID
	}
	return ""
}

// tries is how often a write is tried that somebody else was faster than: kubelets
// and people write the same objects.
const tries = 4

// rewrite writes the claim as change makes it, from what it is now where somebody has
// written it meanwhile, and gives it as it is then. It is not written where change
// says so, or where there is another of its name.
func (s *Service) rewrite(ctx context.Context, c *karpenter.NodeClaim, write func(context.Context, cluster.Object) (cluster.Object, error), change func(*karpenter.NodeClaim) bool) (*karpenter.NodeClaim, error) {
	for try := 1; ; try++ {
		next := c.DeepCopy()
		if !change(next) {
			return c, nil
		}
		stored, err := write(ctx, next)
		if err == nil {
			return stored.(*karpenter.NodeClaim), nil
		}
		if !fault.Is(err, fault.Conflict) || try == tries {
			return nil, err
		}
		now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
		if err != nil || now.UID != c.UID {
			return c, err
		}
		c = now
	}
}

// begin writes on the claim that its proposal acts, and what replaces it.
func (s *Service) begin(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, replacements []string) (*karpenter.NodeClaim, error) {
	if disruption.ActingProposal(c) != nil {
		return c, nil
	}
	p := *planning.ProposalOf(c)
	p.Confirmed, p.Replacements = s.Now().UTC(), replacements
	noted, err := s.note(ctx, c, &p, &e)
	if err != nil {
		return nil, err
	}
	return noted, begun(noted, p.ID, replacements)
}

// begun refuses to go on from a claim that goes, or on which not exactly this acts.
func begun(c *karpenter.NodeClaim, id string, replacements []string) error {
	if c.DeletionTimestamp == nil && proposalID(c) == id && disruption.HasBegun([]*karpenter.NodeClaim{c}, replacements) {
		return nil
	}
	return fault.F("beginning proposal "+id, fault.Retry, "NodeClaim %s goes, or says something else by now", c.Name)
}

func stale(b event.DisruptionProposed, format string, args ...any) error {
	return fault.F(fmt.Sprintf("taking proposal %s as %s", b.Proposal, b.Phase), fault.Stale, format, args...)
}
