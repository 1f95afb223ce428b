package memcloud_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// site is a furnished cloud with a clock that the test sets.
type site struct {
	*memcloud.Cloud
	memcloud.World
	now    time.Time
	events []busEvent
}

// busEvent is an event that EC2 sends to EventBridge.
type busEvent struct {
	DetailType string `json:"detail-type"`
	Source     string
	Time       time.Time
	Detail     struct {
		ID    string `json:"instance-id"`
		State string
	}
}

func newSite(t *testing.T, options memcloud.Options) *site {
	t.Helper()
	s := &site{now: start}
	options.Now = func() time.Time { return s.now }
	options.Events = func(raw []byte) {
		var e busEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Errorf("event %s: %v", raw, err)
		}
		s.events = append(s.events, e)
	}
	s.Cloud = memcloud.New(options)
	s.World = s.Furnish("web")
	if err := s.EnsureTemplate(context.Background(), s.template("joist-1")); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) template(name string) cloud.Template {
	return cloud.Template{
		Name: name, ImageID: s.ImageAMD64.ID, UserData: "hello", InstanceProfile: s.World.Profile,
		SecurityGroups: []string{s.SecurityGroup.ID},
	}
}

// request returns a request for n instances of the types in every zone.
func (s *site) request(token, capacityType string, n int, types ...string) cloud.FleetRequest {
	out := cloud.FleetRequest{Token: token, Count: n, CapacityType: capacityType, Strategy: "lowest-price"}
	config := cloud.FleetConfig{Template: "joist-1"}
	for _, name := range types {
		for _, subnet := range s.Subnets {
			config.Overrides = append(config.Overrides, cloud.Override{InstanceType: name, SubnetID: subnet.ID, Zone: subnet.Zone})
		}
	}
	out.Configs = []cloud.FleetConfig{config}
	return out
}

func (s *site) launch(t *testing.T, request cloud.FleetRequest) cloud.FleetResult {
	t.Helper()
	out, err := s.CreateFleet(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *site) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.Advance()
}

// EC2 accepts at most 50 launch templates in a fleet.
func TestManyTemplates(t *testing.T) {
	for configs, want := range map[int]fault.Kind{50: "", 51: fault.Invalid} {
		s := newSite(t, memcloud.Options{})
		request := s.request("many", cloud.OnDemand, 1, "m6i.large")
		for i := range configs - 1 {
			config := cloud.FleetConfig{Template: "joist-1", Overrides: []cloud.Override{{InstanceType: "m" + strconv.Itoa(i), SubnetID: s.Subnets[0].ID}}}
			request.Configs = append(request.Configs, config)
		}
		if _, err := s.CreateFleet(t.Context(), request); fault.KindOf(err) != want {
			t.Errorf("%d launch templates: %v, want an error of kind %q", configs, err, want)
		}
	}
}

func TestBuckets(t *testing.T) {
	for _, test := range []struct {
		name    string
		divisor float64
		wait    time.Duration
		admit   int
	}{
		{"burst of five", 1, 0, 5},
		{"refills two tokens per second", 1, 2 * time.Second, 9},
		{"never refills above the burst", 1, time.Hour, 10},
		{"a divisor reduces rate and burst", 5, time.Second, 1},
		{"switched off", -1, 0, 40},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, memcloud.Options{RateDivisor: test.divisor})
			admitted := 0
			for n := range 40 {
				if n == 20 {
					s.pass(test.wait)
				}
				_, err := s.CreateFleet(context.Background(), s.request(strconv.Itoa(n), cloud.OnDemand, 1, "m6i.large"))
				switch {
				case err == nil:
					admitted++
				case !fault.Is(err, fault.Throttled):
					t.Fatal(err)
				}
			}
			if admitted != test.admit {
				t.Errorf("%d calls were admitted, want %d", admitted, test.admit)
			}
			if got := s.Counts()[memcloud.CreateFleet]; got.Calls != 40 || got.Throttled != 40-admitted {
				t.Errorf("Counts = %+v", got)
			}
			for name, tokens := range s.Tokens() {
				if tokens < 0 {
					t.Errorf("bucket %s has %v tokens", name, tokens)
				}
			}
		})
	}
}

func TestThrottledCallDoesNotUseToken(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	s.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	if _, err := s.CreateFleet(context.Background(), s.request("t", cloud.OnDemand, 1, "m6i.large")); !fault.Is(err, fault.Throttled) {
		t.Fatalf("got %v", err)
	}
	s.launch(t, s.request("t", cloud.OnDemand, 2, "m6i.large"))
}

func TestLostResponses(t *testing.T) {
	for _, test := range []struct {
		name     string
		lose     func(*memcloud.Cloud)
		launched int
	}{
		{"response lost", func(c *memcloud.Cloud) { c.LoseAnswer(memcloud.CreateFleet) }, 1},
		{"request lost", func(c *memcloud.Cloud) { c.LoseCall(memcloud.CreateFleet) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, memcloud.Options{})
			test.lose(s.Cloud)
			request := s.request("t", cloud.OnDemand, 1, "m6i.large")
			if _, err := s.CreateFleet(context.Background(), request); !fault.Is(err, fault.Unknown) {
				t.Fatalf("got %v", err)
			}
			if n := len(s.Records()); n != test.launched {
				t.Fatalf("%d instances after the first call", n)
			}
			got := s.launch(t, request)
			if n := len(s.Records()); n != 1 || got.Instances[0].IDs[0] != s.Records()[0].ID {
				t.Fatalf("%d instances after the second call, result %+v", n, got)
			}
		})
	}
}

