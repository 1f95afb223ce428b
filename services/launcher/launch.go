package launcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/launcher/internal/launchresult"
	"github.com/joist-autoscaler/joist/services/launcher/internal/owner"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// launchIntent launches one intent and publishes the result. The launch templates must
// exist before the fleet names them, and the fact is published before the host deletes
// the message.
func (s Service) launchIntent(ctx context.Context, e event.Envelope, b event.LaunchRequested) error {
	intent, err := blob.Get[launchspec.Intent](ctx, s.Blobs, b.IntentRef)
	if err != nil {
		return fmt.Errorf("reading intent %s: %w", b.Intent, err)
	}
	if err := s.checkIntent(intent, b); err != nil {
		return err
	}
	cached, release, err := s.Cache.reserveIntent(intent.ID)
	if err != nil {
		return err
	}
	defer release()
	if cached != nil {
		return s.publishFact(ctx, e, *cached)
	}
	if err := s.Cache.allowLaunch(s.Now(), intent.ID, intent.Fleet.Count); err != nil {
		s.Metrics.Record(metric.LaunchesPaused, 1, string(fault.KindOf(err)))
		return err
	}
	answer, err := s.createFleet(ctx, e, intent)
	switch {
	case fault.Is(err, fault.Conflict):
		return s.recoverLaunch(ctx, e, intent, err)
	case fault.Is(err, fault.Denied, fault.Invalid, fault.Missing):
		return s.publishRefusal(ctx, e, intent, err)
	case err != nil:
		return err
	}
	result, ok := launchresult.FromFleet(intent, answer)
	if !ok {
		return s.recoverLaunch(ctx, e, intent, errEmptyAnswer)
	}
	return s.publishResult(ctx, e, intent, result)
}

// createFleet creates the launch templates and the fleet. If EC2 does not find a template that
// existed before, for example because it was just deleted, createFleet creates it again and repeats
// the call once: EC2 has not used the token in that case.
func (s Service) createFleet(ctx context.Context, e event.Envelope, intent launchspec.Intent) (cloud.FleetResult, error) {
	if err := s.ensureTemplates(ctx, intent); err != nil {
		return cloud.FleetResult{}, err
	}
	if e.HasExpired(s.Now()) {
		return cloud.FleetResult{}, fault.F("launching intent "+intent.ID, fault.Stale, "the request expired while its launch templates were created")
	}
	result, err := s.EC2.CreateFleet(ctx, intent.Fleet)
	if cloud.Code(err) == codeTemplateNotFound {
		s.forgetTemplates(intent)
		if err := s.ensureTemplates(ctx, intent); err != nil {
			return cloud.FleetResult{}, err
		}
		if result, err = s.EC2.CreateFleet(ctx, intent.Fleet); cloud.Code(err) == codeTemplateNotFound {
			// EC2 is eventually consistent: the new template is not visible yet.
			err = fault.E("finding the new launch template of intent "+intent.ID, fault.Retry, err)
		}
	}
	if err != nil {
		return cloud.FleetResult{}, fmt.Errorf("creating the fleet of intent %s: %w", intent.ID, err)
	}
	return result, nil
}

// checkIntent returns fault.Poison for an intent that differs from the request, or
// whose instances would not belong to this cluster and to its NodeClaims.
func (s Service) checkIntent(intent launchspec.Intent, b event.LaunchRequested) error {
	poison := func(format string, args ...any) error {
		return fault.F("checking intent "+b.Intent, fault.Poison, format, args...)
	}
	key, value := s.ownerTag()
	switch {
	case intent.ID != b.Intent || intent.Fleet.Token != b.Intent:
		return poison("the document has intent %q with token %q", intent.ID, intent.Fleet.Token)
	case intent.Cluster != s.Cluster.Name:
		return poison("it belongs to cluster %q, and this launcher serves %q", intent.Cluster, s.Cluster.Name)
	case len(intent.Claims) != b.Claims || intent.Fleet.Count != b.Claims:
		return poison("%d claims were admitted, but the intent has %d claims and %d instances", b.Claims, len(intent.Claims), intent.Fleet.Count)
	}
	for _, set := range intent.Fleet.TagSets {
		pool, tagged := set.Tags[karpenter.NodePoolTagKey]
		if tagged && set.Resource == "instance" && set.Tags[key] == value && set.Tags[launchspec.IntentTag] == intent.ID {
			for _, claim := range intent.Claims {
				if !owner.IntentHasClaim(pool, intent.ID, claim) {
					return poison("its id and its NodePool tag do not match NodeClaim %s, whose instance could never be terminated", claim)
				}
			}
			return nil
		}
	}
	// The launcher could not terminate an instance without these tags: see describeOwned.
	return poison("its instances would not have the tags %s=%s, %s and %s", key, value, launchspec.IntentTag, karpenter.NodePoolTagKey)
}

// publishRefusal publishes that EC2 rejected the request before it used the token: nothing was
// launched. Errors that are not definite are retried with the same token.
func (s Service) publishRefusal(ctx context.Context, e event.Envelope, intent launchspec.Intent, err error) error {
	host.AddLogFields(ctx, "refused", err.Error())
	return s.publishResult(ctx, e, intent, launchresult.FromError(intent, err))
}

// publishResult counts, caches and publishes the result of a launch.
func (s Service) publishResult(ctx context.Context, e event.Envelope, intent launchspec.Intent, result event.LaunchSettled) error {
	host.AddLogFields(ctx, "intent", intent.ID, "instances", len(result.Instances), "refusals", len(result.Refusals))
	if n := len(result.Instances); n > 0 {
		s.Metrics.Record(metric.InstancesLaunched, float64(n), intent.Fleet.CapacityType)
	}
	for _, r := range result.Refusals {
		if r.Code == codeTemplateNotFound {
			s.forgetTemplates(intent)
		}
		s.Metrics.Record(metric.LaunchErrors, 1, launchresult.MetricCode(r.Code), intent.Fleet.CapacityType)
	}
	result.Refusals = launchresult.MergeRefusals(result.Refusals)
	s.Cache.storeResult(result)
	return s.publishFact(ctx, e, result)
}

// codeInstanceTerminated is EC2's error code for a token whose instance is terminated.
const codeInstanceTerminated = "IdempotentInstanceTerminated"

// errEmptyAnswer means that it is unknown whether EC2 launched instances.
var errEmptyAnswer = errors.New("EC2 answered with neither instances nor errors")

// recoverLaunch looks for instances by the intent's tag and publishes the result. It is called if
// EC2's answer does not determine what the token launched: the token was used with other
// parameters, its instance is terminated, or the answer has neither instances nor errors. Only
// instances prove a launch; without them the error is fault.Unknown.
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
