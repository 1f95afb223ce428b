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
	try  func(s *scene)
}

var behaviours = []behaviour{
	{"a death before and after every step", diesEverywhere},
	{"a duplicate at the same time", takesDuplicates},
	{"a redelivery afterwards", takesRedelivery},
	{"a request that is sent again", takesResend},
	{"launched, and the answer is lost", findsLostAnswer},
	{"the call is lost", repeatsLostCall},
	{"the connection fails again and again", outlastsFailures},
	{"throttled, and nothing is lost", waitsOutThrottling},
	{"fulfilled in part", settlesInPart},
	{"errors inside a 200", settlesErrorsInside},
	{"throttled inside a 200", settlesThrottlingInside},
	{"a token mismatch with instances", looksAfterMismatch},
	{"a token mismatch without instances", waitsAfterMismatch},
	{"a template that is gone", remakesTemplate},
	{"a template that stays away", waitsForTemplate},
	{"expired", dropsExpired},
}

func diesEverywhere(s *scene) {
	intent := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			intent++
			id := "die-" + string(rune('a'+intent))
			s.said, s.steps, s.dieAt, s.after = nil, 0, at, after
			e := s.request(s.intent(id, 2))
			died, err := s.deliver(e)
			s.must(err)
			if !died {
				s.once(id, 2)
				break
			}
			s.t.Logf("died %s", name(after, s.last))
			s.dieAt = 0
			s.Pass(30 * time.Second)
			s.obeyed(e)
			s.once(id, 2)
		}
	}
	if intent != 2*(3+1) {
		s.t.Errorf("%d lives: it died at %d steps, and there are 3", intent, intent/2-1)
	}
}

func takesDuplicates(s *scene) {
	e := s.request(s.intent("twice", 3))
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = s.deliver(e) })
	}
	all.Wait()
	for _, err := range errs {
		s.must(err)
	}
	s.once("twice", 3)
}

func takesRedelivery(s *scene) {
	e := s.request(s.intent("again", 2))
	s.obeyed(e)
	s.Pass(90 * time.Second)
	s.obeyed(e)
	s.once("again", 2)
}

// takesResend sends the intent anew, as lifecycle does every 30 s, also when its
// instances have ended meanwhile: what ended is not started again.
func takesResend(s *scene) {
	intent := s.intent("resent", 2)
	s.obeyed(s.request(intent))
	s.Pass(30 * time.Second)
	s.obeyed(s.request(intent))
	for id := range s.launched("resent") {
		s.must(s.EC2.Terminate(s.t.Context(), []string{id}))
	}
	s.Pass(2 * time.Minute)
	s.obeyed(s.request(intent))
	s.once("resent", 2)
}

func (s *scene) fails(e event.Envelope, want fault.Kind) {
	s.t.Helper()
	if _, err := s.deliver(e); fault.KindOf(err) != want {
		s.t.Fatalf("got %v, want kind %q", err, want)
	}
	s.silent()
}

func findsLostAnswer(s *scene) {
	e := s.request(s.intent("unheard", 3))
	s.Model.LoseAnswer(memcloud.CreateFleet)
	s.fails(e, fault.Unknown)
	if n := len(s.launched("unheard")); n != 3 {
		s.t.Fatalf("%d instances before the second try", n)
	}
	s.obeyed(e)
	if !s.once("unheard", 3).Spent {
		s.t.Error("it is not spent")
	}
}

func repeatsLostCall(s *scene) {
	e := s.request(s.intent("lost", 1))
	s.Model.LoseCall(memcloud.CreateFleet)
	s.fails(e, fault.Unknown)
	s.obeyed(e)
	s.once("lost", 1)
}

func outlastsFailures(s *scene) {
	e := s.request(s.intent("storm", 2))
	for range 2 {
		s.Model.LoseAnswer(memcloud.CreateFleet)
		s.Model.LoseCall(memcloud.CreateFleet)
		s.Model.Refuse(memcloud.CreateFleet, fault.Retry, "InternalError", "An internal error has occurred.")
	}
	for range 6 {
		s.Pass(3 * time.Second)
		if _, err := s.deliver(e); !fault.Is(err, fault.Unknown, fault.Retry) {
			s.t.Fatalf("got %v", err)
		}
		s.silent()
	}
	s.Pass(3 * time.Second)
	s.obeyed(e)
	s.once("storm", 2)
}

func waitsOutThrottling(s *scene) {
	e := s.request(s.intent("slow", 2))
	s.Model.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	s.fails(e, fault.Throttled)
	s.obeyed(e)
	s.once("slow", 2)
}

