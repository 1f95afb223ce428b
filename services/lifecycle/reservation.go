package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A confirmation is two writes of a NodeClaim: first its reservation, and after the budgets are counted
// the confirmation, which requires that the reservation is unchanged. Every count includes the
// reservations of others. So of two turns that count at the same time at least one counts the other,
// although a replica may have lost the Lease since its last call, and a request without an answer may
// be executed minutes later. Such a request fails once the claim is reserved again or its proposal is
// dropped. Until then the later counts of the same turn include it too.

// reserveMessages reserves the claims of all confirmations of a turn. It comes before the first list,
// and makes no reservation for replacements while a batch is in flight.
func (s *Service) reserveMessages(ctx context.Context, facts []*proposalMessage) {
	s.turns++
	s.reservation = fmt.Sprintf("%s/%s/%d", s.Holder, s.Now().UTC().Format(time.RFC3339Nano), s.turns)
	begins := filterMessages(facts, func(f *proposalMessage) bool { return f.isRemoval() || f.needsReplacement() && !f.isActing })
	s.forEachMessage(ctx, begins, func(ctx context.Context, f *proposalMessage) error {
		if f.needsReplacement() {
			if _, err := s.readIdleOutbox(ctx, f.body); err != nil {
				return err
			}
		}
		return s.forEachClaim(f, func(c *karpenter.NodeClaim) (*karpenter.NodeClaim, error) { return s.reserveClaim(ctx, c) })
	})
}

// forEachClaim replaces each claim of a message by the result of write, unless that fails.
func (s *Service) forEachClaim(f *proposalMessage, write func(*karpenter.NodeClaim) (*karpenter.NodeClaim, error)) error {
	f.claims = slices.Clone(f.claims)
	return errors.Join(s.executor.ForEach(len(f.claims), func(i int) error {
		stored, err := write(f.claims[i])
		if err == nil {
			f.claims[i] = stored
		}
		return err
	})...)
}

// reserveClaim writes this turn's reservation on a claim and returns it as stored. A claim whose
// proposal is confirmed counts already. It returns an error if the proposal has changed.
func (s *Service) reserveClaim(ctx context.Context, c *karpenter.NodeClaim) (*karpenter.NodeClaim, error) {
	if disruption.ActingProposal(c) != nil {
		return c, nil
	}
	was, isSame := readMarks(c), false
	stored, err := s.updateClaim(ctx, c, s.Client.Update, func(c *karpenter.NodeClaim) bool {
		if isSame = readMarks(c) == was; isSame {
			annotateObject(c, planning.ReservationAnnotation, s.reservation)
		}
		return isSame
	})
	if err == nil && !isSame {
		err = fault.F("starting proposal "+proposalID(c), fault.Retry, "the proposal has changed")
	}
	if err != nil {
		return c, fmt.Errorf("reserving NodeClaim %s: %w", c.Name, err)
	}
	return stored, nil
}

// releaseClaims removes this turn's reservations of a message that is retried later.
func (s *Service) releaseClaims(ctx context.Context, f *proposalMessage) error {
	return s.forEachClaim(f, func(c *karpenter.NodeClaim) (*karpenter.NodeClaim, error) {
		return s.updateClaim(ctx, c, s.Client.Update, func(c *karpenter.NodeClaim) bool {
			is := c.Annotations[planning.ReservationAnnotation] == s.reservation
			delete(c.Annotations, planning.ReservationAnnotation)
			return is
		})
	})
}

// readMarks returns the proposal and the reservation on a claim, as texts.
func readMarks(c *karpenter.NodeClaim) [2]string {
	return [2]string{c.Annotations[planning.ProposalAnnotation], c.Annotations[planning.ReservationAnnotation]}
}
