package launcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/launcher/internal/launchresult"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// launchIntent obeys one intent. The order matters: the templates must exist before
// the fleet names them, and the fact is published before the message is deleted.
func (s Service) launchIntent(ctx context.Context, e event.Envelope, b event.LaunchRequested) error {
	intent, err := blob.Get[launchspec.Intent](ctx, s.Blobs, b.IntentRef)
	if err != nil {
		return fmt.Errorf("reading intent %s: %w", b.Intent, err)
	}
	if err := s.checkIntent(intent, b); err != nil {
		return err
	}
	known, end, err := s.Cache.reserveIntent(intent.ID)
	if err != nil {
		return err
	}
	defer end()
	if known != nil {
		return s.publishFact(ctx, e, *known)
	}
	if err := s.Cache.allowLaunch(s.Now(), intent.ID, intent.Fleet.Count); err != nil {
		s.addCount(LaunchesStopped, 1, string(fault.KindOf(err)))
		return err
	}
	result, err := s.createFleet(ctx, e, intent)
	switch {
	case fault.Is(err, fault.Conflict):
		return s.recoverLaunch(ctx, e, intent, err)
	case fault.Is(err, fault.Denied, fault.Invalid, fault.Missing):
		return s.publishRefusal(ctx, e, intent, err)
	case err != nil:
		return err
	}
	settled, ok := launchresult.FromFleet(intent, result)
	if !ok {
		return s.recoverLaunch(ctx, e, intent, errEmptyAnswer)
	}
	return s.publishResult(ctx, e, intent, settled)
}

// createFleet makes sure of the templates and calls EC2. A template that EC2 misses
// although it was there, swept a moment ago or removed by somebody, is made again
// once; EC2 has not taken the token then.
func (s Service) createFleet(ctx context.Context, e event.Envelope, intent launchspec.Intent) (cloud.FleetResult, error) {
	if err := s.ensureTemplates(ctx, intent); err != nil {
		return cloud.FleetResult{}, err
	}
	if e.Expired(s.Now()) {
		return cloud.FleetResult{}, fault.F("launching intent "+intent.ID, fault.Stale, "the request expired while its templates were made")
	}
	result, err := s.EC2.CreateFleet(ctx, intent.Fleet)
	if cloud.Code(err) == codeTemplateNotFound {
		s.forgetTemplates(intent)
		if err := s.ensureTemplates(ctx, intent); err != nil {
			return cloud.FleetResult{}, err
		}
		if result, err = s.EC2.CreateFleet(ctx, intent.Fleet); cloud.Code(err) == codeTemplateNotFound {
			// It was made a moment ago: EC2 has not spread it yet.
			err = fault.E("finding the new launch template of intent "+intent.ID, fault.Retry, err)
		}
	}
	if err != nil {
		return cloud.FleetResult{}, fmt.Errorf("creating the fleet of intent %s: %w", intent.ID, err)
	}
	return result, nil
}

// checkIntent refuses an intent that is not what the request says, or that would
// launch for somebody else.
func (s Service) checkIntent(intent launchspec.Intent, b event.LaunchRequested) error {
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

// publishRefusal says that EC2 turned a request away: nothing was launched, and it has
// not taken the token. Everything that is not as definite is tried again, under
// the same token.
func (s Service) publishRefusal(ctx context.Context, e event.Envelope, intent launchspec.Intent, err error) error {
	host.Say(ctx, "refused", err.Error())
	return s.publishResult(ctx, e, intent, launchresult.FromError(intent, err))
}

// publishResult publishes an outcome, and counts why EC2 gave less than was wanted.
func (s Service) publishResult(ctx context.Context, e event.Envelope, intent launchspec.Intent, settled event.LaunchSettled) error {
	host.Say(ctx, "intent", intent.ID, "instances", len(settled.Instances), "refusals", len(settled.Refusals))
	if n := len(settled.Instances); n > 0 {
		s.addCount(InstancesLaunched, float64(n), intent.Fleet.CapacityType)
	}
	for _, r := range settled.Refusals {
		if r.Code == codeTemplateNotFound {
			s.forgetTemplates(intent)
		}
		s.addCount(LaunchesRefused, 1, launchresult.MetricCode(r.Code), intent.Fleet.CapacityType)
	}
	settled.Refusals = launchresult.MergeRefusals(settled.Refusals)
	s.Cache.storeResult(settled, s.Now())
	return s.publishFact(ctx, e, settled)
}

// codeInstanceTerminated is EC2's code for a token whose instance was launched and is
// terminated.
const codeInstanceTerminated = "IdempotentInstanceTerminated"

// errEmptyAnswer is an answer of EC2 that leaves open what became of a launch.
var errEmptyAnswer = errors.New("EC2 answered with neither instances nor errors")

// recoverLaunch looks for instances by the intent's tag after an answer that does not say
// what the token launched: EC2 knows the token with another body, or knows that its
// instance is terminated, or answers with neither instances nor errors. Only instances
// prove a launch.
func (s Service) recoverLaunch(ctx context.Context, e event.Envelope, intent launchspec.Intent, cause error) error {
	found, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{Tags: map[string]string{launchspec.IntentTag: intent.ID}})
	if err != nil {
		return fmt.Errorf("looking for the instances of intent %s: %w", intent.ID, err)
	}
	if len(found) > 0 {
		return s.publishResult(ctx, e, intent, launchresult.FromInstances(intent, found))
	}
	if cloud.Code(cause) == codeInstanceTerminated {
		return s.publishResult(ctx, e, intent, launchresult.FromTerminated(intent, cause))
	}
	return fault.E("creating the fleet of intent "+intent.ID, fault.Unknown, cause)
}
