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
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

func TestLaunchIntent(t *testing.T) {
	s := newFixture(t)
	e := s.launchRequest(s.newIntent("one", 3))
	s.handleMessage(e, "")
	fact := s.bus.published[0]
	if fact.Causation != e.ID || fact.Correlation != e.Correlation || fact.Source != "joist/launcher" {
		t.Errorf("unexpected event %+v", fact)
	}
	settled := s.nextResult()
	if len(settled.Instances) != 3 || !settled.Spent || len(settled.Refusals) != 0 {
		t.Fatalf("unexpected result %+v", settled)
	}
	for _, i := range settled.Instances {
		record, ok := s.Record(i.InstanceID)
		if !ok || record.Tags[launchspec.IntentTag] != "one" || record.Type != i.InstanceType || record.Zone != i.Zone || i.ImageID != s.ImageAMD64.ID {
			t.Errorf("EC2 has %+v, the event has %+v", record, i)
		}
	}
	if template, ok := s.Template("template-one"); !ok || template.ImageID != s.ImageAMD64.ID {
		t.Errorf("unexpected launch template %+v", template)
	}
}

// Repeated requests for one intent are one launch with one result.
func TestRepeatedRequest(t *testing.T) {
	s := newFixture(t)
	e := s.launchRequest(s.newIntent("one", 2))
	s.handleMessage(e, "")
	first := s.bus.published[0]
	s.advanceClock(30 * time.Second)
	s.handleMessage(s.launchRequest(s.newIntent("one", 2)), "")
	if n := len(s.Records()); n != 2 {
		t.Errorf("%d instances for 2 claims", n)
	}
	if len(s.bus.published) != 2 || s.bus.published[1].ID != first.ID {
		t.Error("the repeated result has another event ID")
	}
}

func TestLostFleetAnswer(t *testing.T) {
	s := newFixture(t)
	s.LoseAnswer(memcloud.CreateFleet)
	e := s.launchRequest(s.newIntent("one", 1))
	s.handleMessage(e, fault.Unknown)
	s.requireNoFacts()
	s.handleMessage(e, "")
	if settled := s.nextResult(); len(settled.Instances) != 1 || len(s.Records()) != 1 {
		t.Errorf("%d instances, result %+v", len(s.Records()), settled)
	}
}

func TestLostFleetCall(t *testing.T) {
	s := newFixture(t)
	s.LoseCall(memcloud.CreateFleet)
	e := s.launchRequest(s.newIntent("one", 1))
	s.handleMessage(e, fault.Unknown)
	s.requireNoFacts()
	s.handleMessage(e, "")
	if len(s.nextResult().Instances) != 1 {
		t.Error("the second call did not launch")
	}
}

// The fact is published before the message is deleted: if the bus is unavailable, the
// message is retried, which is the same launch.
func TestUnavailableBusIsRetried(t *testing.T) {
	s := newFixture(t)
	s.bus.err = fault.E("publishing", fault.Retry, nil)
	e := s.launchRequest(s.newIntent("one", 1))
	s.handleMessage(e, fault.Retry)
	s.bus.err = nil
	s.handleMessage(e, "")
	if len(s.nextResult().Instances) != 1 || len(s.Records()) != 1 {
		t.Errorf("%d instances", len(s.Records()))
	}
}

