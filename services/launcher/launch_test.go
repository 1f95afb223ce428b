package launcher_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

func TestLaunch(t *testing.T) {
	s := newSite(t)
	e := s.request(s.intent("one", 3))
	s.handle(e, "")
	said := s.bus.said[0]
	if said.Causation != e.ID || said.Correlation != e.Correlation || said.Source != "joist/launcher" {
		t.Errorf("the fact is %+v", said)
	}
	settled := s.settled()
	if len(settled.Instances) != 3 || !settled.Spent || len(settled.Refusals) != 0 {
		t.Fatalf("settled as %+v", settled)
	}
	for _, i := range settled.Instances {
		record, ok := s.Record(i.InstanceID)
		if !ok || record.Tags[launchspec.IntentTag] != "one" || record.Type != i.InstanceType || record.Zone != i.Zone || i.ImageID != s.ImageAMD64.ID {
			t.Errorf("EC2 has %+v, and %+v was said", record, i)
		}
	}
	if template, ok := s.Template("template-one"); !ok || template.ImageID != s.ImageAMD64.ID {
		t.Errorf("the launch template is %+v", template)
	}
}

// However often it is asked, one intent is one launch with one answer.
func TestAskedAgain(t *testing.T) {
	s := newSite(t)
	e := s.request(s.intent("one", 2))
	s.handle(e, "")
	first := s.bus.said[0]
	s.pass(30 * time.Second)
	s.handle(s.request(s.intent("one", 2)), "")
	if n := len(s.Records()); n != 2 {
		t.Errorf("%d instances for 2 claims", n)
	}
	if len(s.bus.said) != 2 || s.bus.said[1].ID != first.ID {
		t.Error("the same answer is another event")
	}
}

func TestLostAnswer(t *testing.T) {
	s := newSite(t)
	s.LoseAnswer(memcloud.CreateFleet)
	e := s.request(s.intent("one", 1))
	s.handle(e, fault.Unknown)
	s.silent()
	s.handle(e, "")
	if settled := s.settled(); len(settled.Instances) != 1 || len(s.Records()) != 1 {
		t.Errorf("%d instances, settled as %+v", len(s.Records()), settled)
	}
}

func TestLostCall(t *testing.T) {
	s := newSite(t)
	s.LoseCall(memcloud.CreateFleet)
	e := s.request(s.intent("one", 1))
	s.handle(e, fault.Unknown)
	s.silent()
	s.handle(e, "")
	if len(s.settled().Instances) != 1 {
		t.Error("the second call did not launch")
	}
}

// The fact comes before the message goes: a bus that is away means another try,
// and that is the same launch.
func TestBusAway(t *testing.T) {
	s := newSite(t)
	s.bus.err = fault.E("publishing", fault.Retry, nil)
	e := s.request(s.intent("one", 1))
	s.handle(e, fault.Retry)
	s.bus.err = nil
	s.handle(e, "")
	if len(s.settled().Instances) != 1 || len(s.Records()) != 1 {
		t.Errorf("%d instances", len(s.Records()))
	}
}

