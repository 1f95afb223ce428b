package launcher_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// bus remembers the facts that were said, or fails.
type bus struct {
	said []event.Envelope
	err  error
}

func (b *bus) Send(_ context.Context, messages ...queue.Outgoing) error {
	if b.err != nil {
		return b.err
	}
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.said = append(b.said, e)
	}
	return nil
}

// site is a launcher before a modelled account.
type site struct {
	*memcloud.Cloud
	memcloud.World
	t     *testing.T
	svc   launcher.Service
	blobs *memblob.Store
	bus   *bus
	now   time.Time
	// counted are metrics with their labels.
	counted []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, bus: &bus{}, now: noon}
	clock := func() time.Time { return s.now }
	s.Cloud = memcloud.New(memcloud.Options{Now: clock, RateDivisor: -1})
	s.World = s.Furnish("prod")
	s.blobs = memblob.New(memblob.Options{Now: clock})
	s.svc = launcher.Service{
		EC2: s.Cloud, Rehearsal: s.Cloud, Profiles: s.Cloud, Memory: launcher.NewMemory(launcher.Limits{}), Blobs: s.blobs, Bus: s.bus, Cluster: event.Cluster{Name: "prod", UID: "uid"}, Now: clock,
		Count: func(what launcher.Counted, value float64, labels ...string) {
			words := append([]string{string(what)}, labels...)
			if value != 1 {
				words = append(words, strconv.FormatFloat(value, 'g', -1, 64))
			}
			s.counted = append(s.counted, strings.Join(words, " "))
		},
	}
	return s
}

func (s *site) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.Advance()
}

// tags are those that every instance of ours carries.
func tags(intent string) map[string]string {
	return map[string]string{"kubernetes.io/cluster/prod": "owned", "karpenter.sh/nodepool": "default", launchspec.IntentTag: intent}
}

// intent asks for n on-demand m6i.large in any zone.
func (s *site) intent(id string, n int) launchspec.Intent {
	config := cloud.FleetConfig{Template: "template-" + id}
	for _, subnet := range s.Subnets {
		config.Overrides = append(config.Overrides, cloud.Override{InstanceType: "m6i.large", SubnetID: subnet.ID, Zone: subnet.Zone})
	}
	out := launchspec.Intent{
		ID: id, Cluster: "prod", NodePool: "default", NodeClass: "default",
		Templates: []cloud.Template{{
			Name: "template-" + id, ImageID: s.ImageAMD64.ID, InstanceProfile: s.World.Profile, SecurityGroups: []string{s.SecurityGroup.ID},
			Tags: tags(id),
		}},
		Fleet: cloud.FleetRequest{
			Token: id, Count: n, CapacityType: cloud.OnDemand, Strategy: "lowest-price", Configs: []cloud.FleetConfig{config},
			TagSets: []cloud.TagSet{{Resource: "instance", Tags: tags(id)}},
		},
	}
	for i := range n {
		out.Claims = append(out.Claims, claimOf(id, i))
	}
	return out
}

// claimOf names the claim in a slot of an intent, as the planner does.
func claimOf(intent string, slot int) string { return launchspec.ClaimName("default", intent, slot) }

// message makes what lifecycle would send, now.
func (s *site) message(body event.Body) event.Envelope {
	s.t.Helper()
	e, err := event.Maker{Service: "lifecycle", Cluster: s.svc.Cluster}.New(s.now, body, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// request stores the intent and asks for it.
func (s *site) request(intent launchspec.Intent) event.Envelope {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, launchspec.Kind, intent)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.message(event.LaunchRequested{Intent: intent.ID, IntentRef: ref, Claims: len(intent.Claims)})
}

// handle obeys a message and expects an error of the kind, "" for none.
func (s *site) handle(e event.Envelope, want fault.Kind) {
	s.t.Helper()
	if err := s.svc.Handle(s.t.Context(), e); fault.KindOf(err) != want {
		s.t.Fatalf("handling %s: %q (%v), want %q", e.Type, fault.KindOf(err), err, want)
	}
}

// settled takes the next fact, which has to be a settled launch.
func (s *site) settled() event.LaunchSettled {
	s.t.Helper()
	return fact[event.LaunchSettled](s)
}

// fact takes the next fact off the bus.
func fact[T event.Body](s *site) T {
	s.t.Helper()
	if len(s.bus.said) == 0 {
		s.t.Fatal("nothing was said")
	}
	e := s.bus.said[0]
	s.bus.said = s.bus.said[1:]
	body, err := event.As[T](e)
	if err != nil {
		s.t.Fatal(err)
	}
	return body
}

func (s *site) silent() {
	s.t.Helper()
	if len(s.bus.said) > 0 {
		s.t.Fatalf("%s was said", s.bus.said[0].Data)
	}
}

// launch has one instance launched and gives its id.
func (s *site) launch(id string) string {
	s.t.Helper()
	s.handle(s.request(s.intent(id, 1)), "")
	return s.settled().Instances[0].InstanceID
}