// A token that was used with other parameters proves no launch. Only instances do.
func TestTokenMismatchProvesNoLaunch(t *testing.T) {
	s := newFixture(t)
	intent := s.newIntent("one", 2)
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
	s.handleMessage(s.launchRequest(intent), "")
	settled := s.nextResult()
	if len(settled.Instances) != 1 || settled.Instances[0].InstanceID != given.Instances[0].IDs[0] || settled.Spent {
		t.Errorf("unexpected result %+v, EC2 launched %+v", settled, given.Instances)
	}

	empty := s.newIntent("two", 1)
	s.Shortage(event.Offering{}, s.now.Add(time.Hour))
	other = empty.Fleet
	other.Strategy = "prioritized"
	if _, err := s.CreateFleet(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.handleMessage(s.launchRequest(empty), fault.Unknown)
	s.requireNoFacts()
}

// emptyAnswerEC2 launches fleets and answers with neither instances nor errors.
type emptyAnswerEC2 struct{ cloud.Launcher }

func (e emptyAnswerEC2) CreateFleet(ctx context.Context, request cloud.FleetRequest) (cloud.FleetResult, error) {
	_, err := e.Launcher.CreateFleet(ctx, request)
	return cloud.FleetResult{FleetID: "fleet-1"}, err
}

// After an empty answer, only instances with the intent's tag prove the launch.
func TestEmptyFleetAnswer(t *testing.T) {
	s := newFixture(t)
	s.service.EC2 = emptyAnswerEC2{s.Cloud}
	s.handleMessage(s.launchRequest(s.newIntent("one", 2)), "")
	if settled := s.nextResult(); len(settled.Instances) != 2 || !settled.Spent {
		t.Errorf("unexpected result %+v", settled)
	}
	s.Shortage(event.Offering{}, s.now.Add(time.Hour))
	s.handleMessage(s.launchRequest(s.newIntent("two", 1)), fault.Unknown)
	s.requireNoFacts()
}

// Without an answer from EC2 it is not known whether the intent was launched.
func TestUnknownLaunchIsRetried(t *testing.T) {
	s := newFixture(t)
	s.Refuse(memcloud.CreateFleet, fault.Conflict, "IdempotentParameterMismatch", "no")
	s.Refuse(memcloud.DescribeInstances, fault.Throttled, "RequestLimitExceeded", "no")
	s.handleMessage(s.launchRequest(s.newIntent("one", 1)), fault.Throttled)
	s.requireNoFacts()
}

// A token whose instance is terminated launches nothing again: the claims are deleted,
// unless EC2 still returns instances of the intent.
func TestTokenOfTerminatedInstance(t *testing.T) {
	const code = "IdempotentInstanceTerminated"
	s := newFixture(t)
	s.Refuse(memcloud.CreateFleet, fault.Conflict, code, "The instance of the token is terminated.")
	s.handleMessage(s.launchRequest(s.newIntent("one", 1)), "")
	if settled := s.nextResult(); len(settled.Instances) != 0 || !settled.Spent || settled.Refusals[0].Code != code || settled.Refusals[0].Blamed != nil {
		t.Errorf("unexpected result %+v", settled)
	}
	id := s.launchInstance("two")
	s.service.Cache = launcher.NewLaunchCache(launcher.Limits{})
	s.Refuse(memcloud.CreateFleet, fault.Conflict, code, "The instance of the token is terminated.")
	s.handleMessage(s.launchRequest(s.newIntent("two", 1)), "")
	if settled := s.nextResult(); len(settled.Instances) != 1 || settled.Instances[0].InstanceID != id {
		t.Errorf("unexpected result %+v", settled)
	}
}

// A fleet with 300 rejected overrides becomes a fact within the size limit of the bus, for long
// messages and for errors that name no offering.
func TestManyRefusalsAreMerged(t *testing.T) {
	for _, named := range []bool{true, false} {
		s := newFixture(t)
		intent := s.newIntent("one", 1)
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
		s.service.EC2 = fixedAnswerEC2{s.Cloud, result}
		s.handleMessage(s.launchRequest(intent), "")
		r := s.nextResult().Refusals
		if len(r) != 1 || len(r[0].Blamed) < 300 || len(r[0].Message) > 1200 {
			t.Errorf("%d refusals, the first with %d unavailable offerings in %d bytes", len(r), len(r[0].Blamed), len(r[0].Message))
		}
		// Each error is counted: an alarm compares refusals with launches.
		if len(s.counts) != 300 {
			t.Errorf("%d refusals were counted", len(s.counts))
		}
	}
}

// fixedAnswerEC2 has one answer to all CreateFleet calls.
type fixedAnswerEC2 struct {
	cloud.Launcher
	result cloud.FleetResult
}

func (a fixedAnswerEC2) CreateFleet(context.Context, cloud.FleetRequest) (cloud.FleetResult, error) {
	return a.result, nil
}

func TestInsufficientCapacityMarksOfferings(t *testing.T) {
	s := newFixture(t)
	s.Shortage(event.Offering{InstanceType: "m6i.large"}, s.now.Add(time.Hour))
	s.handleMessage(s.launchRequest(s.newIntent("one", 1)), "")
	settled := s.nextResult()
	if len(settled.Instances) != 0 || !settled.Spent || len(settled.Refusals) != 1 || len(settled.Refusals[0].Blamed) != len(s.Subnets) {
		t.Fatalf("unexpected result %+v", settled)
	}
	for _, o := range settled.Refusals[0].Blamed {
		if o.InstanceType != "m6i.large" || o.Zone == "" || o.CapacityType != cloud.OnDemand {
			t.Errorf("%+v is unavailable", o)
		}
	}
	// EC2 repeats the answer for the token, even if it has capacity again.
	s.Unblock()
	s.handleMessage(s.launchRequest(s.newIntent("one", 1)), "")
	if len(s.nextResult().Instances) != 0 {
		t.Error("a spent token launched")
	}
}

func TestPartialLaunch(t *testing.T) {
	s := newFixture(t)
	for i, subnet := range s.Subnets {
		s.SetCapacity(event.Offering{InstanceType: "m6i.large", Zone: subnet.Zone, CapacityType: cloud.OnDemand}, 1-min(i, 1))
	}
	s.handleMessage(s.launchRequest(s.newIntent("one", 3)), "")
	settled := s.nextResult()
	if len(settled.Instances) != 1 || len(settled.Refusals) == 0 || !settled.Spent || settled.Wanted != 3 {
		t.Errorf("unexpected result %+v", settled)
	}
}

// A definite error before EC2 used the token is a refusal and does not spend the token.
func TestRefusedLaunch(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*fixture)
		want  fault.Kind
		code  string
	}{
		{"no permission to launch", func(s *fixture) { s.Deny(memcloud.CreateFleet) }, "", "UnauthorizedOperation"},
		{"no permission to create templates", func(s *fixture) { s.Deny(memcloud.CreateTemplate) }, "", "UnauthorizedOperation"},
		{"an invalid request", func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Invalid, "InvalidParameterValue", "no") }, "", "InvalidParameterValue"},
		{"a named resource does not exist", func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Missing, "InvalidGroup.NotFound", "no") }, "", "InvalidGroup.NotFound"},
		{"an unknown code", func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Rejected, "TooManyCoffees", "no") }, fault.Rejected, ""},
		{"throttled", func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "no") }, fault.Throttled, ""},
		{"EC2 is unavailable", func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Retry, "InternalError", "no") }, fault.Retry, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			test.spoil(s)
			s.handleMessage(s.launchRequest(s.newIntent("one", 1)), test.want)
			if len(s.Records()) != 0 {
				t.Fatal("an instance was launched")
			}
			if test.code == "" {
				s.requireNoFacts()
				return
			}
			settled := s.nextResult()
			if settled.Spent || len(settled.Instances) != 0 || settled.Refusals[0].Code != test.code || settled.Refusals[0].Blamed != nil {
				t.Errorf("unexpected result %+v", settled)
			}
		})
	}
}

