package cloudtest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var fleets = []behaviour{
	{"launches the requested number", launchesAll},
	{"launches spot instances", launchesSpot},
	{"repeats the result for the same token", repeatsResult},
	{"rejects another request with the same token", rejectsChangedRequest},
	{"repeats a failure for the same token", repeatsFailure},
	{"returns a lost launch for its token", findsLostLaunch},
	{"does not use the token of a throttled call", keepsThrottledToken},
	{"launches a part and lists errors", launchesPart},
	{"launches in the next zone", triesNextZone},
	{"lists a shortage as an error", reportsShortage},
	{"lists a missing template as an error", reportsMissingTemplate},
	{"rejects a count of zero", rejectsZeroCount},
	{"rejects duplicate types in a zone", rejectsDuplicateTypes},
}

func launchesAll(t *testing.T, s Subject) {
	request := s.request(t, "all", 3)
	got := s.launch(t, request)
	if n := len(ids(got)); n != 3 || len(got.Errors) != 0 || got.FleetID == "" {
		t.Fatalf("got %+v", got)
	}
	for _, group := range got.Instances {
		at := slices.IndexFunc(s.Subnets, func(x cloud.Subnet) bool { return x.ID == group.SubnetID })
		if at < 0 || s.Subnets[at].Zone != group.Zone {
			t.Errorf("subnet %q is not in zone %q", group.SubnetID, group.Zone)
		}
		if group.InstanceType != s.Type || group.Template != templateName || group.CapacityType != cloud.OnDemand {
			t.Errorf("got %+v", group)
		}
	}
}

func launchesSpot(t *testing.T, s Subject) {
	request := s.request(t, "spot", 1)
	request.CapacityType, request.Strategy = cloud.Spot, "price-capacity-optimized"
	got := s.launch(t, request)
	if len(ids(got)) != 1 || got.Instances[0].CapacityType != cloud.Spot {
		t.Fatalf("got %+v", got)
	}
	s.wait(0)
	found := s.described(t, cloud.InstanceFilter{IDs: ids(got)})
	if len(found) != 1 || found[0].CapacityType != cloud.Spot {
		t.Errorf("described %+v", found)
	}
}

func repeatsResult(t *testing.T, s Subject) {
	request := s.request(t, "again", 2)
	first, second := s.launch(t, request), s.launch(t, request)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second result differs: %s", diff)
	}
	s.wantCount(t, 2)
}

// wantCount checks how many instances this behaviour has launched.
func (s Subject) wantCount(t *testing.T, want int) {
	t.Helper()
	s.wait(0)
	found := s.described(t, cloud.InstanceFilter{Tags: map[string]string{"joist/test": t.Name()}})
	if len(found) != want {
		t.Errorf("%d instances have the tag, want %d", len(found), want)
	}
}

func rejectsChangedRequest(t *testing.T, s Subject) {
	request := s.request(t, "mismatch", 1)
	s.launch(t, request)
	request.Count = 2
	_, err := s.CreateFleet(context.Background(), request)
	wantKind(t, err, fault.Conflict)
	s.wantCount(t, 1)
}

func repeatsFailure(t *testing.T, s Subject) {
	need(t, s.Leave != nil, "Leave")
	zone := s.Subnets[0].Zone
	s.Leave(zone, 0)
	request := s.request(t, "failed", 1, s.Subnets[0])
	first := s.launch(t, request)
	if len(ids(first)) != 0 || len(first.Errors) == 0 {
		t.Fatalf("got %+v", first)
	}
	s.Leave(zone, 10)
	if diff := cmp.Diff(first, s.launch(t, request)); diff != "" {
		t.Errorf("the second failure differs: %s", diff)
	}
	request.Token = "new"
	if n := len(ids(s.launch(t, request))); n != 1 {
		t.Errorf("a new token launched %d instances", n)
	}
}

func findsLostLaunch(t *testing.T, s Subject) {
	need(t, s.Lose != nil, "Lose")
	request := s.request(t, "lost", 1)
	s.Lose("ec2:CreateFleet")
	_, err := s.CreateFleet(context.Background(), request)
	wantKind(t, err, fault.Unknown)
	found := ids(s.launch(t, request))
	s.wantCount(t, 1)
	if len(s.described(t, cloud.InstanceFilter{IDs: found})) != 1 {
		t.Errorf("result %v, want the instance that was launched", found)
	}
}

func keepsThrottledToken(t *testing.T, s Subject) {
	need(t, s.Throttle != nil, "Throttle")
	request := s.request(t, "throttled", 1)
	s.Throttle("ec2:CreateFleet")
	_, err := s.CreateFleet(context.Background(), request)
	wantKind(t, err, fault.Throttled)
	request.Count = 2
	if n := len(ids(s.launch(t, request))); n != 2 {
		t.Errorf("got %d instances", n)
	}
}

func launchesPart(t *testing.T, s Subject) {
	need(t, s.Leave != nil, "Leave")
	s.Leave(s.Subnets[0].Zone, 2)
	got := s.launch(t, s.request(t, "part", 5, s.Subnets[0]))
	if len(ids(got)) != 2 {
		t.Errorf("launched %d, want the 2 available", len(ids(got)))
	}
	wantShortage(t, got, s.Subnets[0])
}

func wantShortage(t *testing.T, got cloud.FleetResult, subnet cloud.Subnet) {
	t.Helper()
	if len(got.Errors) != 1 {
		t.Fatalf("got errors %+v, want one", got.Errors)
	}
	e := got.Errors[0]
	if e.Code != "InsufficientInstanceCapacity" || e.Message == "" {
		t.Errorf("got %q: %q", e.Code, e.Message)
	}
	if e.InstanceType == "" || e.Zone != subnet.Zone || e.SubnetID != subnet.ID || e.Template != templateName {
		t.Errorf("the error does not identify the override: %+v", e)
	}
}

func triesNextZone(t *testing.T, s Subject) {
	need(t, s.Leave != nil, "Leave")
	s.Leave(s.Subnets[0].Zone, 1)
	got := s.launch(t, s.request(t, "on", 3, s.Subnets[:2]...))
	if len(ids(got)) != 3 {
		t.Errorf("got %d, want 3", len(ids(got)))
	}
}

func reportsShortage(t *testing.T, s Subject) {
	need(t, s.Leave != nil, "Leave")
	s.Leave(s.Subnets[1].Zone, 0)
	got := s.launch(t, s.request(t, "short", 2, s.Subnets[1]))
	if len(ids(got)) != 0 {
		t.Errorf("launched %v without capacity", ids(got))
	}
	wantShortage(t, got, s.Subnets[1])
}

func reportsMissingTemplate(t *testing.T, s Subject) {
	request := s.request(t, "no template", 1)
	request.Configs[0].Template = "joist-nowhere"
	got := s.launch(t, request)
	if len(ids(got)) != 0 || len(got.Errors) == 0 {
		t.Fatalf("got %+v", got)
	}
	if code := got.Errors[0].Code; code != "InvalidLaunchTemplateName.NotFoundException" {
		t.Errorf("got code %q", code)
	}
}

func rejectsDuplicateTypes(t *testing.T, s Subject) {
	_, err := s.CreateFleet(context.Background(), s.request(t, "twice", 1, s.Subnets[0], s.Subnets[0]))
	wantKind(t, err, fault.Invalid)
	s.wantCount(t, 0)
}

func rejectsZeroCount(t *testing.T, s Subject) {
	_, err := s.CreateFleet(context.Background(), s.request(t, "none", 0))
	wantKind(t, err, fault.Invalid)
}
