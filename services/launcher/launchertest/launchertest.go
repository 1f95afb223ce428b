// Package launchertest proves that the launcher launches exactly once, whatever
// dies, comes twice or is not answered, before any EC2: the model itself, and the
// adapter over the wire to it.
//
// The idea: a behaviour delivers messages to a launcher as SQS does, one process
// after the other, and then counts instances in the model and facts on the bus.
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

// Environment is an EC2 to launch in, and the model that is behind it.
type Environment struct {
	EC2   cloud.Launcher
	Model *memcloud.Cloud
	World memcloud.World
	// Now is the model's clock, and Pass lets time pass on it.
	Now          func() time.Time
	AdvanceClock func(time.Duration)
}

// Run tries every behaviour, each on a subject of its own.
func Run(t *testing.T, subject func(t *testing.T) Environment) {
	t.Helper()
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			s := &testRun{Environment: subject(t), t: t}
			s.blobs = memblob.New(memblob.Options{Now: s.Now})
			b.run(s)
		})
	}
}

// cluster is who launches.
var cluster = event.Cluster{Name: "prod", UID: "uid"}

// testRun is one behaviour under way.
type testRun struct {
	Environment
	t     *testing.T
	blobs *memblob.Store

	mu        sync.Mutex
	published []event.Envelope
	// steps counts what the launcher does to the world; it dies at the step crashAt,
	// before or after doing it. Zero never dies.
	steps, crashAt int
	crashAfter     bool
	lastStep       string
}

// simulatedCrash is what a process that ends in the middle of something leaves: nothing.
type simulatedCrash struct{}

// runStep is one thing that the launcher does, around which it may die.
func (s *testRun) runStep(name string, do func() error) error {
	s.mu.Lock()
	s.steps++
	dies := s.steps == s.crashAt
	s.lastStep = name
	s.mu.Unlock()
	if dies && !s.crashAfter {
		panic(simulatedCrash{})
	}
	err := do()
	if dies {
		panic(simulatedCrash{})
	}
	return err
}

// steppedEC2 steps around the calls that launch.
type steppedEC2 struct {
	cloud.Launcher
	*testRun
}

func (e steppedEC2) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	return e.runStep("making the template", func() error { return e.Launcher.EnsureTemplate(ctx, t) })
}

func (e steppedEC2) CreateFleet(ctx context.Context, r cloud.FleetRequest) (out cloud.FleetResult, err error) {
	err = e.runStep("creating the fleet", func() error { out, err = e.Launcher.CreateFleet(ctx, r); return err })
	return out, err
}

// Send is the bus.
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

// deliverMessage hands a message to a new process, and reports whether that died.
func (s *testRun) deliverMessage(e event.Envelope) (died bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(simulatedCrash); !ours {
				panic(r)
			}
			died = true
		}
	}()
	service := launcher.Service{
		EC2: steppedEC2{s.EC2, s}, Blobs: s.blobs, Bus: s, Cluster: cluster, Now: s.Now, Cache: launcher.NewLaunchCache(launcher.Limits{}),
	}
	return false, service.Handle(s.t.Context(), e)
}

// newIntent asks for n on-demand m6i.large in any of the subnets.
func (s *testRun) newIntent(id string, n int, subnets ...cloud.Subnet) launchspec.Intent {
	if len(subnets) == 0 {
		subnets = s.World.Subnets
	}
	tags := map[string]string{"kubernetes.io/cluster/prod": "owned", "karpenter.sh/nodepool": "default", launchspec.IntentTag: id}
	config := cloud.FleetConfig{Template: "template-" + id}
	for _, subnet := range subnets {
		config.Overrides = append(config.Overrides, cloud.Override{InstanceType: "m6i.large", SubnetID: subnet.ID, Zone: subnet.Zone})
	}
	out := launchspec.Intent{
		ID: id, Cluster: cluster.Name, NodePool: "default", NodeClass: "default",
		Templates: []cloud.Template{{
			Name: "template-" + id, ImageID: s.World.ImageAMD64.ID, InstanceProfile: s.World.Profile,
			SecurityGroups: []string{s.World.SecurityGroup.ID}, Tags: tags,
			Metadata: cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
		}},
		Fleet: cloud.FleetRequest{
			Token: id, Count: n, CapacityType: cloud.OnDemand, Strategy: "lowest-price",
			Configs: []cloud.FleetConfig{config}, TagSets: []cloud.TagSet{{Resource: "instance", Tags: tags}},
		},
	}
	for slot := range n {
		out.Claims = append(out.Claims, launchspec.ClaimName("default", id, slot))
	}
	return out
}

// launchRequest stores the intent and makes what lifecycle would send, now.
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

// handleMessage delivers a message that must be dealt with.
func (s *testRun) handleMessage(e event.Envelope) {
	s.t.Helper()
	died, err := s.deliverMessage(e)
	if died {
		err = errors.New("the process died")
	}
	s.requireNoError(err)
}

// launchedIDs are the ids of the instances that there truly are of an intent.
func (s *testRun) launchedIDs(intent string) map[string]bool {
	out := map[string]bool{}
	for _, r := range s.Model.Records() {
		if r.Tags[launchspec.IntentTag] == intent {
			out[r.ID] = true
		}
	}
	return out
}

// requireLaunchedOnce says that an intent has n instances, and that every fact that was said of
// it is the same and names them all.
func (s *testRun) requireLaunchedOnce(intent string, n int) event.LaunchSettled {
	s.t.Helper()
	there := s.launchedIDs(intent)
	if len(there) != n {
		s.t.Fatalf("%d instances of intent %s, want %d", len(there), intent, n)
	}
	if len(s.published) == 0 {
		s.t.Fatal("nothing was said")
	}
	var body event.LaunchSettled
	for _, e := range s.published {
		var err error
		body, err = event.As[event.LaunchSettled](e)
		s.requireNoError(err)
		if e.ID != s.published[0].ID {
			s.t.Fatalf("two different facts: %s and %s", s.published[0].Data, e.Data)
		}
	}
	for _, i := range body.Instances {
		if !there[i.InstanceID] {
			s.t.Fatalf("%s was said and is not there", i.InstanceID)
		}
	}
	if len(body.Instances) != n {
		s.t.Fatalf("%d instances were said, and there are %d", len(body.Instances), n)
	}
	return body
}

func (s *testRun) requireNoFacts() {
	s.t.Helper()
	if len(s.published) > 0 {
		s.t.Fatalf("it was said: %s", s.published[0].Data)
	}
}

func stepName(after bool, step string) string {
	if after {
		return "after " + step
	}
	return "before " + step
}
