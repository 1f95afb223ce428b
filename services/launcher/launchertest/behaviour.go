package launchertest

import (
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

type behaviour struct {
	name string
	run  func(s *testRun)
}

var behaviours = []behaviour{
	{"a crash before and after every step", crashAtEveryStep},
	{"a duplicate at the same time", handleDuplicates},
	{"a redelivery afterwards", handleRedelivery},
	{"a repeated request", handleResend},
	{"a lost answer", recoverLostAnswer},
	{"a lost call", repeatLostCall},
	{"repeated failures of the connection", surviveFailures},
	{"a throttled call", retryThrottled},
	{"a partial launch", launchPartially},
	{"errors in the answer", publishFleetErrors},
	{"throttling in the answer", publishFleetThrottling},
	{"a token mismatch with instances", findInstancesAfterMismatch},
	{"a token mismatch without instances", retryAfterMismatch},
	{"a deleted template", recreateTemplate},
	{"a template that remains missing", retryMissingTemplate},
	{"an expired request", dropExpired},
}

func crashAtEveryStep(s *testRun) {
	intent := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			intent++
			id := "crash-" + string(rune('a'+intent))
			s.published, s.steps, s.crashAt, s.crashAfter = nil, 0, at, after
			e := s.launchRequest(s.newIntent(id, 2))
			crashed, err := s.deliverMessage(e)
			s.requireNoError(err)
			if !crashed {
				s.requireLaunchedOnce(id, 2)
				break
			}
			s.t.Logf("crashed %s", stepName(after, s.lastStep))
			s.crashAt = 0
			s.AdvanceClock(30 * time.Second)
			s.handleMessage(e)
			s.requireLaunchedOnce(id, 2)
		}
	}
	if intent != 2*(3+1) {
		s.t.Errorf("%d processes crashed at %d steps, want 3", intent, intent/2-1)
	}
}

func handleDuplicates(s *testRun) {
	e := s.launchRequest(s.newIntent("twice", 3))
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = s.deliverMessage(e) })
	}
	all.Wait()
	for _, err := range errs {
		s.requireNoError(err)
	}
	s.requireLaunchedOnce("twice", 3)
}

func handleRedelivery(s *testRun) {
	e := s.launchRequest(s.newIntent("again", 2))
	s.handleMessage(e)
	s.AdvanceClock(90 * time.Second)
	s.handleMessage(e)
	s.requireLaunchedOnce("again", 2)
}

// handleResend repeats the request, as lifecycle does every 30 s, even after its instances were
// terminated: they are not launched again.
func handleResend(s *testRun) {
	intent := s.newIntent("resent", 2)
	s.handleMessage(s.launchRequest(intent))
	s.AdvanceClock(30 * time.Second)
	s.handleMessage(s.launchRequest(intent))
	for id := range s.launchedIDs("resent") {
		s.requireNoError(s.EC2.Terminate(s.t.Context(), []string{id}))
	}
	s.AdvanceClock(2 * time.Minute)
	s.handleMessage(s.launchRequest(intent))
	s.requireLaunchedOnce("resent", 2)
}

func (s *testRun) requireFailure(e event.Envelope, want fault.Kind) {
	s.t.Helper()
	if _, err := s.deliverMessage(e); fault.KindOf(err) != want {
		s.t.Fatalf("got %v, want kind %q", err, want)
	}
	s.requireNoFacts()
}

func recoverLostAnswer(s *testRun) {
	e := s.launchRequest(s.newIntent("lost-answer", 3))
	s.Model.LoseAnswer(memcloud.CreateFleet)
	s.requireFailure(e, fault.Unknown)
	if n := len(s.launchedIDs("lost-answer")); n != 3 {
		s.t.Fatalf("%d instances before the second delivery", n)
	}
	s.handleMessage(e)
	if !s.requireLaunchedOnce("lost-answer", 3).Spent {
		s.t.Error("the token is not spent")
	}
}

func repeatLostCall(s *testRun) {
	e := s.launchRequest(s.newIntent("lost", 1))
	s.Model.LoseCall(memcloud.CreateFleet)
	s.requireFailure(e, fault.Unknown)
	s.handleMessage(e)
	s.requireLaunchedOnce("lost", 1)
}

func surviveFailures(s *testRun) {
	e := s.launchRequest(s.newIntent("storm", 2))
	for range 2 {
		s.Model.LoseAnswer(memcloud.CreateFleet)
		s.Model.LoseCall(memcloud.CreateFleet)
		s.Model.Refuse(memcloud.CreateFleet, fault.Retry, "InternalError", "An internal error has occurred.")
	}
	for range 6 {
		s.AdvanceClock(3 * time.Second)
		if _, err := s.deliverMessage(e); !fault.Is(err, fault.Unknown, fault.Retry) {
			s.t.Fatalf("got %v", err)
		}
		s.requireNoFacts()
	}
	s.AdvanceClock(3 * time.Second)
	s.handleMessage(e)
	s.requireLaunchedOnce("storm", 2)
}

func retryThrottled(s *testRun) {
	e := s.launchRequest(s.newIntent("slow", 2))
	s.Model.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	s.requireFailure(e, fault.Throttled)
	s.handleMessage(e)
	s.requireLaunchedOnce("slow", 2)
}

