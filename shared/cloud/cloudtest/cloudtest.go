// Package cloudtest is what every implementation of package cloud has to do,
// as one suite of behaviours: the model, the adapter over the fake wire, and
// the adapter over a real account.
//
// The idea: a behaviour is a function of a Subject, an account in which a few
// things are known to exist. Some behaviours need a hand inside the account
// (to make a shortage, to lose an answer); where the subject has no such hand
// they are skipped, and the skip is visible.
package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Cloud is all of package cloud.
type Cloud interface {
	cloud.Launcher
	cloud.Network
	cloud.Placements
	cloud.Images
	cloud.Clusters
	cloud.Profiles
	cloud.Statuses
	cloud.Rehearsal
	cloud.Market
	cloud.Prices
	cloud.ZonalShifts
}

// Subject is an account to be tried. Nothing may run in it.
type Subject struct {
	Cloud
	World
	Features
}

// World is what exists in the account.
type World struct {
	// Region is that of the account.
	Region string
	// Cluster is an EKS cluster, and ImageParameter an SSM parameter that holds
	// the id of Image.
	Cluster        cloud.ClusterInfo
	ImageParameter string
	// Subnets are in at least two zones, and are tagged TagKey: TagValue; so is
	// SecurityGroup. Nothing else is.
	Subnets          []cloud.Subnet
	SecurityGroup    cloud.SecurityGroup
	TagKey, TagValue string
	// Reservations and PlacementGroups are all in the account. The first
	// reservation is of Type, in the zone of the first subnet.
	Reservations    []cloud.Reservation
	PlacementGroups []cloud.PlacementGroup
	// Image carries the tag joist/image: yes, as nothing else does.
	Image cloud.Image
	// Type is an instance type of Image's architecture that each zone offers.
	Type string
	// Role and OtherRole may be put into instance profiles.
	Role, OtherRole string
}

// Features are hands inside the account; a nil one skips what needs it.
// Actions are named as IAM names them: "ec2:CreateFleet".
type Features struct {
	// Wait lets time pass until everything is visible and settled.
	Wait func(time.Duration)
	// Leave leaves n on-demand instances of Type in the zone.
	Leave func(zone string, n int)
	// Deny takes the right to an action away until allow is called.
	Deny func(action string) (allow func())
	// Throttle refuses the next call of an action for its rate.
	Throttle func(action string)
	// Lose lets the next call of an action take effect and answer nothing.
	Lose func(action string)
	// Lag makes new things invisible for up to the duration from now on.
	Lag func(time.Duration)
	// Impair lets the status checks of an instance fail since a time.
	Impair func(id string, since time.Time)
	// Shift keeps the cluster away from a zone from now on; one that lasts for 0
	// is AWS's own and has no end.
	Shift func(zoneID string, lasts time.Duration)
	// Plan schedules an event for an instance.
	Plan func(id, code string, notBefore time.Time)
}

// behaviour is one thing that an implementation has to do.
type behaviour struct {
	name string
	try  func(t *testing.T, s Subject)
}

// Run tries every behaviour, each on a subject of its own.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	for _, group := range []struct {
		name       string
		behaviours []behaviour
	}{
		{"fleet", fleets}, {"template", templates}, {"instance", instances}, {"network", networks}, {"placement", placements},
		{"image", images}, {"cluster", clusters}, {"profile", profiles}, {"rehearsal", rehearsals}, {"fault", faults}, {"market", markets},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, b := range group.behaviours {
				t.Run(b.name, func(t *testing.T) { b.try(t, subject(t)) })
			}
		})
	}
}

// need skips the behaviour where the subject lacks a hand.
func need(t *testing.T, has bool, feature string) {
	t.Helper()
	if !has {
		t.Skip("the subject has no " + feature)
	}
}

// must fails the behaviour on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantKind fails the behaviour unless the error is of the kind.
func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != kind {
		t.Fatalf("got kind %q (%v), want %q", got, err, kind)
	}
}

const templateName = "joist-cloudtest"

// template is one that boots Image.
func (s Subject) template(name string) cloud.Template {
	return cloud.Template{
		Name: name, ImageID: s.Image.ID, UserData: "#!/bin/sh\n",
		SecurityGroups: []string{s.SecurityGroup.ID},
		BlockDevices:   []cloud.BlockDevice{{Device: "/dev/xvda", SizeGiB: 20, Type: "gp3"}},
		Metadata:       cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
		Tags:           map[string]string{"joist/test": "template"},
		TagSets:        []cloud.TagSet{{Resource: "volume", Tags: map[string]string{"joist/test": "volume"}}},
	}
}

// request asks for n on-demand instances of Type, in the subnets given or in
// any; the template is made sure of.
func (s Subject) request(t *testing.T, token string, n int, subnets ...cloud.Subnet) cloud.FleetRequest {
	t.Helper()
	must(t, s.EnsureTemplate(context.Background(), s.template(templateName)))
	if len(subnets) == 0 {
		subnets = s.Subnets
	}
	var overrides []cloud.Override
	for _, subnet := range subnets {
		overrides = append(overrides, cloud.Override{InstanceType: s.Type, SubnetID: subnet.ID, Zone: subnet.Zone})
	}
	return cloud.FleetRequest{
		Token: token, Count: n, CapacityType: cloud.OnDemand, Strategy: "lowest-price",
		Configs: []cloud.FleetConfig{{Template: templateName, Overrides: overrides}},
		TagSets: []cloud.TagSet{{Resource: "instance", Tags: map[string]string{"joist/test": t.Name()}}},
	}
}

// launch calls CreateFleet and fails the behaviour on an error.
func (s Subject) launch(t *testing.T, request cloud.FleetRequest) cloud.FleetResult {
	t.Helper()
	out, err := s.CreateFleet(context.Background(), request)
	must(t, err)
	return out
}

// launched launches n instances and gives their ids, visible already.
func (s Subject) launched(t *testing.T, n int) []string {
	t.Helper()
	out := ids(s.launch(t, s.request(t, "", n)))
	if len(out) != n {
		t.Fatalf("%d instances were launched, want %d", len(out), n)
	}
	s.wait(time.Minute)
	return out
}

func (s Subject) wait(d time.Duration) {
	if s.Wait != nil {
		s.Wait(d)
	}
}

func ids(r cloud.FleetResult) []string {
	var out []string
	for _, group := range r.Instances {
		out = append(out, group.IDs...)
	}
	return out
}

// described describes and fails the behaviour on an error.
func (s Subject) described(t *testing.T, filter cloud.InstanceFilter) []cloud.Instance {
	t.Helper()
	out, err := s.DescribeInstances(context.Background(), filter)
	must(t, err)
	return out
}
