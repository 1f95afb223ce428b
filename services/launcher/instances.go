package launcher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/launcher/internal/owner"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// terminateInstance terminates an instance of the cluster. An instance that EC2 does not
// return may be too new: lifecycle repeats the request while the finalizer exists.
func (s Service) terminateInstance(ctx context.Context, _ event.Envelope, b event.TerminateRequested) error {
	instance, found, err := s.describeOwned(ctx, b.InstanceID, b.Claim)
	host.AddLogFields(ctx, "instance", b.InstanceID, "claim", b.Claim, "reason", b.Reason, "found", found)
	if err != nil {
		return err
	}
	if !found || instance.State == cloud.ShuttingDown || instance.State.Gone() {
		return nil
	}
	if b.Claim == "" || b.ClaimUID == "" {
		if err := owner.CheckOrphan(instance, b.Claim, b.Intent); err != nil {
			s.Metrics.Record(metric.ForeignRequestsRefused, 1, "instance")
			return err
		}
	}
	if err := s.EC2.Terminate(ctx, []string{b.InstanceID}); err != nil {
		return fmt.Errorf("terminating instance %s: %w", b.InstanceID, err)
	}
	s.Metrics.Record(metric.TerminationsRequested, 1)
	return nil
}

// rebootInstance reboots an instance of the cluster and publishes that EC2 accepted or refused it. Other errors are
// retried until the message expires: EC2 may then reboot the instance twice, which lifecycle expects.
func (s Service) rebootInstance(ctx context.Context, e event.Envelope, b event.RebootRequested) error {
	instance, found, err := s.describeOwned(ctx, b.InstanceID, b.Claim)
	host.AddLogFields(ctx, "instance", b.InstanceID, "claim", b.Claim, "operation", b.Operation, "found", found)
	if err != nil {
		return err
	}
	if !found || instance.State == cloud.ShuttingDown || instance.State.Gone() {
		return s.publishReboot(ctx, e, b, "the instance is gone")
	}
	err = s.EC2.Reboot(ctx, b.InstanceID)
	if fault.Is(err, fault.Denied, fault.Missing, fault.Invalid) {
		return s.publishReboot(ctx, e, b, err.Error())
	}
	if err != nil {
		return fmt.Errorf("rebooting instance %s: %w", b.InstanceID, err)
	}
	return s.publishReboot(ctx, e, b, "")
}

// maxRefusal is how many bytes of an error are published.
const maxRefusal = 1 << 10

func (s Service) publishReboot(ctx context.Context, e event.Envelope, b event.RebootRequested, refusal string) error {
	if refusal != "" {
		host.AddLogFields(ctx, "refusal", refusal)
	}
	refusal = strings.ToValidUTF8(refusal[:min(len(refusal), maxRefusal)], "")
	return s.publishFact(ctx, e, event.RebootSettled{InstanceID: b.InstanceID, Claim: b.Claim, ClaimUID: b.ClaimUID, Operation: b.Operation, Refusal: refusal})
}

// allowedTagKeys are the only tags that lifecycle may set on a running instance.
var allowedTagKeys = []string{"Name", karpenter.NodeClaimTagKey, karpenter.EKSClusterNameTagKey}

func (s Service) tagInstance(ctx context.Context, _ event.Envelope, b event.TagRequested) error {
	for key := range b.Tags {
		if !slices.Contains(allowedTagKeys, key) {
			return fault.F("tagging instance "+b.InstanceID, fault.Poison, "tag %q is not one of %v", key, allowedTagKeys)
		}
	}
	instance, found, err := s.describeOwned(ctx, b.InstanceID, b.Tags[karpenter.NodeClaimTagKey])
	if err != nil {
		return err
	}
	if !found {
		return fault.F("tagging instance "+b.InstanceID, fault.Retry, "EC2 does not return it yet")
	}
	missing := missingTags(instance.Tags, b.Tags)
	if instance.State.Gone() || len(missing) == 0 {
		return nil
	}
	err = s.EC2.Tag(ctx, []string{b.InstanceID}, missing)
	if fault.Is(err, fault.Denied) && s.tryOtherTags(ctx, b.InstanceID, missing) {
		return fault.E("tagging instance "+b.InstanceID, fault.Retry, fmt.Errorf("EC2 does not show its NodeClaim's tag yet: %w", err))
	}
	if err != nil {
		return fmt.Errorf("tagging instance %s: %w", b.InstanceID, err)
	}
	return nil
}

// tryOtherTags writes the tags of a denied call without the NodeClaim's, and reports whether that is allowed. The role's policy
// allows that tag only on instances without it, so the instance has it already, and EC2 does not show it yet.
func (s Service) tryOtherTags(ctx context.Context, id string, denied map[string]string) bool {
	others := maps.Clone(denied)
	delete(others, karpenter.NodeClaimTagKey)
	return len(others) > 0 && len(others) < len(denied) && s.EC2.Tag(ctx, []string{id}, others) == nil
}

// missingTags returns the wanted tags whose keys the instance does not have. Existing tags are
// kept, for example a Name from the EC2NodeClass. The NodeClaim tag cannot have another value:
// owner.CheckInstance rejects that.
func missingTags(have, want map[string]string) map[string]string {
	missing := map[string]string{}
	for key, value := range want {
		if _, exists := have[key]; !exists {
			missing[key] = value
		}
	}
	return missing
}

// describeOwned returns an instance, and whether EC2 returned it. The error is
// fault.Foreign if the instance does not belong to this cluster and claim: the launcher
// changes only instances that the cluster launched.
func (s Service) describeOwned(ctx context.Context, id, claim string) (instance cloud.Instance, found bool, err error) {
	instances, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: []string{id}})
	if err != nil {
		return cloud.Instance{}, false, fmt.Errorf("describing instance %s: %w", id, err)
	}
	if len(instances) == 0 {
		return cloud.Instance{}, false, nil
	}
	key, value := s.ownerTag()
	if err := owner.CheckInstance(instances[0], key, value, claim); err != nil {
		s.Metrics.Record(metric.ForeignRequestsRefused, 1, "instance")
		return instances[0], true, err
	}
	return instances[0], true, nil
}