// limitCapacity sets the capacity of the type to n in the first zone and to zero in others.
func (s *testRun) limitCapacity(n int) {
	for i, subnet := range s.World.Subnets {
		capacity := 0
		if i == 0 {
			capacity = n
		}
		s.Model.SetCapacity(event.Offering{InstanceType: "m6i.large", Zone: subnet.Zone, CapacityType: cloud.OnDemand}, capacity)
	}
}

func launchPartially(s *testRun) {
	s.limitCapacity(2)
	e := s.launchRequest(s.newIntent("part", 5))
	s.handleMessage(e)
	s.limitCapacity(9)
	s.handleMessage(e)
	settled := s.requireLaunchedOnce("part", 2)
	if settled.Wanted != 5 || !settled.Spent || len(settled.Refusals) == 0 {
		s.t.Errorf("unexpected result %+v", settled)
	}
}

// publishFleetErrors makes EC2 reject all overrides in its answer, with each of the codes: the
// result is a refusal, and a later request launches nothing.
func publishFleetErrors(s *testRun) {
	for _, code := range []string{
		"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported",
		"InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded",
		"SpotMaxPriceTooLow", "InvalidCapacityReservationState.Unavailable",
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "UnauthorizedOperation", "UnknownCode",
	} {
		s.published = nil
		s.AdvanceClock(3 * time.Second)
		s.Model.Block(event.Offering{InstanceType: "m6i.large"}, code, s.Now().Add(time.Hour))
		id := "inside-" + code
		e := s.launchRequest(s.newIntent(id, 2))
		s.handleMessage(e)
		s.Model.Unblock()
		s.handleMessage(e)
		settled := s.requireLaunchedOnce(id, 0)
		if !settled.Spent || settled.Refusals[0].Code != code {
			s.t.Errorf("%s: unexpected result %+v", code, settled)
		}
	}
}

// publishFleetThrottling empties the bucket of instances: EC2 reports that in its answer, and no
// offering becomes unavailable.
func publishFleetThrottling(s *testRun) {
	s.AdvanceClock(time.Hour)
	for i := range 2 {
		s.published = nil
		s.handleMessage(s.launchRequest(s.newIntent("large-"+string(rune('a'+i)), 500)))
	}
	s.published = nil
	s.handleMessage(s.launchRequest(s.newIntent("over", 100)))
	settled := s.requireLaunchedOnce("over", 0)
	if r := settled.Refusals[0]; r.Code != "RequestLimitExceeded" || len(r.Blamed) != 0 {
		s.t.Errorf("unexpected result %+v", settled)
	}
}

// spendToken uses the token of an intent with other parameters.
func (s *testRun) spendToken(intentOf string, n int) event.Envelope {
	s.t.Helper()
	intent := s.newIntent(intentOf, n)
	s.requireNoError(s.EC2.EnsureTemplate(s.t.Context(), intent.Templates[0]))
	other := intent.Fleet
	other.Count++
	_, err := s.EC2.CreateFleet(s.t.Context(), other)
	s.requireNoError(err)
	s.AdvanceClock(time.Minute)
	return s.launchRequest(intent)
}

func findInstancesAfterMismatch(s *testRun) {
	e := s.spendToken("other", 2)
	s.handleMessage(e)
	s.handleMessage(e)
	if settled := s.requireLaunchedOnce("other", 3); !settled.Spent {
		s.t.Errorf("unexpected result %+v", settled)
	}
}

func retryAfterMismatch(s *testRun) {
	s.Model.Shortage(event.Offering{}, s.Now().Add(time.Hour))
	e := s.spendToken("empty", 1)
	s.Model.Unblock()
	s.requireFailure(e, fault.Unknown)
	if n := len(s.launchedIDs("empty")); n != 0 {
		s.t.Errorf("%d instances", n)
	}
}

const codeTemplateNotFound = "InvalidLaunchTemplateName.NotFoundException"

func recreateTemplate(s *testRun) {
	intent := s.newIntent("swept", 2)
	e := s.launchRequest(intent)
	s.Model.Refuse(memcloud.CreateFleet, fault.Missing, codeTemplateNotFound, "The specified launch template does not exist.")
	s.handleMessage(e)
	s.requireLaunchedOnce("swept", 2)
}

func retryMissingTemplate(s *testRun) {
	e := s.launchRequest(s.newIntent("away", 2))
	for range 2 {
		s.Model.Refuse(memcloud.CreateFleet, fault.Missing, codeTemplateNotFound, "The specified launch template does not exist.")
	}
	s.requireFailure(e, fault.Retry)
	s.handleMessage(e)
	s.requireLaunchedOnce("away", 2)
}

// dropExpired tests a message that is expired when it arrives. TestRequestExpiresDuringLaunch
// tests one that expires later.
func dropExpired(s *testRun) {
	e := s.launchRequest(s.newIntent("late", 1))
	s.AdvanceClock(time.Hour)
	s.requireFailure(e, fault.Stale)
	if n := len(s.launchedIDs("late")); n != 0 {
		s.t.Errorf("%d instances", n)
	}
}