// A token that came with another body proves no launch. Only instances do.
func TestTokenMismatch(t *testing.T) {
	s := newSite(t)
	intent := s.intent("one", 2)
	for _, template := range intent.Templates {
		if err := s.EnsureTemplate(t.Context(), template); err != nil {
			t.Fatal(err)
		}
	}
	other := intent.Fleet
	other.Count = 1
	given, err := s.CreateFleet(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	s.handle(s.request(intent), "")
	settled := s.settled()
	if len(settled.Instances) != 1 || settled.Instances[0].InstanceID != given.Instances[0].IDs[0] || settled.Spent {
		t.Errorf("settled as %+v, EC2 gave %+v", settled, given.Instances)
	}

	empty := s.intent("two", 1)
	s.Shortage(memcloud.Offering{}, s.now.Add(time.Hour))
	other = empty.Fleet
	other.Strategy = "prioritized"
	if _, err := s.CreateFleet(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.handle(s.request(empty), fault.Unknown)
	s.silent()
}

// empty is an EC2 whose fleet calls launch, and are answered with neither instances
// nor errors.
type empty struct{ cloud.Launcher }

func (e empty) CreateFleet(ctx context.Context, request cloud.FleetRequest) (cloud.FleetResult, error) {
	_, err := e.Launcher.CreateFleet(ctx, request)
	return cloud.FleetResult{FleetID: "fleet-1"}, err
}

// An answer that says nothing is settled by the instances with the intent's tag, and by
// nothing else.
func TestEmptyAnswer(t *testing.T) {
	s := newSite(t)
	s.svc.EC2 = empty{s.Cloud}
	s.handle(s.request(s.intent("one", 2)), "")
	if settled := s.settled(); len(settled.Instances) != 2 || !settled.Spent {
		t.Errorf("settled as %+v", settled)
	}
	s.Shortage(memcloud.Offering{}, s.now.Add(time.Hour))
	s.handle(s.request(s.intent("two", 1)), fault.Unknown)
	s.silent()
}

// A token whose instance is terminated launches nothing again: the claims go, unless
// EC2 still shows instances of the intent.
func TestTokenOfTerminatedInstance(t *testing.T) {
	const code = "IdempotentInstanceTerminated"
	s := newSite(t)
	s.Refuse(memcloud.CreateFleet, fault.Conflict, code, "The instance of the token is terminated.")
	s.handle(s.request(s.intent("one", 1)), "")
	if settled := s.settled(); len(settled.Instances) != 0 || !settled.Spent || settled.Refusals[0].Code != code || settled.Refusals[0].Blamed != nil {
		t.Errorf("settled as %+v", settled)
	}
	id := s.launch("two")
	s.svc.Memory = launcher.NewMemory(launcher.Limits{})
	s.Refuse(memcloud.CreateFleet, fault.Conflict, code, "The instance of the token is terminated.")
	s.handle(s.request(s.intent("two", 1)), "")
	if settled := s.settled(); len(settled.Instances) != 1 || settled.Instances[0].InstanceID != id {
		t.Errorf("settled as %+v", settled)
	}
}

// A fleet with 300 overrides that are all refused becomes a fact that the bus takes,
// however much EC2 writes and however little it names.
func TestManyRefusals(t *testing.T) {
	for _, named := range []bool{true, false} {
		s := newSite(t)
		intent := s.intent("one", 1)
		var result cloud.FleetResult
		for i := range 300 {
			o := cloud.Override{InstanceType: fmt.Sprintf("m6i.%dxlarge", i), Zone: "us-west-2a", SubnetID: "subnet-a"}
			intent.Fleet.Configs[0].Overrides = append(intent.Fleet.Configs[0].Overrides, o)
			e := cloud.FleetError{Code: "InsufficientInstanceCapacity", Message: o.InstanceType + strings.Repeat(" is short", 200)}
			if named {
				e.InstanceType, e.Zone = o.InstanceType, o.Zone
			}
			result.Errors = append(result.Errors, e)
		}
		s.svc.EC2 = answering{s.Cloud, result}
		s.handle(s.request(intent), "")
		r := s.settled().Refusals
		if len(r) != 1 || len(r[0].Blamed) < 300 || len(r[0].Message) > 1200 {
			t.Errorf("%d refusals, the first blames %d offerings in %d bytes", len(r), len(r[0].Blamed), len(r[0].Message))
		}
		// Each error counts: an alarm compares refusals with launches.
		if len(s.counted) != 300 {
			t.Errorf("%d refusals were counted", len(s.counted))
		}
	}
}

// answering is an EC2 with one answer to all fleet calls.
type answering struct {
	cloud.Launcher
	result cloud.FleetResult
}

func (a answering) CreateFleet(context.Context, cloud.FleetRequest) (cloud.FleetResult, error) {
	return a.result, nil
}

func TestShortage(t *testing.T) {
	s := newSite(t)
	s.Shortage(memcloud.Offering{Type: "m6i.large"}, s.now.Add(time.Hour))
	s.handle(s.request(s.intent("one", 1)), "")
	settled := s.settled()
	if len(settled.Instances) != 0 || !settled.Spent || len(settled.Refusals) != 1 || len(settled.Refusals[0].Blamed) != len(s.Subnets) {
		t.Fatalf("settled as %+v", settled)
	}
	for _, o := range settled.Refusals[0].Blamed {
		if o.InstanceType != "m6i.large" || o.Zone == "" || o.CapacityType != cloud.OnDemand {
			t.Errorf("it blames %+v", o)
		}
	}
	// EC2 remembers the answer under the token, even when it has stock again.
	s.Unblock()
	s.handle(s.request(s.intent("one", 1)), "")
	if len(s.settled().Instances) != 0 {
		t.Error("a spent token launched")
	}
}

func TestPartly(t *testing.T) {
	s := newSite(t)
	for i, subnet := range s.Subnets {
		s.SetCapacity(memcloud.Offering{Type: "m6i.large", Zone: subnet.Zone, CapacityType: cloud.OnDemand}, 1-min(i, 1))
	}
	s.handle(s.request(s.intent("one", 3)), "")
	settled := s.settled()
	if len(settled.Instances) != 1 || len(settled.Refusals) == 0 || !settled.Spent || settled.Wanted != 3 {
		t.Errorf("settled as %+v", settled)
	}
}

// What is definite and came before EC2 took the token is refused and not spent.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*site)
		want  fault.Kind
		code  string
	}{
		{"no right to launch", func(s *site) { s.Deny(memcloud.CreateFleet) }, "", "UnauthorizedOperation"},
		{"no right to make templates", func(s *site) { s.Deny(memcloud.CreateTemplate) }, "", "UnauthorizedOperation"},
		{"an invalid request", func(s *site) { s.Refuse(memcloud.CreateFleet, fault.Invalid, "InvalidParameterValue", "no") }, "", "InvalidParameterValue"},
		{"something that it names is gone", func(s *site) { s.Refuse(memcloud.CreateFleet, fault.Missing, "InvalidGroup.NotFound", "no") }, "", "InvalidGroup.NotFound"},
		{"a code that nobody knows", func(s *site) { s.Refuse(memcloud.CreateFleet, fault.Rejected, "TooManyCoffees", "no") }, fault.Rejected, ""},
		{"throttled", func(s *site) { s.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "no") }, fault.Throttled, ""},
		{"EC2 is away", func(s *site) { s.Refuse(memcloud.CreateFleet, fault.Retry, "InternalError", "no") }, fault.Retry, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			test.spoil(s)
			s.handle(s.request(s.intent("one", 1)), test.want)
			if len(s.Records()) != 0 {
				t.Fatal("something was launched")
			}
			if test.code == "" {
				s.silent()
				return
			}
			settled := s.settled()
			if settled.Spent || len(settled.Instances) != 0 || settled.Refusals[0].Code != test.code || settled.Refusals[0].Blamed != nil {
				t.Errorf("settled as %+v", settled)
			}
		})
	}
}

