package launcher_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/services/launcher/internal/batch"
	"github.com/joist-autoscaler/joist/services/launcher/internal/ratelimit"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// launchStorm is a launcher as main builds it, polling a queue, with an EC2 that allows a
// quarter of the documented rates. It also acts as lifecycle: it repeats requests every
// 30 s until there is a result, and replaces failed intents by new ones.
type launchStorm struct {
	*fixture
	queue *memqueue.Queue

	mu sync.Mutex
	// open has the intents without a result; intents counts all of them.
	open    map[string]event.Ref
	intents int
	bound   map[string]string
	wanted  int
}

// TestLaunchStormWithErrors launches 1,000 nodes while 30 % of the launches find no capacity,
// answers are lost, messages are duplicated, and EC2's buckets are a quarter of the
// documented ones. No instance is launched twice or orphaned, and the launches take little
// longer than the bucket requires.
func TestLaunchStormWithErrors(t *testing.T) {
	const nodes, divisor = 1000, 4
	// The process creates the encoder of documents once, which must not happen inside the
	// first bubble.
	warm := newFixture(t)
	warm.handleMessage(warm.launchRequest(warm.newIntent("warm", 1)), "")
	for _, test := range []struct {
		name  string
		share float64
		// slack limits the duration relative to the minimum of the bucket, and throttled is
		// the maximum share of throttled calls.
		slack, throttled float64
	}{
		{"configured quarter", 1.0 / divisor, 1.2, 0.005},
		{"adapted quarter", 1, 1.3, 0.1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLaunchStorm(t, nodes, divisor)
				took := s.runUntilBound(test.share)
				s.checkInstances()
				calls := s.Counts()[memcloud.CreateFleet]
				// Each intent needs a token of a bucket that refills with 2/4 a second.
				least := float64(s.intents-1) / (2.0 / divisor)
				t.Logf("%d nodes by %d intents in %s (the bucket's minimum is %.0f s); %d calls, %d of them throttled",
					nodes, s.intents, took.Round(time.Second), least, calls.Calls, calls.Throttled)
				if took.Seconds() > least*test.slack {
					t.Errorf("it took %s; the bucket's minimum is %.0f s", took, least)
				}
				if float64(calls.Throttled) > test.throttled*float64(calls.Calls) {
					t.Errorf("%d of %d calls were throttled", calls.Throttled, calls.Calls)
				}
			})
		})
	}
}

func newLaunchStorm(t *testing.T, nodes, divisor int) *launchStorm {
	t.Helper()
	s := &launchStorm{fixture: &fixture{t: t, bus: &fakeBus{}}, open: map[string]event.Ref{}, bound: map[string]string{}, wanted: nodes}
	s.Cloud = memcloud.New(memcloud.Options{
		Now: time.Now, Seed: 1, RateDivisor: float64(divisor),
		Faults: memcloud.Faults{Shortage: 0.3, LostAnswer: 0.01, LostCall: 0.01, Lag: 30 * time.Second},
	})
	s.World = s.Furnish("prod")
	s.blobs = memblob.New(memblob.Options{Now: time.Now})
	broker := memqueue.New(memqueue.Options{Now: time.Now, Seed: 1, Faults: memqueue.Faults{Duplicate: 0.05}, Idle: func(ctx context.Context, until time.Time) error {
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Until(until), time.Second)):
		}
		return ctx.Err()
	}})
	s.queue = broker.Queue("launcher", memqueue.QueueOptions{MaxReceives: 1000})
	return s
}

// runUntilBound requests all nodes and waits until each has an instance.
func (s *launchStorm) runUntilBound(share float64) time.Duration {
	ec2 := ratelimit.New(share).ForCluster("prod", s.Cloud)
	service := launcher.Service{
		EC2: batch.New(ec2, time.Minute), DryRun: ec2, Blobs: s.blobs, Bus: s, Cluster: event.Cluster{Name: "prod", UID: "uid"},
		Now: time.Now, Cache: launcher.NewLaunchCache(launcher.Limits{}),
	}
	s.service = service
	worker := host.Worker{
		Service: "launcher", Queue: s.queue, Dead: s.queue, Now: time.Now,
		Handle: host.NewEventHandler(host.EnvelopeFilter{Cluster: service.Cluster, Types: launcher.Types, Now: time.Now}, service.Handle),
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := host.Poll(ctx, worker, host.Options{MaxConcurrent: 50}); err != nil {
			s.t.Error(err)
		}
	})
	began := time.Now()
	for range s.wanted {
		s.addIntent()
	}
	for s.countBound() < s.wanted && time.Since(began) < 4*time.Hour {
		s.sendOpenIntents()
		time.Sleep(30 * time.Second)
	}
	took := time.Since(began)
	cancel()
	group.Wait()
	return took
}

// addIntent stores a new intent for one node and one offering.
func (s *launchStorm) addIntent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("intent-%04d", s.intents)
	intent := s.newIntent(id, 1)
	intent.Templates[0].Name = "template"
	intent.Fleet.Configs[0].Template = "template"
	intent.Fleet.Configs[0].Overrides = intent.Fleet.Configs[0].Overrides[s.intents%2:][:1]
	s.intents++
	ref, err := blob.Put(s.t.Context(), s.blobs, time.Now(), launchspec.Kind, intent)
	if err != nil {
		s.t.Fatal(err)
	}
	s.open[id] = ref
}

// sendOpenIntents repeats the requests without a result.
func (s *launchStorm) sendOpenIntents() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ref := range s.open {
		e, err := event.Maker{Service: "lifecycle", Cluster: s.service.Cluster}.New(time.Now(), event.LaunchRequested{Intent: id, IntentRef: ref, Claims: 1}, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := e.Encode()
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.queue.Send(s.t.Context(), queue.Outgoing{Type: string(e.Type), Body: body}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Send acts as the bus and as lifecycle: it binds the instances, or adds a new intent.
func (s *launchStorm) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		settled, err := event.DecodeBody[event.LaunchSettled](e)
		if err != nil {
			return err
		}
		if s.recordResult(settled) {
			s.addIntent()
		}
	}
	return nil
}

// recordResult records a result and reports whether another launch is needed.
func (s *launchStorm) recordResult(settled event.LaunchSettled) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, isOpen := s.open[settled.Intent]
	delete(s.open, settled.Intent)
	for _, i := range settled.Instances {
		if other, taken := s.bound[i.InstanceID]; taken && other != settled.Intent {
			s.t.Errorf("instance %s belongs to the intents %s and %s", i.InstanceID, other, settled.Intent)
		}
		s.bound[i.InstanceID] = settled.Intent
	}
	return isOpen && len(settled.Instances) == 0
}

func (s *launchStorm) countBound() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bound)
}

// checkInstances requires that each intent has at most one instance in EC2, and that each
// instance was published.
func (s *launchStorm) checkInstances() {
	s.t.Helper()
	records := s.Records()
	if len(records) != s.wanted {
		s.t.Errorf("%d instances were launched for %d nodes", len(records), s.wanted)
	}
	seen := map[string]bool{}
	for _, r := range records {
		intent := r.Tags[launchspec.IntentTag]
		if seen[intent] {
			s.t.Errorf("intent %s has two instances", intent)
		}
		seen[intent] = true
		if s.bound[r.ID] != intent {
			s.t.Errorf("instance %s of intent %s was not published", r.ID, intent)
		}
	}
}
