package launcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// terminate ends an instance of ours. One that cannot be seen is left for the
// next request: it may be too young to be described, and lifecycle asks again
// while the finalizer stands.
func (s Service) terminate(ctx context.Context, _ event.Envelope, b event.TerminateRequested) error {
	instance, seen, err := s.owned(ctx, b.InstanceID)
	if err != nil {
		return err
	}
	host.Say(ctx, "instance", b.InstanceID, "claim", b.Claim, "reason", b.Reason, "seen", seen)
	if !seen || instance.State == cloud.ShuttingDown || instance.State.Gone() {
		return nil
	}
	if err := s.EC2.Terminate(ctx, []string{b.InstanceID}); err != nil {
		return fmt.Errorf("terminating instance %s: %w", b.InstanceID, err)
	}
	return nil
}

// taggable are the only keys that lifecycle may set afterwards (B141).
var taggable = []string{"Name", karpenter.NodeClaimTagKey, karpenter.EKSClusterNameTagKey}

func (s Service) tag(ctx context.Context, _ event.Envelope, b event.TagRequested) error {
	for key := range b.Tags {
		if !slices.Contains(taggable, key) {
			return fault.F("tagging instance "+b.InstanceID, fault.Poison, "tag %q is not one of %v", key, taggable)
		}
	}
	instance, seen, err := s.owned(ctx, b.InstanceID)
	if err != nil {
		return err
	}
	if !seen {
		return fault.F("tagging instance "+b.InstanceID, fault.Retry, "EC2 does not show it yet")
	}
	if instance.State.Gone() || tagged(instance.Tags, b.Tags) {
		return nil
	}
	if err := s.EC2.Tag(ctx, []string{b.InstanceID}, b.Tags); err != nil {
		return fmt.Errorf("tagging instance %s: %w", b.InstanceID, err)
	}
	return nil
}

func tagged(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// owned reads an instance and refuses one that is not this cluster's: whoever
// sent the message, Joist does not touch what it did not launch.
func (s Service) owned(ctx context.Context, id string) (instance cloud.Instance, seen bool, err error) {
	found, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: []string{id}})
	if err != nil {
		return cloud.Instance{}, false, fmt.Errorf("describing instance %s: %w", id, err)
	}
	if len(found) == 0 {
		return cloud.Instance{}, false, nil
	}
	key, value := s.ownerTag()
	if found[0].Tags[key] != value || found[0].Tags[karpenter.NodePoolLabelKey] == "" {
		return cloud.Instance{}, false, fault.F("checking the owner of instance "+id, fault.Foreign,
			"it does not carry %s=%s and %s", key, value, karpenter.NodePoolLabelKey)
	}
	return found[0], true, nil
}