// only leaves n instances of the type in the first zone and none elsewhere.
func (s *scene) only(n int) {
	for i, subnet := range s.World.Subnets {
		left := 0
		if i == 0 {
			left = n
		}
		s.Model.SetCapacity(memcloud.Offering{Type: "m6i.large", Zone: subnet.Zone, CapacityType: cloud.OnDemand}, left)
	}
}

func settlesInPart(s *scene) {
	s.only(2)
	e := s.request(s.intent("part", 5))
	s.obeyed(e)
	s.only(9)
	s.obeyed(e)
	settled := s.once("part", 2)
	if settled.Wanted != 5 || !settled.Spent || len(settled.Refusals) == 0 {
		s.t.Errorf("settled as %+v", settled)
	}
}

// settlesErrorsInside has EC2 refuse every override inside its answer, with each
// of the codes: a refusal, and never a launch later.
func settlesErrorsInside(s *scene) {
	for _, code := range []string{
		"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported",
		"InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded",
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "UnauthorizedOperation", "TomorrowsCode",
	} {
		s.said = nil
		s.Pass(3 * time.Second)
		s.Model.Block(memcloud.Offering{Type: "m6i.large"}, code, s.Now().Add(time.Hour))
		id := "inside-" + code
		e := s.request(s.intent(id, 2))
		s.obeyed(e)
		s.Model.Unblock()
		s.obeyed(e)
		settled := s.once(id, 0)
		if !settled.Spent || settled.Refusals[0].Code != code {
			s.t.Errorf("%s: settled as %+v", code, settled)
		}
	}
}

// settlesThrottlingInside uses the bucket of instances up: EC2 says so inside its
// answer, and blames no offering.
func settlesThrottlingInside(s *scene) {
	s.Pass(time.Hour)
	for i := range 2 {
		s.said = nil
		s.obeyed(s.request(s.intent("large-"+string(rune('a'+i)), 500)))
	}
	s.said = nil
	s.obeyed(s.request(s.intent("over", 100)))
	settled := s.once("over", 0)
	if r := settled.Refusals[0]; r.Code != "RequestLimitExceeded" || len(r.Blamed) != 0 {
		s.t.Errorf("settled as %+v", settled)
	}
}

// mismatch uses the token of an intent up with another body.
func (s *scene) mismatch(intentOf string, n int) event.Envelope {
	s.t.Helper()
	intent := s.intent(intentOf, n)
	s.must(s.EC2.EnsureTemplate(s.t.Context(), intent.Templates[0]))
	other := intent.Fleet
	other.Count++
	_, err := s.EC2.CreateFleet(s.t.Context(), other)
	s.must(err)
	s.Pass(time.Minute)
	return s.request(intent)
}

func looksAfterMismatch(s *scene) {
	e := s.mismatch("other", 2)
	s.obeyed(e)
	s.obeyed(e)
	if settled := s.once("other", 3); !settled.Spent {
		s.t.Errorf("settled as %+v", settled)
	}
}

func waitsAfterMismatch(s *scene) {
	s.Model.Shortage(memcloud.Offering{}, s.Now().Add(time.Hour))
	e := s.mismatch("empty", 1)
	s.Model.Unblock()
	s.fails(e, fault.Unknown)
	if n := len(s.launched("empty")); n != 0 {
		s.t.Errorf("%d instances", n)
	}
}

const templateGone = "InvalidLaunchTemplateName.NotFoundException"

func remakesTemplate(s *scene) {
	intent := s.intent("swept", 2)
	e := s.request(intent)
	s.Model.Refuse(memcloud.CreateFleet, fault.Missing, templateGone, "The specified launch template does not exist.")
	s.obeyed(e)
	s.once("swept", 2)
}

func waitsForTemplate(s *scene) {
	e := s.request(s.intent("away", 2))
	for range 2 {
		s.Model.Refuse(memcloud.CreateFleet, fault.Missing, templateGone, "The specified launch template does not exist.")
	}
	s.fails(e, fault.Retry)
	s.obeyed(e)
	s.once("away", 2)
}

// dropsExpired is host's work for a message that comes late, and the launcher's
// for one that dies on the way: see TestExpiredMeanwhile.
func dropsExpired(s *scene) {
	e := s.request(s.intent("late", 1))
	s.Pass(time.Hour)
	s.fails(e, fault.Stale)
	if n := len(s.launched("late")); n != 0 {
		s.t.Errorf("%d instances", n)
	}
}
