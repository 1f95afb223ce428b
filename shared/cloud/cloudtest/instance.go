package cloudtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var instances = []behaviour{
	{"has all fields", describesWhole},
	{"is found by id, tag and state", findsInstances},
	{"is found among hundreds", findsHundreds},
	{"is omitted if unknown", leavesOutUnknown},
	{"becomes visible late", becomesVisible},
	{"is terminated twice", terminatesTwice},
	{"is terminated despite unknown IDs", terminatesDespiteUnknown},
	{"is rebooted only while it runs", rebootsRunning},
	{"is tagged after creation", tagsAfterwards},
	{"rejects tags of an unknown ID", rejectsTagOfUnknown},
	{"has a status", describesStatus},
}

// noInstance is an id that EC2 does not know.
const noInstance = "i-0123456789abcdef0"

func describesWhole(t *testing.T, s Subject) {
	result := s.launch(t, s.request(t, "whole", 1))
	s.wait(time.Minute)
	found := s.described(t, cloud.InstanceFilter{IDs: ids(result)})
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	got, group := found[0], result.Instances[0]
	want := cloud.Instance{
		ID: ids(result)[0], Type: s.Type, Zone: group.Zone, CapacityType: cloud.OnDemand, State: cloud.Running,
		ImageID: s.Image.ID, SubnetID: group.SubnetID, PrivateDNS: got.PrivateDNS, Launched: got.Launched, Tags: got.Tags,
		SecurityGroups: []string{s.SecurityGroup.ID},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.PrivateDNS == "" || got.Launched.IsZero() || got.Tags["joist/test"] != t.Name() {
		t.Errorf("name, time or tags are missing: %+v", got)
	}
}

func findsInstances(t *testing.T, s Subject) {
	launched := s.launched(t, 3)
	must(t, s.Tag(context.Background(), launched[:1], map[string]string{"one": "1"}))
	must(t, s.Terminate(context.Background(), launched[2:]))
	s.wait(5 * time.Minute)
	mine := map[string]string{"joist/test": t.Name()}
	for _, test := range []struct {
		name   string
		filter cloud.InstanceFilter
		want   []string
	}{
		{"all", cloud.InstanceFilter{Tags: mine}, launched},
		{"by id", cloud.InstanceFilter{IDs: launched[1:2]}, launched[1:2]},
		{"by a duplicate ID", cloud.InstanceFilter{IDs: []string{launched[1], launched[1]}}, launched[1:2]},
		{"by tag", cloud.InstanceFilter{Tags: map[string]string{"one": "1"}}, launched[:1]},
		{"by tag key", cloud.InstanceFilter{Tags: map[string]string{"one": ""}}, launched[:1]},
		{"by two tags", cloud.InstanceFilter{Tags: map[string]string{"one": "1", "joist/test": t.Name()}}, launched[:1]},
		{"by another value", cloud.InstanceFilter{Tags: map[string]string{"one": "2"}}, nil},
		{"by state", cloud.InstanceFilter{Tags: mine, States: []cloud.State{cloud.Running, cloud.Pending}}, launched[:2]},
		{"by terminated state", cloud.InstanceFilter{Tags: mine, States: []cloud.State{cloud.Terminated}}, launched[2:]},
		{"by id and state", cloud.InstanceFilter{IDs: launched, States: []cloud.State{cloud.Terminated}}, launched[2:]},
	} {
		var got []string
		for _, i := range s.described(t, test.filter) {
			got = append(got, i.ID)
		}
		if diff := cmp.Diff(sorted(test.want), sorted(got)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func sorted(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

// findsHundreds needs more than one page, and more filter values than the 200 that EC2 allows in a call.
func findsHundreds(t *testing.T, s Subject) {
	need(t, s.Wait != nil, "Wait")
	launched := s.launched(t, 450)
	if n := len(s.described(t, cloud.InstanceFilter{IDs: launched})); n != 450 {
		t.Errorf("found %d by ID", n)
	}
	mine := map[string]string{"joist/test": t.Name()}
	if n := len(s.described(t, cloud.InstanceFilter{Tags: mine})); n != 450 {
		t.Errorf("found %d by tag", n)
	}
	all := cloud.InstanceFilter{IDs: launched, Tags: mine, States: []cloud.State{cloud.Pending, cloud.Running}}
	if n := len(s.described(t, all)); n != 450 {
		t.Errorf("found %d by ID, tag and state", n)
	}
}

func leavesOutUnknown(t *testing.T, s Subject) {
	launched := s.launched(t, 1)
	if n := len(s.described(t, cloud.InstanceFilter{IDs: []string{noInstance, launched[0]}})); n != 1 {
		t.Errorf("found %d", n)
	}
}

func becomesVisible(t *testing.T, s Subject) {
	need(t, s.Lag != nil && s.Wait != nil, "Lag")
	request := s.request(t, "late", 20)
	s.Lag(30 * time.Second)
	launched := ids(s.launch(t, request))
	if n := len(s.described(t, cloud.InstanceFilter{IDs: launched})); n >= 20 {
		t.Errorf("%d of 20 are visible at once", n)
	}
	s.Wait(30 * time.Second)
	if n := len(s.described(t, cloud.InstanceFilter{IDs: launched})); n != 20 {
		t.Errorf("%d of 20 are visible after the lag", n)
	}
}

func terminatesTwice(t *testing.T, s Subject) {
	launched := s.launched(t, 1)
	must(t, s.Terminate(context.Background(), launched))
	must(t, s.Terminate(context.Background(), launched))
	s.wait(5 * time.Minute)
	must(t, s.Terminate(context.Background(), launched))
	found := s.described(t, cloud.InstanceFilter{IDs: launched})
	if len(found) != 1 || !found[0].State.Gone() {
		t.Errorf("found %+v", found)
	}
}

func terminatesDespiteUnknown(t *testing.T, s Subject) {
	launched := s.launched(t, 2)
	ends := []string{noInstance, launched[0], noInstance[:18] + "1", launched[1]}
	must(t, s.Terminate(context.Background(), ends))
	must(t, s.Terminate(context.Background(), []string{noInstance}))
	must(t, s.Terminate(context.Background(), nil))
	s.wait(5 * time.Minute)
	for _, i := range s.described(t, cloud.InstanceFilter{IDs: launched}) {
		if !i.State.Gone() {
			t.Errorf("%s: state %s", i.ID, i.State)
		}
	}
}

func rebootsRunning(t *testing.T, s Subject) {
	launched := s.launched(t, 1)
	s.wait(time.Minute)
	must(t, s.Reboot(context.Background(), launched[0]))
	must(t, s.Reboot(context.Background(), launched[0]))
	if found := s.described(t, cloud.InstanceFilter{IDs: launched}); len(found) != 1 || found[0].State != cloud.Running {
		t.Errorf("found %+v", found)
	}
	if err := s.Reboot(context.Background(), noInstance); !fault.Is(err, fault.Missing) {
		t.Errorf("an unknown id: %v", err)
	}
	must(t, s.Terminate(context.Background(), launched))
	s.wait(5 * time.Minute)
	if err := s.Reboot(context.Background(), launched[0]); !fault.Is(err, fault.Rejected) {
		t.Errorf("a terminated instance: %v", err)
	}
}

func tagsAfterwards(t *testing.T, s Subject) {
	launched := s.launched(t, 2)
	for _, value := range []string{"first", "second"} {
		must(t, s.Tag(context.Background(), launched, map[string]string{"Name": value, "k": "v"}))
	}
	s.wait(time.Minute)
	for _, i := range s.described(t, cloud.InstanceFilter{IDs: launched}) {
		if i.Tags["Name"] != "second" || i.Tags["k"] != "v" || i.Tags["joist/test"] != t.Name() {
			t.Errorf("%s: tags %v", i.ID, i.Tags)
		}
	}
}

func rejectsTagOfUnknown(t *testing.T, s Subject) {
	wantKind(t, s.Tag(context.Background(), []string{noInstance}, map[string]string{"k": "v"}), fault.Missing)
}

func describesStatus(t *testing.T, s Subject) {
	need(t, s.Impair != nil && s.Plan != nil, "Impair and Plan")
	launched := s.launched(t, 5)
	instance := s.described(t, cloud.InstanceFilter{IDs: launched[:1]})[0]
	since := instance.Launched.Add(time.Second).Truncate(time.Second).UTC()
	s.Impair(launched[0], since)
	s.Plan(launched[1], "instance-retirement", since.Add(time.Hour))
	s.Impair(launched[2], since)
	s.Plan(launched[2], "system-reboot", since.Add(time.Hour))
	s.Impair(launched[3], since)
	s.Impair(launched[3], time.Time{}) // The checks pass again.
	got, err := s.DescribeStatus(context.Background())
	must(t, err)
	for n := range got {
		got[n].Impaired = got[n].Impaired.UTC()
		for i := range got[n].Events {
			got[n].Events[i].NotBefore = got[n].Events[i].NotBefore.UTC()
		}
	}
	byID := func(a, b cloud.Status) int { return strings.Compare(a.InstanceID, b.InstanceID) }
	slices.SortFunc(got, byID)
	planned := func(code string) []cloud.ScheduledEvent {
		return []cloud.ScheduledEvent{{Code: code, NotBefore: since.Add(time.Hour)}}
	}
	want := []cloud.Status{
		{InstanceID: launched[0], Impaired: since},
		{InstanceID: launched[1], Events: planned("instance-retirement")},
		{InstanceID: launched[2], Impaired: since, Events: planned("system-reboot")},
	}
	slices.SortFunc(want, byID)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