// An intent that differs from the request, or is of another cluster, is poison and is not
// launched.
func TestForeignIntentsArePoison(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*launchspec.Intent)
	}{
		{"another cluster", func(i *launchspec.Intent) { i.Cluster = "dev" }},
		{"another token", func(i *launchspec.Intent) { i.Fleet.Token = "other" }},
		{"more instances than claims", func(i *launchspec.Intent) { i.Fleet.Count = 9 }},
		{"no instance tags", func(i *launchspec.Intent) { i.Fleet.TagSets = nil }},
		{"no cluster tag", func(i *launchspec.Intent) { delete(i.Fleet.TagSets[0].Tags, "kubernetes.io/cluster/prod") }},
		{"no NodePool", func(i *launchspec.Intent) { delete(i.Fleet.TagSets[0].Tags, "karpenter.sh/nodepool") }},
		{"no intent tag", func(i *launchspec.Intent) { delete(i.Fleet.TagSets[0].Tags, launchspec.IntentTag) }},
		{"tags on volumes only", func(i *launchspec.Intent) { i.Fleet.TagSets[0].Resource = "volume" }},
		{"another intent's claim", func(i *launchspec.Intent) { i.Claims[0] = claimName("two", 0) }},
		{"a user's claim from which the id does not derive", func(i *launchspec.Intent) { i.Claims[0] = "mine" }},
		{"another NodePool's tag than the claim's", func(i *launchspec.Intent) { i.Fleet.TagSets[0].Tags["karpenter.sh/nodepool"] = "other" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			intent := s.newIntent("one", 1)
			test.spoil(&intent)
			s.handleMessage(s.launchRequest(intent), fault.Poison)
			if len(s.Effects(0)) != 0 {
				t.Errorf("EC2 was changed: %+v", s.Effects(0))
			}
			s.requireNoFacts()
		})
	}
}

