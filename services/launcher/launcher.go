// Package launcher launches, tags and terminates EC2 instances and makes no
// decisions: it executes intents that lifecycle admitted.
//
//   - An intent is read by digest and launched with its id as the ClientToken, so
//     repeated requests are one launch.
//   - Only a definite result is published. After an unknown one, the request is
//     retried with the same token until the message expires.
//   - Only resources with the cluster's tags are terminated, tagged or deleted.
//   - The breaker stops too many launches before they reach EC2. Their messages stay
//     in the queue.
package launcher

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the message types that the launcher consumes.
var Types = []event.Type{
	event.LaunchRequestedType, event.TerminateRequestedType, event.RebootRequestedType, event.TagRequestedType, event.NodeClassEnsureType, event.TickType,
}

// TemplateAge is the default age at which a launch template is deleted. It is much
// longer than a launch request is valid, so that no request in flight names a deleted
// template.
const TemplateAge = time.Hour

// Service handles the launcher's messages.
type Service struct {
	EC2 cloud.Launcher
	// DryRun makes dry runs; nil disables them.
	DryRun cloud.DryRunner
	// Profiles is nil if the launcher has no permissions for IAM.
	Profiles cloud.Profiles
	Blobs    blob.Store
	Bus      queue.Sender
	Cluster  event.Cluster
	Now      func() time.Time
	// TemplateAge overrides the constant if it is positive.
	TemplateAge time.Duration
	// Cache is shared by all messages of the process; nil disables caching.
	Cache   *LaunchCache
	Metrics metric.Recorder
}

// Handle handles one message. A type that is not in Types is fault.Poison.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	switch e.Type {
	case event.LaunchRequestedType:
		return host.HandleBody(ctx, s.launchIntent, e)
	case event.TerminateRequestedType:
		return host.HandleBody(ctx, s.terminateInstance, e)
	case event.RebootRequestedType:
		return host.HandleBody(ctx, s.rebootInstance, e)
	case event.TagRequestedType:
		return host.HandleBody(ctx, s.tagInstance, e)
	case event.NodeClassEnsureType:
		return host.HandleBody(ctx, s.ensureNodeClass, e)
	case event.TickType:
		return host.HandleBody(ctx, s.handleTick, e)
	default:
		return fault.F("handling "+string(e.Type), fault.Poison, "the launcher does not handle this type")
	}
}

// publishFact publishes a fact with e as its cause.
func (s Service) publishFact(ctx context.Context, e event.Envelope, body event.Body) error {
	return queue.PublishBody(ctx, s.Bus, event.Maker{Service: "launcher", Cluster: s.Cluster}, s.Now(), body, &e)
}

// ownerTag returns the tag of all resources of the cluster.
func (s Service) ownerTag() (key, value string) {
	return "kubernetes.io/cluster/" + s.Cluster.Name, "owned"
}
