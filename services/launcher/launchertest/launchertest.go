// Package launchertest tests that the launcher launches exactly once despite crashes, duplicates
// and lost answers. It runs with the model of EC2, and with the adapter that calls the model over
// HTTP.
//
// Each behaviour delivers messages to launcher processes as SQS does, and then counts the instances
// in the model and the facts on the bus.
package launchertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Environment is an EC2 and the model that implements it.
type Environment struct {
	EC2   cloud.Launcher
	Model *memcloud.Cloud
	World memcloud.World
	// Now is the model's clock, and AdvanceClock advances it.
	Now          func() time.Time
	AdvanceClock func(time.Duration)
}

// Run tests each behaviour in a new environment.
func Run(t *testing.T, newEnvironment func(t *testing.T) Environment) {
	t.Helper()
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			s := &testRun{Environment: newEnvironment(t), t: t}
			s.blobs = memblob.New(memblob.Options{Now: s.Now})
			b.run(s)
		})
	}
}

var cluster = event.Cluster{Name: "prod", UID: "uid"}

// testRun is the state of one behaviour.
type testRun struct {
	Environment
	t     *testing.T
	blobs *memblob.Store

	mu        sync.Mutex
	published []event.Envelope
	// steps counts the launcher's external calls. The launcher crashes before or after the
	// step crashAt; zero means never.
	steps, crashAt int
	crashAfter     bool
	lastStep       string
}

// simulatedCrash is the panic that ends a launcher process.
type simulatedCrash struct{}

// runStep makes an external call of the launcher and may crash before or after it.
func (s *testRun) runStep(name string, do func() error) error {
	s.mu.Lock()
	s.steps++
	crashes := s.steps == s.crashAt
	s.lastStep = name
	s.mu.Unlock()
	if crashes && !s.crashAfter {
		panic(simulatedCrash{})
	}
	err := do()
	if crashes {
		panic(simulatedCrash{})
	}
	return err
}

// steppedEC2 makes the calls of a launch as steps.
type steppedEC2 struct {
	cloud.Launcher
	*testRun
}

func (e steppedEC2) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	return e.runStep("creating the launch template", func() error { return e.Launcher.EnsureTemplate(ctx, t) })
}

func (e steppedEC2) CreateFleet(ctx context.Context, r cloud.FleetRequest) (out cloud.FleetResult, err error) {
	err = e.runStep("creating the fleet", func() error { out, err = e.Launcher.CreateFleet(ctx, r); return err })
	return out, err
}

// Send acts as the bus.
func (s *testRun) Send(_ context.Context, messages ...queue.Outgoing) error {
	return s.runStep("publishing", func() error {
		for _, m := range messages {
			e, err := event.Decode(m.Body)
			if err != nil {
				return err
			}
			s.mu.Lock()
			s.published = append(s.published, e)
			s.mu.Unlock()
		}
		return nil
	})
}

// deliverMessage delivers a message to a new launcher process and reports whether it crashed.
func (s *testRun) deliverMessage(e event.Envelope) (crashed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, simulated := r.(simulatedCrash); !simulated {
				panic(r)
			}
			crashed = true
		}
	}()
	service := launcher.Service{
		EC2: steppedEC2{s.EC2, s}, Blobs: s.blobs, Bus: s, Cluster: cluster, Now: s.Now, Cache: launcher.NewLaunchCache(launcher.Limits{}),
	}
	return false, service.Handle(s.t.Context(), e)
}

// newIntent returns an intent for n on-demand m6i.large in any of the subnets.
func (s *testRun) newIntent(id string, n int, subnets ...cloud.Subnet) launchspec.Intent {
	options := IntentOptions{Cluster: cluster.Name, ID: id, Count: n}.In(s.World)
	if len(subnets) > 0 {
		options.Subnets = subnets
	}
	return NewIntent(options)
}

// launchRequest stores the intent and returns lifecycle's request to launch it.
func (s *testRun) launchRequest(intent launchspec.Intent) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.Now(), launchspec.Kind, intent)
	s.requireNoError(err)
	body := event.LaunchRequested{Intent: intent.ID, IntentRef: ref, Claims: len(intent.Claims)}
	e, err := event.Maker{Service: "lifecycle", Cluster: cluster}.New(s.Now(), body, nil)
	s.requireNoError(err)
	return e
}

func (s *testRun) requireNoError(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// handleMessage delivers a message that must succeed.
func (s *testRun) handleMessage(e event.Envelope) {
	s.t.Helper()
	crashed, err := s.deliverMessage(e)
	if crashed {
		err = errors.New("the process crashed")
	}
	s.requireNoError(err)
}

// launchedIDs returns the ids of the intent's instances in the model.
func (s *testRun) launchedIDs(intent string) map[string]bool {
	out := map[string]bool{}
	for _, r := range s.Model.Records() {
		if r.Tags[launchspec.IntentTag] == intent {
			out[r.ID] = true
		}
	}
	return out
}

// requireLaunchedOnce requires that the intent has n instances, and that all published
// facts are equal and name them.
func (s *testRun) requireLaunchedOnce(intent string, n int) event.LaunchSettled {
	s.t.Helper()
	launched := s.launchedIDs(intent)
	if len(launched) != n {
		s.t.Fatalf("%d instances of intent %s, want %d", len(launched), intent, n)
	}
	if len(s.published) == 0 {
		s.t.Fatal("no event was published")
	}
	var body event.LaunchSettled
	for _, e := range s.published {
		var err error
		body, err = event.DecodeBody[event.LaunchSettled](e)
		s.requireNoError(err)
		if e.ID != s.published[0].ID {
			s.t.Fatalf("two different events: %s and %s", s.published[0].Data, e.Data)
		}
	}
	for _, i := range body.Instances {
		if !launched[i.InstanceID] {
			s.t.Fatalf("the published instance %s does not exist", i.InstanceID)
		}
	}
	if len(body.Instances) != n {
		s.t.Fatalf("%d instances were published, want %d", len(body.Instances), n)
	}
	return body
}

func (s *testRun) requireNoFacts() {
	s.t.Helper()
	if len(s.published) > 0 {
		s.t.Fatalf("an event was published: %s", s.published[0].Data)
	}
}

func stepName(after bool, step string) string {
	if after {
		return "after " + step
	}
	return "before " + step
}