// An intent that is not what lifecycle admitted, or not ours, is poison: no
// retry makes it right, and nothing is launched.
func TestForeignIntents(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*launchspec.Intent)
	}{
		{"another cluster", func(i *launchspec.Intent) { i.Cluster = "dev" }},
		{"another token", func(i *launchspec.Intent) { i.Fleet.Token = "other" }},
		{"more instances than claims", func(i *launchspec.Intent) { i.Fleet.Count = 9 }},
		{"no instance tags", func(i *launchspec.Intent) { i.Fleet.TagSets = nil }},
		{"no owner", func(i *launchspec.Intent) { delete(i.Fleet.TagSets[0].Tags, "kubernetes.io/cluster/prod") }},
		{"no pool", func(i *launchspec.Intent) { delete(i.Fleet.TagSets[0].Tags, "karpenter.sh/nodepool") }},
		{"no intent tag", func(i *launchspec.Intent) { delete(i.Fleet.TagSets[0].Tags, launchspec.IntentTag) }},
		{"tags on volumes only", func(i *launchspec.Intent) { i.Fleet.TagSets[0].Resource = "volume" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			intent := s.intent("one", 1)
			test.spoil(&intent)
			s.handle(s.request(intent), fault.Poison)
			if len(s.Effects(0)) != 0 {
				t.Errorf("EC2 was written to: %+v", s.Effects(0))
			}
			s.silent()
		})
	}
}

func TestRequestsThatDoNotFit(t *testing.T) {
	s := newSite(t)
	good := s.request(s.intent("one", 2))
	body, err := event.As[event.LaunchRequested](good)
	if err != nil {
		t.Fatal(err)
	}
	change := func(how func(*event.LaunchRequested)) event.Envelope {
		b := body
		how(&b)
		return s.message(b)
	}
	s.handle(change(func(b *event.LaunchRequested) { b.Intent = "two" }), fault.Poison)
	s.handle(change(func(b *event.LaunchRequested) { b.Claims = 1 }), fault.Poison)
	s.handle(change(func(b *event.LaunchRequested) { b.IntentRef.Size++ }), fault.Poison)
	s.handle(change(func(b *event.LaunchRequested) { b.IntentRef.Digest = event.DigestOf(nil) }), fault.Retry)
	s.blobs.SetFaults(memblob.Faults{Corrupt: 1})
	s.handle(good, fault.Poison)
	if len(s.Effects(0)) != 0 {
		t.Errorf("EC2 was written to: %+v", s.Effects(0))
	}
	s.handle(s.message(event.InstanceGone{InstanceID: "i-1"}), fault.Poison)
}

// slow is an EC2 whose templates take a while.
type slow struct {
	cloud.Launcher
	wait func()
}

func (s slow) EnsureTemplate(ctx context.Context, template cloud.Template) error {
	s.wait()
	return s.Launcher.EnsureTemplate(ctx, template)
}