func TestMismatchedRequestsArePoison(t *testing.T) {
	s := newFixture(t)
	good := s.launchRequest(s.newIntent("one", 2))
	body, err := event.DecodeBody[event.LaunchRequested](good)
	if err != nil {
		t.Fatal(err)
	}
	change := func(edit func(*event.LaunchRequested)) event.Envelope {
		b := body
		edit(&b)
		return s.newMessage(b)
	}
	s.handleMessage(change(func(b *event.LaunchRequested) { b.Intent = "two" }), fault.Poison)
	s.handleMessage(change(func(b *event.LaunchRequested) { b.Claims = 1 }), fault.Poison)
	s.handleMessage(change(func(b *event.LaunchRequested) { b.IntentRef.Size++ }), fault.Poison)
	s.handleMessage(change(func(b *event.LaunchRequested) { b.IntentRef.Digest = event.DigestOf(nil) }), fault.Retry)
	s.blobs.SetFaults(memblob.Faults{Corrupt: 1})
	s.handleMessage(good, fault.Poison)
	if len(s.Effects(0)) != 0 {
		t.Errorf("EC2 was changed: %+v", s.Effects(0))
	}
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1"}), fault.Poison)
}

// slowTemplateEC2 calls wait before it creates a launch template.
type slowTemplateEC2 struct {
	cloud.Launcher
	wait func()
}

func (s slowTemplateEC2) EnsureTemplate(ctx context.Context, template cloud.Template) error {
	s.wait()
	return s.Launcher.EnsureTemplate(ctx, template)
}

// A request whose duplicate is in flight is retried later, so that both do not use EC2's request rate. Other intents are launched.
func TestDuplicateInFlight(t *testing.T) {
	s := newFixture(t)
	duplicates := 0
	s.service.EC2 = slowTemplateEC2{s.Cloud, func() {
		if duplicates++; duplicates == 1 {
			s.handleMessage(s.launchRequest(s.newIntent("one", 1)), fault.Retry)
			s.handleMessage(s.launchRequest(s.newIntent("two", 1)), "")
		}
	}}
	for range 2 {
		s.handleMessage(s.launchRequest(s.newIntent("one", 1)), "")
	}
	if n := len(s.Records()); n != 2 {
		t.Errorf("%d instances for 2 intents", n)
	}
}

// Without a cache, as after a restart, intents are launched, except those above the limit.
func TestLaunchWithoutCache(t *testing.T) {
	s := newFixture(t)
	s.service.Cache = nil
	for range 2 {
		s.handleMessage(s.launchRequest(s.newIntent("one", 2)), "")
	}
	if n := len(s.Records()); n != 2 {
		t.Errorf("%d instances for 2 claims", n)
	}
	s.handleMessage(s.launchRequest(s.newIntent("large", 501)), fault.Denied)
}

// A request that expires while its templates are created launches nothing: lifecycle may
// have deleted its claims.
func TestRequestExpiresDuringLaunch(t *testing.T) {
	s := newFixture(t)
	s.service.EC2 = slowTemplateEC2{s.Cloud, func() { s.advanceClock(3 * time.Minute) }}
	s.handleMessage(s.launchRequest(s.newIntent("one", 1)), fault.Stale)
	if len(s.Records()) != 0 {
		t.Error("the expired request was launched")
	}
}

// Templates are created before the fleet names them, and equal ones are created once.
func TestTemplatesAreCreatedFirst(t *testing.T) {
	s := newFixture(t)
	first, second := s.newIntent("one", 1), s.newIntent("two", 1)
	second.Templates, second.Fleet.Configs = first.Templates, first.Fleet.Configs
	s.handleMessage(s.launchRequest(first), "")
	s.handleMessage(s.launchRequest(second), "")
	var writes []memcloud.Action
	for _, e := range s.Effects(0) {
		writes = append(writes, e.Action)
	}
	if diff := cmp.Diff([]memcloud.Action{memcloud.CreateTemplate, memcloud.CreateFleet, memcloud.CreateFleet}, writes); diff != "" {
		t.Error(diff)
	}
}

