package launcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/launcher/internal/owner"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// terminateInstance ends an instance of ours. One that cannot be seen is left for the
// next request: it may be too young to be described, and lifecycle asks again
// while the finalizer stands.
func (s Service) terminateInstance(ctx context.Context, _ event.Envelope, b event.TerminateRequested) error {
	instance, seen, err := s.describeOwned(ctx, b.InstanceID, b.Claim)
	host.Say(ctx, "instance", b.InstanceID, "claim", b.Claim, "reason", b.Reason, "seen", seen)
	if err != nil {
		return err
	}
	if !seen || instance.State == cloud.ShuttingDown || instance.State.Gone() {
		return nil
	}
	if b.Claim == "" || b.ClaimUID == "" {
		if err := owner.CheckOrphan(instance, b.Claim, b.Intent); err != nil {
			s.addCount(ForeignSkipped, 1, "instance")
			return err
		}
	}
	if err := s.EC2.Terminate(ctx, []string{b.InstanceID}); err != nil {
		return fmt.Errorf("terminating instance %s: %w", b.InstanceID, err)
	}
	s.addCount(InstancesTerminated, 1)
	return nil
}

// allowedTagKeys are the only keys that lifecycle may set afterwards.
var allowedTagKeys = []string{"Name", karpenter.NodeClaimTagKey, karpenter.EKSClusterNameTagKey}

func (s Service) tagInstance(ctx context.Context, _ event.Envelope, b event.TagRequested) error {
	for key := range b.Tags {
		if !slices.Contains(allowedTagKeys, key) {
			return fault.F("tagging instance "+b.InstanceID, fault.Poison, "tag %q is not one of %v", key, allowedTagKeys)
		}
	}
	instance, seen, err := s.describeOwned(ctx, b.InstanceID, b.Tags[karpenter.NodeClaimTagKey])
	if err != nil {
		return err
	}
	if !seen {
		return fault.F("tagging instance "+b.InstanceID, fault.Retry, "EC2 does not show it yet")
	}
	missing := missingTags(instance.Tags, b.Tags)
	if instance.State.Gone() || len(missing) == 0 {
		return nil
	}
	if err := s.EC2.Tag(ctx, []string{b.InstanceID}, missing); err != nil {
		return fmt.Errorf("tagging instance %s: %w", b.InstanceID, err)
	}
	return nil
}

// missingTags are the tags whose keys the instance does not carry. What it carries
// is from its EC2NodeClass, such as a Name that its user chose, and stays. The
// claim's name is there or not at all: owner has refused another.
func missingTags(have, want map[string]string) map[string]string {
	missing := map[string]string{}
	for key, value := range want {
		if _, there := have[key]; !there {
			missing[key] = value
		}
	}
	return missing
}

// describeOwned reads an instance and refuses one that is not this cluster's, or another
// claim's: whoever sent the message, Joist does not touch what it did not launch.
func (s Service) describeOwned(ctx context.Context, id, claim string) (instance cloud.Instance, seen bool, err error) {
	found, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: []string{id}})
	if err != nil {
		return cloud.Instance{}, false, fmt.Errorf("describing instance %s: %w", id, err)
	}
	if len(found) == 0 {
		return cloud.Instance{}, false, nil
	}
	key, value := s.ownerTag()
	if err := owner.CheckInstance(found[0], key, value, claim); err != nil {
		s.addCount(ForeignSkipped, 1, "instance")
		return found[0], true, err
	}
	return found[0], true, nil
}
