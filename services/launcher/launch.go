package launcher

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/services/launcher/internal/settle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// launch obeys one intent. The order matters: the templates must exist before
// the fleet names them, and the fact is published before the message is deleted.
func (s Service) launch(ctx context.Context, e event.Envelope, b event.LaunchRequested) error {
	intent, err := blob.Get[launchspec.Intent](ctx, s.Blobs, b.IntentRef)
	if err != nil {
		return fmt.Errorf("reading intent %s: %w", b.Intent, err)
	}
	if err := s.check(intent, b); err != nil {
		return err
	}
	for _, template := range intent.Templates {
		if err := s.EC2.EnsureTemplate(ctx, template); err != nil {
			return s.unlaunched(ctx, e, intent, fmt.Errorf("ensuring launch template %s: %w", template.Name, err))
		}
	}
	if e.Expired(s.Now()) {
		return fault.F("launching intent "+intent.ID, fault.Stale, "the request expired while its templates were made")
	}
	result, err := s.EC2.CreateFleet(ctx, intent.Fleet)
	if fault.Is(err, fault.Conflict) {
		return s.mismatched(ctx, e, intent, err)
	}
	if err != nil {
		return s.unlaunched(ctx, e, intent, fmt.Errorf("creating the fleet of intent %s: %w", intent.ID, err))
	}
	settled, ok := settle.Result(intent, result)
	if !ok {
		return fault.F("creating the fleet of intent "+intent.ID, fault.Unknown, "EC2 answered with neither instances nor errors")
	}
	host.Say(ctx, "intent", intent.ID, "instances", len(settled.Instances), "refusals", len(settled.Refusals))
	return s.publish(ctx, e, settled)
}

// check refuses an intent that is not what the request says, or that would
// launch for somebody else.
func (s Service) check(intent launchspec.Intent, b event.LaunchRequested) error {
	poison := func(format string, args ...any) error {
		return fault.F("checking intent "+b.Intent, fault.Poison, format, args...)
	}
	key, value := s.ownerTag()
	switch {
	case intent.ID != b.Intent || intent.Fleet.Token != b.Intent:
		return poison("the document is of intent %q with token %q", intent.ID, intent.Fleet.Token)
	case intent.Cluster != s.Cluster.Name:
		return poison("it is of cluster %q, and this launcher serves %q", intent.Cluster, s.Cluster.Name)
	case len(intent.Claims) != b.Claims || intent.Fleet.Count != b.Claims:
		return poison("%d claims were admitted, and the intent is for %d with count %d", b.Claims, len(intent.Claims), intent.Fleet.Count)
	}
	for _, set := range intent.Fleet.TagSets {
		if set.Resource == "instance" && set.Tags[key] == value && set.Tags[launchspec.IntentTag] == intent.ID &&
			set.Tags[karpenter.NodePoolLabelKey] != "" {
			return nil
		}
	}
	// What does not carry them all could never be terminated again: see owned.
	return poison("its instances would not carry the tags %s=%s, %s and %s", key, value, launchspec.IntentTag, karpenter.NodePoolLabelKey)
}

// unlaunched decides what an error before or of the fleet call means. Denial
// and invalid input are definite: nothing was launched, and EC2 has not taken
// the token. Everything else is tried again, under the same token.
func (s Service) unlaunched(ctx context.Context, e event.Envelope, intent launchspec.Intent, err error) error {
	if !fault.Is(err, fault.Denied, fault.Invalid) {
		return err
	}
	host.Say(ctx, "intent", intent.ID, "refused", err.Error())
	return s.publish(ctx, e, settle.Refused(intent, err))
}

// mismatched looks by tag after EC2 said that the token came with another body.
// That does not prove a launch; only instances do.
func (s Service) mismatched(ctx context.Context, e event.Envelope, intent launchspec.Intent, cause error) error {
	found, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{Tags: map[string]string{launchspec.IntentTag: intent.ID}})
	if err != nil {
		return fmt.Errorf("looking for the instances of intent %s: %w", intent.ID, err)
	}
	if len(found) == 0 {
		return fault.E("creating the fleet of intent "+intent.ID, fault.Unknown, cause)
	}
	return s.publish(ctx, e, settle.Found(intent, found))
}