// An error of insufficient capacity for the whole call makes the same offerings
// unavailable as in an answer, and does not spend the token.
func TestRefusalMarksOfferings(t *testing.T) {
	s := newFixture(t)
	s.Refuse(memcloud.CreateFleet, fault.Denied, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no")
	s.handleMessage(s.launchRequest(s.newIntent("one", 1)), "")
	settled := s.nextResult()
	want := []event.Offering{{CapacityType: cloud.Spot}}
	if diff := cmp.Diff(want, settled.Refusals[0].Blamed); diff != "" || settled.Spent {
		t.Errorf("unexpected result %+v: %s", settled, diff)
	}
	if diff := cmp.Diff([]string{metric.LaunchErrors.Name + " AuthFailure.ServiceLinkedRoleCreationNotPermitted on-demand"}, s.counts); diff != "" {
		t.Error(diff)
	}
}

// The breaker stops too many launches before they reach EC2, until a minute has passed.
// The message stays in the queue.
func TestBreakerStopsLaunches(t *testing.T) {
	s := newFixture(t)
	s.service.Cache = launcher.NewLaunchCache(launcher.Limits{PerIntent: 3, PerMinute: 5})
	s.handleMessage(s.launchRequest(s.newIntent("one", 3)), "")
	s.handleMessage(s.launchRequest(s.newIntent("one", 3)), "")
	second := s.newIntent("two", 3)
	s.handleMessage(s.launchRequest(second), fault.Throttled)
	s.handleMessage(s.launchRequest(s.newIntent("large", 4)), fault.Denied)
	if n := len(s.Records()); n != 3 {
		t.Fatalf("%d instances", n)
	}
	s.advanceClock(time.Minute)
	s.handleMessage(s.launchRequest(second), "")
	if n := len(s.Records()); n != 6 {
		t.Errorf("%d instances after a minute", n)
	}
	want := []string{metric.InstancesLaunched.Name + " on-demand 3", metric.LaunchesPaused.Name + " throttled", metric.LaunchesPaused.Name + " denied", metric.InstancesLaunched.Name + " on-demand 3"}
	if diff := cmp.Diff(want, s.counts); diff != "" {
		t.Error(diff)
	}
}

// A template that was deleted by another client is created again, once.
func TestMissingTemplateIsRecreated(t *testing.T) {
	s := newFixture(t)
	first, second := s.newIntent("one", 1), s.newIntent("two", 1)
	second.Templates, second.Fleet.Configs = first.Templates, first.Fleet.Configs
	s.handleMessage(s.launchRequest(first), "")
	if err := s.DeleteTemplate(t.Context(), "template-one"); err != nil {
		t.Fatal(err)
	}
	// If the whole call fails with the error, the token is unused.
	s.Refuse(memcloud.CreateFleet, fault.Missing, "InvalidLaunchTemplateName.NotFoundException", "gone")
	s.handleMessage(s.launchRequest(second), "")
	if _, there := s.Template("template-one"); !there || len(s.Records()) != 2 {
		t.Errorf("%d instances", len(s.Records()))
	}
	// If the template cannot be created again, the request is retried.
	s.Refuse(memcloud.CreateFleet, fault.Missing, "InvalidLaunchTemplateName.NotFoundException", "gone")
	s.Refuse(memcloud.CreateTemplate, fault.Throttled, "RequestLimitExceeded", "no")
	if err := s.DeleteTemplate(t.Context(), "template-one"); err != nil {
		t.Fatal(err)
	}
	retried := s.newIntent("retried", 1)
	retried.Templates, retried.Fleet.Configs = first.Templates, first.Fleet.Configs
	s.handleMessage(s.launchRequest(retried), fault.Throttled)
	s.handleMessage(s.launchRequest(retried), "")
	// If the answer contains the error, the token is spent, and the next intent creates the template.
	third, fourth := s.newIntent("three", 1), s.newIntent("four", 1)
	for _, intent := range []*launchspec.Intent{&third, &fourth} {
		intent.Templates, intent.Fleet.Configs = first.Templates, first.Fleet.Configs
	}
	if err := s.DeleteTemplate(t.Context(), "template-one"); err != nil {
		t.Fatal(err)
	}
	s.bus.published = nil
	s.handleMessage(s.launchRequest(third), "")
	if settled := s.nextResult(); !settled.Spent || len(settled.Instances) != 0 || settled.Refusals[0].Blamed != nil {
		t.Errorf("unexpected result %+v", settled)
	}
	s.handleMessage(s.launchRequest(fourth), "")
	if len(s.nextResult().Instances) != 1 {
		t.Error("the next intent did not launch")
	}
}
