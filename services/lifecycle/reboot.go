package lifecycle

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// startReboot confirms a proposal that reboots a node, and requests the reboot. After a crash in between,
// reconcileDisruptions requests it.
func (s *Service) startReboot(ctx context.Context, f *proposalMessage, candidate disruption.Candidate) error {
	c, err := s.confirmClaim(ctx, f.envelope, candidate, nil)
	if err != nil {
		return err
	}
	s.countDecision(f)
	return s.requestReboot(ctx, c)
}

// annotateReboot records the reboot in the history of the claim, and the limit of its drain: the shorter
// of the policy's and the NodeClaim's, or none. It is written together with the confirmation.
func annotateReboot(c *karpenter.NodeClaim, p planning.Proposal) {
	annotateObject(c, planning.RebootsAnnotation, planning.FormatReboots(planning.ReadReboots(c), p.ConfirmedAt))
	limit := p.GracePeriod
	if own := c.Spec.TerminationGracePeriod; limit == nil && own != nil {
		limit = &own.Duration
	}
	if limit == nil {
		delete(c.Annotations, karpenter.RebootTerminationGracePeriodAnnotationKey)
	} else {
		annotateObject(c, karpenter.RebootTerminationGracePeriodAnnotationKey, limit.String())
	}
	nodeclaim.RemoveRebootProgress(c)
}

// requestReboot sets the conditions that begin the reboot of a confirmed proposal, and then removes the
// proposal, in this order: after a crash in between, the conditions are not set again.
func (s *Service) requestReboot(ctx context.Context, c *karpenter.NodeClaim) error {
	c, err := s.updateClaim(ctx, c, s.Client.UpdateStatus, func(c *karpenter.NodeClaim) bool {
		p := disruption.ActingProposal(c)
		if p == nil || p.Reboot == "" || c.IsRebooting() || c.DeletionTimestamp != nil {
			return false
		}
		c.Status.Conditions = conditions.With(c, metav1.Condition{
			Type: karpenter.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: p.Reason, Message: p.Reason,
		}, s.Now())
		c.Status.Conditions = conditions.With(c, metav1.Condition{
			Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionTrue, Reason: karpenter.RebootRequestedReason, Message: "rebooting for " + p.Reboot,
		}, s.Now())
		return true
	})
	if err != nil {
		return fmt.Errorf("requesting the reboot of NodeClaim %s: %w", c.Name, err)
	}
	if p := disruption.ActingProposal(c); p == nil || p.Reboot == "" || !c.IsRebooting() {
		return nil
	}
	_, err = s.writeProposal(ctx, c, nil, nil)
	return err
}

// handleRebootSettled records EC2's answer on the claim. The next reconcile acts on it.
func (s *Service) handleRebootSettled(ctx context.Context, _ event.Envelope, b event.RebootSettled) error {
	host.AddLogFields(ctx, "instance", b.InstanceID, "claim", b.Claim, "refusal", b.Refusal)
	c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: b.Claim})
	if err != nil && !fault.Is(err, fault.Missing) {
		return fmt.Errorf("reading NodeClaim %s, whose node is rebooted: %w", b.Claim, err)
	}
	if err != nil || string(c.UID) != b.ClaimUID || nodeclaim.RebootOperation(c) != b.Operation {
		return fault.F("handling the result of a reboot of "+b.InstanceID, fault.Stale, "NodeClaim %s is not in this reboot", b.Claim)
	}
	_, err = s.updateClaim(ctx, c, s.Client.Update, func(c *karpenter.NodeClaim) bool {
		return nodeclaim.RebootOperation(c) == b.Operation && nodeclaim.RecordRebootAnswer(c, b.Refusal, s.Now().Truncate(time.Second))
	})
	if err != nil {
		return fmt.Errorf("recording the answer about the reboot on NodeClaim %s: %w", b.Claim, err)
	}
	return nil
}
