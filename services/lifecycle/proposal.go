package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// recordProposal writes the proposal on all of its claims.
func (s *Service) recordProposal(ctx context.Context, b event.DisruptionProposed) error {
	claims, err := s.readClaims(ctx, b)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if p := planning.ReadProposal(c); p != nil && p.ID != b.Proposal {
			return staleProposal(b, "NodeClaim %s carries another proposal, %s", c.Name, p.ID)
		}
	}
	return errors.Join(s.executor.ForEach(len(claims), func(i int) error {
		if planning.ReadProposal(claims[i]) != nil {
			return nil
		}
		_, err := s.writeProposal(ctx, claims[i], &planning.Proposal{ID: b.Proposal, Reason: b.Reason, Method: b.Method, ProposedAt: s.Now().UTC(), TerminateFirst: planning.TerminateFirstReason(b.TerminateFirst)}, nil)
		return err
	})...)
}

// dropProposal removes the proposal from claims on which it is not confirmed yet.
func (s *Service) dropProposal(ctx context.Context, b event.DisruptionProposed) error {
	return errors.Join(s.executor.ForEach(len(b.Claims), func(i int) error {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: b.Claims[i]})
		if fault.Is(err, fault.Missing) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading NodeClaim %s to drop a proposal: %w", b.Claims[i], err)
		}
		p := planning.ReadProposal(c)
		if p == nil || p.ID != b.Proposal || !p.ConfirmedAt.IsZero() {
			return nil
		}
		if _, err = s.writeProposal(ctx, c, nil, nil); err == nil {
			s.Metrics.Record(metric.Invalid, 1, karpenter.ConsolidationType(p.Method))
		}
		return err
	})...)
}

// readClaims reads the claims of a proposal from the API server. If one of them is deleted or being
// deleted, the whole proposal is stale.
func (s *Service) readClaims(ctx context.Context, b event.DisruptionProposed) ([]*karpenter.NodeClaim, error) {
	claims := make([]*karpenter.NodeClaim, len(b.Claims))
	for i, name := range b.Claims {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: name})
		switch {
		case fault.Is(err, fault.Missing):
			return nil, staleProposal(b, "NodeClaim %s is gone", name)
		case err != nil:
			return nil, fmt.Errorf("reading NodeClaim %s for a proposal: %w", name, err)
		case c.DeletionTimestamp != nil:
			return nil, staleProposal(b, "NodeClaim %s is being deleted", name)
		case !c.IsManaged():
			return nil, staleProposal(b, "NodeClaim %s is another provider's", name)
		}
		claims[i] = c
	}
	return claims, nil
}

// readProposedClaims calls readClaims and requires that each claim carries the proposal.
func (s *Service) readProposedClaims(ctx context.Context, b event.DisruptionProposed) ([]*karpenter.NodeClaim, error) {
	claims, err := s.readClaims(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		if proposalID(c) != b.Proposal {
			return nil, staleProposal(b, "NodeClaim %s does not carry it", c.Name)
		}
	}
	return claims, nil
}

// checkProposalAge returns an error if a claim has carried the proposal for less than planning.ConfirmAfter, or if it was
// recorded again since the snapshot: after a rollback a late copy of its first confirmation must not launch again the
// replacements that failed. The proposal stays, and a later snapshot confirms it again.
func (s *Service) checkProposalAge(b event.DisruptionProposed, claims []*karpenter.NodeClaim) error {
	var newest time.Time
	for _, c := range claims {
		at := planning.ReadProposal(c).ProposedAt
		if s.Now().Sub(at) < planning.ConfirmAfter {
			return staleProposal(b, "NodeClaim %s has carried it for less than %s", c.Name, planning.ConfirmAfter)
		}
		if at.After(newest) {
			newest = at
		}
	}
	if !b.ProposedAt.IsZero() && !b.ProposedAt.Equal(newest) {
		return staleProposal(b, "it was recorded at %s, and a proposal of %s is confirmed", newest.Format(time.RFC3339), b.ProposedAt.Format(time.RFC3339))
	}
	return nil
}

