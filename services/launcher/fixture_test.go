package launcher_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// fakeBus records the published facts, or fails with err.
type fakeBus struct {
	published []event.Envelope
	err       error
}

func (b *fakeBus) Send(_ context.Context, messages ...queue.Outgoing) error {
	if b.err != nil {
		return b.err
	}
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.published = append(b.published, e)
	}
	return nil
}

// fixture is a launcher with a model of an AWS account.
type fixture struct {
	*memcloud.Cloud
	memcloud.World
	t       *testing.T
	service launcher.Service
	blobs   *memblob.Store
	bus     *fakeBus
	now     time.Time
	// counts has the counters with their labels.
	counts []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{t: t, bus: &fakeBus{}, now: noon}
	clock := func() time.Time { return s.now }
	s.Cloud = memcloud.New(memcloud.Options{Now: clock, RateDivisor: -1})
	s.World = s.Furnish("prod")
	s.blobs = memblob.New(memblob.Options{Now: clock})
	s.service = launcher.Service{
		EC2: s.Cloud, DryRun: s.Cloud, Profiles: s.Cloud, Cache: launcher.NewLaunchCache(launcher.Limits{}), Blobs: s.blobs, Bus: s.bus, Cluster: event.Cluster{Name: "prod", UID: "uid"}, Now: clock,
		Metrics: func(m metric.Metric, value float64, labels ...string) {
			words := append([]string{m.Name}, labels...)
			if value != 1 {
				words = append(words, strconv.FormatFloat(value, 'g', -1, 64))
			}
			s.counts = append(s.counts, strings.Join(words, " "))
		},
	}
	return s
}

func (s *fixture) advanceClock(d time.Duration) {
	s.now = s.now.Add(d)
	s.Advance()
}

// newIntent returns an intent for n on-demand m6i.large in any zone.
func (s *fixture) newIntent(id string, n int) launchspec.Intent {
	return launchertest.NewIntent(launchertest.IntentOptions{Cluster: "prod", ID: id, Count: n}.In(s.World))
}

// claimName returns the name of the claim in a slot of an intent, as the planner names it.
func claimName(intent string, slot int) string { return launchspec.ClaimName("default", intent, slot) }

// newMessage returns a message of lifecycle.
func (s *fixture) newMessage(body event.Body) event.Envelope {
	s.t.Helper()
	e, err := event.Maker{Service: "lifecycle", Cluster: s.service.Cluster}.New(s.now, body, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// launchRequest stores the intent and returns the request to launch it.
func (s *fixture) launchRequest(intent launchspec.Intent) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, launchspec.Kind, intent)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.newMessage(event.LaunchRequested{Intent: intent.ID, IntentRef: ref, Claims: len(intent.Claims)})
}

// handleMessage handles a message and requires an error of the kind; "" means none.
func (s *fixture) handleMessage(e event.Envelope, want fault.Kind) {
	s.t.Helper()
	if err := s.service.Handle(s.t.Context(), e); fault.KindOf(err) != want {
		s.t.Fatalf("handling %s: got an error of kind %q (%v), want %q", e.Type, fault.KindOf(err), err, want)
	}
}

// nextResult removes the next fact, which must be the result of a launch.
func (s *fixture) nextResult() event.LaunchSettled {
	s.t.Helper()
	return nextFact[event.LaunchSettled](s)
}

// nextFact removes the next fact from the bus.
func nextFact[T event.Body](s *fixture) T {
	s.t.Helper()
	if len(s.bus.published) == 0 {
		s.t.Fatal("no event was published")
	}
	e := s.bus.published[0]
	s.bus.published = s.bus.published[1:]
	body, err := event.DecodeBody[T](e)
	if err != nil {
		s.t.Fatal(err)
	}
	return body
}

func (s *fixture) requireNoFacts() {
	s.t.Helper()
	if len(s.bus.published) > 0 {
		s.t.Fatalf("%s was published", s.bus.published[0].Data)
	}
}

// launchInstance launches one instance and returns its ID.
func (s *fixture) launchInstance(id string) string {
	s.t.Helper()
	s.handleMessage(s.launchRequest(s.newIntent(id, 1)), "")
	return s.nextResult().Instances[0].InstanceID
}