// A request that dies while its templates are made launches nothing: lifecycle
// may have let its claims go meanwhile.
func TestExpiredMeanwhile(t *testing.T) {
	s := newSite(t)
	s.svc.EC2 = slow{s.Cloud, func() { s.pass(3 * time.Minute) }}
	s.handle(s.request(s.intent("one", 1)), fault.Stale)
	if len(s.Records()) != 0 {
		t.Error("it was launched all the same")
	}
}

// Templates are there before the fleet names them, and equal ones are made once.
func TestTemplates(t *testing.T) {
	s := newSite(t)
	first, second := s.intent("one", 1), s.intent("two", 1)
	second.Templates, second.Fleet.Configs = first.Templates, first.Fleet.Configs
	s.handle(s.request(first), "")
	s.handle(s.request(second), "")
	var writes []memcloud.Action
	for _, e := range s.Effects(0) {
		writes = append(writes, e.Action)
	}
	if diff := cmp.Diff([]memcloud.Action{memcloud.CreateTemplate, memcloud.CreateFleet, memcloud.CreateFleet}, writes); diff != "" {
		t.Error(diff)
	}
}

// A shortage that EC2 tells instead of an answer blames what it would blame inside
// one, and the token is as good as new.
func TestRefusedForShortage(t *testing.T) {
	s := newSite(t)
	s.Refuse(memcloud.CreateFleet, fault.Denied, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no")
	s.handle(s.request(s.intent("one", 1)), "")
	settled := s.settled()
	want := []event.Offering{{CapacityType: cloud.Spot}}
	if diff := cmp.Diff(want, settled.Refusals[0].Blamed); diff != "" || settled.Spent {
		t.Errorf("settled as %+v: %s", settled, diff)
	}
	if diff := cmp.Diff([]string{"refused AuthFailure.ServiceLinkedRoleCreationNotPermitted on-demand"}, s.counted); diff != "" {
		t.Error(diff)
	}
}

// A flood is held back before EC2 hears of it, and goes on when a minute has
// passed; the message is kept meanwhile.
func TestBreaker(t *testing.T) {
	s := newSite(t)
	s.svc.Memory = launcher.NewMemory(launcher.Limits{PerIntent: 3, PerMinute: 5})
	s.handle(s.request(s.intent("one", 3)), "")
	s.handle(s.request(s.intent("one", 3)), "")
	second := s.intent("two", 3)
	s.handle(s.request(second), fault.Throttled)
	s.handle(s.request(s.intent("large", 4)), fault.Denied)
	if n := len(s.Records()); n != 3 {
		t.Fatalf("%d instances", n)
	}
	s.pass(time.Minute)
	s.handle(s.request(second), "")
	if n := len(s.Records()); n != 6 {
		t.Errorf("%d instances after a minute", n)
	}
	want := []string{"launched on-demand 3", "stopped throttled", "stopped denied", "launched on-demand 3"}
	if diff := cmp.Diff(want, s.counted); diff != "" {
		t.Error(diff)
	}
}

// A template that was swept behind our back is made again, once.
func TestTemplateRemade(t *testing.T) {
	s := newSite(t)
	first, second := s.intent("one", 1), s.intent("two", 1)
	second.Templates, second.Fleet.Configs = first.Templates, first.Fleet.Configs
	s.handle(s.request(first), "")
	if err := s.DeleteTemplate(t.Context(), "template-one"); err != nil {
		t.Fatal(err)
	}
	// EC2 may say it of the whole call, and then the token is unused.
	s.Refuse(memcloud.CreateFleet, fault.Missing, "InvalidLaunchTemplateName.NotFoundException", "gone")
	s.handle(s.request(second), "")
	if _, there := s.Template("template-one"); !there || len(s.Records()) != 2 {
		t.Errorf("%d instances", len(s.Records()))
	}
	// Or inside its answer: then the token is spent, and the next intent has it.
	third, fourth := s.intent("three", 1), s.intent("four", 1)
	for _, intent := range []*launchspec.Intent{&third, &fourth} {
		intent.Templates, intent.Fleet.Configs = first.Templates, first.Fleet.Configs
	}
	if err := s.DeleteTemplate(t.Context(), "template-one"); err != nil {
		t.Fatal(err)
	}
	s.bus.said = nil
	s.handle(s.request(third), "")
	if settled := s.settled(); !settled.Spent || len(settled.Instances) != 0 || settled.Refusals[0].Blamed != nil {
		t.Errorf("settled as %+v", settled)
	}
	s.handle(s.request(fourth), "")
	if len(s.settled().Instances) != 1 {
		t.Error("the next intent found no template either")
	}
}
