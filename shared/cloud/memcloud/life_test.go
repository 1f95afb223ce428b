package memcloud_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

func TestSpotInstanceLifecycle(t *testing.T) {
	s := newSite(t, memcloud.Options{Seed: 3})
	result := s.launch(t, s.request("t", cloud.Spot, 1, "m6i.large"))
	id := result.Instances[0].IDs[0]
	if s.NextChange().IsZero() {
		t.Fatal("a pending instance has no next change")
	}
	s.pass(s.NextChange().Sub(s.now))
	boots := s.Booted()
	if len(boots) != 1 || boots[0].ID != id || boots[0].UserData != "hello" || boots[0].State != cloud.Running {
		t.Fatalf("booted %+v", boots)
	}
	if len(s.Booted()) != 0 {
		t.Error("Booted returned the same boot twice")
	}
	if !s.InterruptSpot(id) || s.InterruptSpot(id) {
		t.Error("a spot instance got a second warning")
	}
	s.pass(memcloud.SpotNotice - time.Second)
	if r, _ := s.Record(id); r.State != cloud.Running {
		t.Errorf("state %s before the deadline", r.State)
	}
	s.pass(time.Second)
	s.pass(30 * time.Second)
	var got []string
	for _, e := range s.events {
		got = append(got, e.DetailType+" "+e.Detail.State)
	}
	const change = "EC2 Instance State-change Notification "
	want := []string{
		change + "pending", change + "running", "EC2 Spot Instance Interruption Warning ",
		change + "shutting-down", change + "terminated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if at := s.NextChange(); !at.IsZero() {
		t.Errorf("a change is due at %v", at)
	}
}

func TestOnDemandIsNotInterrupted(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	id := s.launch(t, s.request("t", cloud.OnDemand, 1, "m6i.large")).Instances[0].IDs[0]
	if s.InterruptSpot(id) || s.Rebalance(id) || s.InterruptSpot("i-0") {
		t.Error("warned")
	}
}

func TestTerminatedIsListedForAnHour(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	id := s.launch(t, s.request("t", cloud.OnDemand, 1, "m6i.large")).Instances[0].IDs[0]
	s.pass(time.Minute)
	s.Fail(id)
	for _, test := range []struct {
		after time.Duration
		want  []cloud.State
	}{
		{29 * time.Second, []cloud.State{cloud.ShuttingDown}},
		{time.Second, []cloud.State{cloud.Terminated}},
		{time.Hour - time.Second, []cloud.State{cloud.Terminated}},
		{time.Second, nil},
	} {
		s.pass(test.after)
		if diff := cmp.Diff(test.want, s.states(t)); diff != "" {
			t.Errorf("after another %v: %s", test.after, diff)
		}
	}
	if len(s.Records()) != 1 {
		t.Error("Records does not list the instance")
	}
}