func TestStrategies(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	one, two := 1.0, 2.0
	request := s.request("", cloud.OnDemand, 1, "m6i.xlarge", "m6i.large")
	if got := s.launch(t, request).Instances[0].InstanceType; got != "m6i.large" {
		t.Errorf("lowest-price chose %s", got)
	}
	request.Strategy = "prioritized"
	for i := range request.Configs[0].Overrides {
		o := &request.Configs[0].Overrides[i]
		o.Priority = &two
		if o.InstanceType == "m6i.xlarge" {
			o.Priority = &one
		}
	}
	if got := s.launch(t, request).Instances[0].InstanceType; got != "m6i.xlarge" {
		t.Errorf("prioritized chose %s", got)
	}
	request.CapacityType, request.Strategy = cloud.Spot, "price-capacity-optimized"
	if got := s.launch(t, request).Instances[0].InstanceType; got != "m6i.large" {
		t.Errorf("price-capacity-optimized chose %s, whose price exceeds the value of the best depth", got)
	}
}

// TestEvenSpot launches with 20 seeds: EC2 sometimes prefers the deeper pool to the cheaper one, unless all are equal.
func TestEvenSpot(t *testing.T) {
	chosen := map[bool]map[string]int{true: {}, false: {}}
	for even, types := range chosen {
		for seed := range int64(20) {
			s := newSite(t, memcloud.Options{Seed: seed, EvenSpot: even})
			request := s.request("", cloud.Spot, 1, "m6i.large", "c6i.large")
			request.Strategy = "price-capacity-optimized"
			types[s.launch(t, request).Instances[0].InstanceType]++
		}
	}
	if chosen[true]["c6i.large"] != 20 || chosen[false]["m6i.large"] == 0 {
		t.Errorf("even pools: %v, others: %v", chosen[true], chosen[false])
	}
}

func TestFleetExceedsResourceBucket(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	s.launch(t, s.request("a", cloud.OnDemand, 999, "m6i.large"))
	got := s.launch(t, s.request("b", cloud.OnDemand, 2, "m6i.large"))
	if len(got.Instances) != 0 || got.Errors[0].Code != "RequestLimitExceeded" {
		t.Errorf("got %+v", got)
	}
}

// TestCapacityComesBack tests that terminated instances free capacity.
func TestCapacityComesBack(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	zone := s.Subnets[0].Zone
	offering := event.Offering{InstanceType: "m6i.large", Zone: zone, CapacityType: cloud.OnDemand}
	s.SetCapacity(offering, 1)
	request := s.request("", cloud.OnDemand, 1, "m6i.large")
	request.Configs[0].Overrides = request.Configs[0].Overrides[:1]
	id := s.launch(t, request).Instances[0].IDs[0]
	if got := s.launch(t, request); len(got.Errors) != 1 || s.Capacity(offering) != 0 {
		t.Fatalf("second fleet = %+v", got)
	}
	s.Fail(id)
	s.pass(time.Minute)
	if got := s.launch(t, request); len(got.Instances) != 1 {
		t.Errorf("third fleet after the first was terminated = %+v", got)
	}
}

// TestBlocked tests that a blocked offering fails with the code until the time.
func TestBlocked(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	s.Block(event.Offering{CapacityType: cloud.Spot}, "MaxSpotInstanceCountExceeded", start.Add(time.Minute))
	s.Shortage(event.Offering{InstanceType: "m6i.large", Zone: s.Subnets[0].Zone}, start.Add(time.Minute))
	got := s.launch(t, s.request("", cloud.Spot, 1, "c6i.large"))
	if len(got.Instances) != 0 || len(got.Errors) != 3 || got.Errors[0].Code != "MaxSpotInstanceCountExceeded" {
		t.Errorf("spot fleet = %+v", got)
	}
	got = s.launch(t, s.request("", cloud.OnDemand, 1, "m6i.large"))
	if len(got.Errors) != 1 || got.Errors[0].Code != "InsufficientInstanceCapacity" || got.Instances[0].Zone != s.Subnets[1].Zone {
		t.Errorf("on-demand fleet = %+v", got)
	}
	s.pass(time.Minute)
	if got := s.launch(t, s.request("", cloud.Spot, 1, "c6i.large")); len(got.Instances) != 1 {
		t.Errorf("spot fleet after the block = %+v", got)
	}
}

// TestAddressesRunOut tests that a subnet fits as many instances as it has addresses.
func TestAddressesRunOut(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	s.SetFreeIPs(s.Subnets[0].ID, 2)
	request := s.request("", cloud.OnDemand, 3, "m6i.large")
	request.Configs[0].Overrides = request.Configs[0].Overrides[:1]
	got := s.launch(t, request)
	if len(got.Instances) != 1 || len(got.Instances[0].IDs) != 2 || got.Errors[0].Code != "InsufficientFreeAddressesInSubnet" {
		t.Errorf("got %+v", got)
	}
}