// writeProposal writes the proposal on the claim, or removes it if p is nil, and returns the claim
// as stored. If another writer changed the proposal or its reservation, the claim is not written.
// acts is the message that confirms the proposal, else nil. The reservation ends with the write.
func (s *Service) writeProposal(ctx context.Context, c *karpenter.NodeClaim, p *planning.Proposal, acts *event.Envelope) (*karpenter.NodeClaim, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fault.E("encoding a proposal", fault.Bug, err)
	}
	was := readMarks(c)
	stored, err := s.updateClaim(ctx, c, s.Client.Update, func(c *karpenter.NodeClaim) bool {
		if readMarks(c) != was {
			return false
		}
		delete(c.Annotations, planning.ReservationAnnotation)
		if p == nil {
			if acting := disruption.ActingProposal(c); acting != nil && acting.GracePeriod != nil {
				// The process may have stopped between limitDrain and the deletion.
				delete(c.Annotations, karpenter.NodeClaimTerminationTimestampAnnotationKey)
			}
			delete(c.Annotations, planning.ProposalAnnotation)
		} else {
			annotateObject(c, planning.ProposalAnnotation, string(text))
		}
		if p != nil && p.Reboot != "" {
			annotateReboot(c, *p)
		}
		if acts != nil {
			s.writeTrace(c, *acts)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("writing a proposal on NodeClaim %s: %w", c.Name, err)
	}
	if p == nil || p.ConfirmedAt.IsZero() && disruption.ActingProposal(c) != nil {
		s.counted.addClaims([]*karpenter.NodeClaim{stored}, s.Cache) // It counts against limits again.
	}
	return stored, nil
}

func proposalID(c *karpenter.NodeClaim) string {
	if p := planning.ReadProposal(c); p != nil {
		return p.ID
	}
	return ""
}

// maxWriteAttempts is how often a write is tried after conflicts. Kubelets and users write the
// same objects.
const maxWriteAttempts = 4

// updateClaim writes the claim as changed by change and returns it as stored. After a conflict it
// reads the claim and tries again. It does not write if change returns false or the claim has
// another UID.
func (s *Service) updateClaim(ctx context.Context, c *karpenter.NodeClaim, write func(context.Context, cluster.Object) (cluster.Object, error), change func(*karpenter.NodeClaim) bool) (*karpenter.NodeClaim, error) {
	for try := 1; ; try++ {
		next := c.DeepCopy()
		if !change(next) {
			return c, nil
		}
		stored, err := write(ctx, next)
		if err == nil {
			return stored.(*karpenter.NodeClaim), nil
		}
		if !fault.Is(err, fault.Conflict) || try == maxWriteAttempts {
			return nil, err
		}
		now, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(c))
		if err != nil || now.UID != c.UID {
			return c, err
		}
		c = now
	}
}

// confirmClaim writes the confirmation of its proposal and the replacements on the claim; for a repair
// also the condition and the limit of the drain.
func (s *Service) confirmClaim(ctx context.Context, e event.Envelope, candidate disruption.Candidate, replacements []string) (*karpenter.NodeClaim, error) {
	c := candidate.Claim
	if disruption.ActingProposal(c) != nil {
		return c, nil
	}
	p, moving := *planning.ReadProposal(c), candidate.CountMoving(s.Now())
	p.ConfirmedAt, p.Replacements, p.MovingPods = s.Now().UTC(), replacements, &moving
	if p.Reason == string(karpenter.DisruptionReasonUnhealthy) {
		decided := candidate.DecideRepair(s.Repair, s.Now())
		host.AddLogFields(ctx, "unhealthy_condition", decided.Condition.Type, "unhealthy_reason", decided.Condition.Reason, "reboot_escalated", decided.Escalated)
		p.Condition, p.GracePeriod = decided.Condition.Type, candidate.LimitDrain(decided)
		if decided.Action == repair.Reboot {
			p.Reboot = fmt.Sprintf("%s/%s", decided.Condition.Type, decided.Condition.Reason)
		}
	}
	noted, err := s.writeProposal(ctx, c, &p, &e)
	if err != nil {
		return nil, err
	}
	return noted, checkConfirmed(noted, p.ID, replacements)
}

// checkConfirmed returns an error if the claim is being deleted or does not carry exactly this
// confirmed proposal.
func checkConfirmed(c *karpenter.NodeClaim, id string, replacements []string) error {
	if c.DeletionTimestamp == nil && proposalID(c) == id && disruption.HasBegun([]*karpenter.NodeClaim{c}, replacements) {
		return nil
	}
	return fault.F("starting proposal "+id, fault.Retry, "NodeClaim %s is being deleted, or carries another proposal", c.Name)
}

func staleProposal(b event.DisruptionProposed, format string, args ...any) error {
	return fault.F(fmt.Sprintf("handling proposal %s in phase %s", b.Proposal, b.Phase), fault.Stale, format, args...)
}