func (s *site) states(t *testing.T) []cloud.State {
	t.Helper()
	found, err := s.DescribeInstances(context.Background(), cloud.InstanceFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var out []cloud.State
	for _, i := range found {
		out = append(out, i.State)
	}
	return out
}

func TestCost(t *testing.T) {
	s := newSite(t, memcloud.Options{})
	s.SetPrice(event.Offering{InstanceType: "m6i.large", Zone: s.Subnets[0].Zone, CapacityType: cloud.OnDemand}, 0.05)
	id := s.launch(t, s.request("t", cloud.OnDemand, 1, "m6i.large")).Instances[0].IDs[0]
	if got := s.DollarsPerHour(); got != 0.05 {
		t.Errorf("DollarsPerHour = %v", got)
	}
	s.pass(time.Minute)
	r, _ := s.Record(id)
	s.pass(time.Hour - s.now.Sub(r.Running))
	if got := s.Dollars(); math.Abs(got-0.05) > 1e-9 {
		t.Errorf("Dollars after an hour = %v", got)
	}
	s.Fail(id)
	s.pass(time.Hour)
	if got := s.Dollars(); math.Abs(got-0.05) > 1e-9 || s.DollarsPerHour() != 0 {
		t.Errorf("Dollars after termination = %v, DollarsPerHour = %v", got, s.DollarsPerHour())
	}
}

func TestLag(t *testing.T) {
	s := newSite(t, memcloud.Options{Seed: 1, Faults: memcloud.Faults{Lag: 30 * time.Second}, Boot: time.Second})
	ids := s.launch(t, s.request("t", cloud.OnDemand, 40, "m6i.large")).Instances[0].IDs
	seen := map[int]bool{}
	late := 0
	for range 62 {
		states := s.states(t)
		seen[len(states)] = true
		for _, state := range states {
			if r := s.now.Sub(start); state == cloud.Pending && r > 2*time.Second {
				late++
			}
		}
		s.pass(time.Second)
	}
	if len(seen) < 10 || !seen[len(ids)] {
		t.Errorf("counts of visible instances: %v", seen)
	}
	if late == 0 {
		t.Error("no running instance was listed as pending")
	}
	if err := s.Tag(context.Background(), ids, map[string]string{"Name": "x"}); err != nil {
		t.Fatal(err)
	}
	if n := s.named(t); n == len(ids) {
		t.Error("all tags are visible at once")
	}
	s.pass(30 * time.Second)
	if n := s.named(t); n != len(ids) {
		t.Errorf("%d tags are visible after the lag", n)
	}
}

// A share of the changes and of the boots takes minutes.
func TestLongLagsAndSlowBoots(t *testing.T) {
	s := newSite(t, memcloud.Options{Seed: 1, Faults: memcloud.Faults{Lag: 30 * time.Second, LongLag: 0.3, SlowBoot: 0.3}, Boot: time.Second})
	ids := s.launch(t, s.request("t", cloud.OnDemand, 40, "m6i.large")).Instances[0].IDs
	s.pass(31 * time.Second)
	if n := len(s.states(t)); n == len(ids) {
		t.Error("all instances are visible after 31 s")
	}
	s.pass(memcloud.MaxLag)
	if n := len(s.states(t)); n != len(ids) {
		t.Errorf("%d of %d instances are visible after %s", n, len(ids), memcloud.MaxLag)
	}
	slow := 0
	for _, r := range s.Records() {
		if r.Running.Sub(start) > 30*time.Second {
			slow++
		}
	}
	if got := s.InjectedFaults(); slow == 0 || got["slow-boot"] < slow || got["long-lag"] == 0 || got["lag"] == 0 {
		t.Errorf("%d slow boots, and faults %v", slow, got)
	}
}

func (s *site) named(t *testing.T) int {
	t.Helper()
	found, err := s.DescribeInstances(context.Background(), cloud.InstanceFilter{Tags: map[string]string{"Name": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestSeed tests that a seed reproduces all results, and that another seed does not.
func TestSeed(t *testing.T) {
	run := func(seed int64) []memcloud.Record {
		s := newSite(t, memcloud.Options{Seed: seed, Faults: memcloud.Faults{Lag: 30 * time.Second, LostCall: 0.3}})
		for n := range 20 {
			_, _ = s.CreateFleet(context.Background(), s.request("", cloud.Spot, 1+n%3, "m6i.large", "c6i.large"))
			s.pass(5 * time.Second)
		}
		return s.Records()
	}
	if diff := cmp.Diff(run(7), run(7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(run(7), run(8)) {
		t.Error("two seeds gave the same events")
	}
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		name  string
		reuse bool
	}{{"the next", false}, {"the lowest", true}} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, memcloud.Options{Faults: memcloud.Faults{ReuseAddresses: test.reuse}})
			first := s.launch(t, s.request("", cloud.OnDemand, 1, "m6i.large")).Instances[0].IDs[0]
			s.Fail(first)
			s.pass(time.Minute)
			second := s.launch(t, s.request("", cloud.OnDemand, 1, "m6i.large")).Instances[0].IDs[0]
			a, _ := s.Record(first)
			b, _ := s.Record(second)
			if (a.PrivateDNS == b.PrivateDNS) != test.reuse {
				t.Errorf("names %s, then %s", a.PrivateDNS, b.PrivateDNS)
			}
			if !test.reuse && a.PrivateDNS != "ip-10-0-0-4.us-west-2.compute.internal" {
				t.Errorf("name of the first instance = %s", a.PrivateDNS)
			}
		})
	}
}
