// Package launcher writes EC2 and decides nothing: it obeys intents that a
// thinker wrote and lifecycle let through the door.
//
// The invariants:
//
//   - An intent is read by digest and launched under a ClientToken that is its
//     id, so any number of requests is one launch.
//   - Only a definite outcome is published. After an unknown one the same
//     request is made again under the same token until the message expires.
//   - Nothing is terminated, tagged or deleted that does not carry the cluster's
//     tags, whoever asks.
//   - A flood is stopped before EC2 sees it, and nothing of it is lost.
package launcher

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the messages that the launcher takes.
var Types = []event.Type{
	event.LaunchRequestedType, event.TerminateRequestedType, event.TagRequestedType, event.NodeClassEnsureType, event.TickType,
}

// TemplateAge is how long a launch template is kept after its creation:
// many times the life of a launch request, so that none in flight names it.
const TemplateAge = time.Hour

// Service is the launcher over its ports.
type Service struct {
	EC2 cloud.Launcher
	// DryRun makes dry runs; nil makes none.
	DryRun cloud.Rehearsal
	// Profiles is nil where the launcher may not write IAM.
	Profiles cloud.Profiles
	Blobs    blob.Store
	Bus      queue.Sender
	Cluster  event.Cluster
	Now      func() time.Time
	// TemplateAge replaces the constant where it is positive.
	TemplateAge time.Duration
	// Cache may be nil: then nothing is remembered between messages.
	Cache *LaunchCache
	// Count counts what happened, how often, with labels; nil counts nothing.
	Count func(what LaunchCounter, value float64, labels ...string)
}

// LaunchCounter is something that somebody may want to see, or to be woken for.
type LaunchCounter string

// What is counted, with its labels in brackets.
const (
	// LaunchesStopped is a request that the breaker held back [the kind of its error].
	LaunchesStopped LaunchCounter = "stopped"
	// LaunchesRefused is a reason of EC2's for less than was wanted [its code, the capacity type].
	LaunchesRefused LaunchCounter = "refused"
	// ForeignSkipped is something foreign that was left alone [instance or profile].
	ForeignSkipped LaunchCounter = "spared"
	// InstancesLaunched are instances that EC2 named in an answer [capacity type].
	InstancesLaunched LaunchCounter = "launched"
	// InstancesTerminated is an instance that EC2 was told to end.
	InstancesTerminated LaunchCounter = "ended"
)

// Handle obeys one message.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	switch e.Type {
	case event.LaunchRequestedType:
		return host.Body(ctx, s.launchIntent, e)
	case event.TerminateRequestedType:
		return host.Body(ctx, s.terminateInstance, e)
	case event.TagRequestedType:
		return host.Body(ctx, s.tagInstance, e)
	case event.NodeClassEnsureType:
		return host.Body(ctx, s.ensureNodeClass, e)
	case event.TickType:
		return host.Body(ctx, s.handleTick, e)
	default:
		return fault.F("handling "+string(e.Type), fault.Poison, "the launcher does not know the type")
	}
}

// publishFact says a fact that e caused.
func (s Service) publishFact(ctx context.Context, e event.Envelope, body event.Body) error {
	maker := event.Maker{Service: "launcher", Cluster: s.Cluster}
	fact, err := maker.New(s.Now(), body, &e)
	if err != nil {
		return err
	}
	if err := queue.Publish(ctx, s.Bus, fact); err != nil {
		return fmt.Errorf("publishing %s: %w", fact.Type, err)
	}
	return nil
}

// addCount counts, where somebody listens.
func (s Service) addCount(what LaunchCounter, value float64, labels ...string) {
	if s.Count != nil {
		s.Count(what, value, labels...)
	}
}

// ownerTag is the tag by which AWS and Joist know a cluster's resources.
func (s Service) ownerTag() (key, value string) {
	return "kubernetes.io/cluster/" + s.Cluster.Name, "owned"
}
