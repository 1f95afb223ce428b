// Package cloudtest is the conformance suite of package cloud, for the model, for the adapter over a fake AWS, and
// for the adapter over a real account.
//
// A behaviour is a function of a Subject, an account with a few known resources. Some behaviours need control over
// the account (to cause a shortage, to lose a response); they are visibly skipped if the subject does not provide it.
package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Cloud is all interfaces of package cloud.
type Cloud interface {
	cloud.Launcher
	cloud.Network
	cloud.Placements
	cloud.Images
	cloud.Clusters
	cloud.Profiles
	cloud.Statuses
	cloud.DryRunner
	cloud.Market
	cloud.Prices
	cloud.ZonalShifts
}

// Subject is an account under test. It must have no instances.
type Subject struct {
	Cloud
	World
	Features
}

// World is the known resources of the account.
type World struct {
	// Region is the account's region.
	Region string
	// Cluster is an EKS cluster, and ImageParameter an SSM parameter with the id of Image.
	Cluster        cloud.ClusterInfo
	ImageParameter string
	// Subnets are in at least two zones. They and SecurityGroup have the tag TagKey: TagValue, and no other resource
	// does.
	Subnets          []cloud.Subnet
	SecurityGroup    cloud.SecurityGroup
	TagKey, TagValue string
	// Reservations and PlacementGroups are all of the account's. The first reservation is of Type, in the zone of the
	// first subnet.
	Reservations    []cloud.Reservation
	PlacementGroups []cloud.PlacementGroup
	// Image is the only resource with the tag joist/image: yes.
	Image cloud.Image
	// Type is an instance type of Image's architecture that every zone offers.
	Type string
	// Role and OtherRole may be used in instance profiles.
	Role, OtherRole string
}

// Features are functions that control the account; behaviours that need a nil one are skipped. Actions have IAM's
// names: "ec2:CreateFleet".
type Features struct {
	// Wait lets time pass until all changes are visible.
	Wait func(time.Duration)
	// Leave limits the zone to n more on-demand instances of Type.
	Leave func(zone string, n int)
	// Deny removes the permission for an action until allow is called.
	Deny func(action string) (allow func())
	// Throttle throttles the next call of an action. mend ends that if the call did not need all of its
	// requests.
	Throttle func(action string) (mend func())
	// Lose loses the response of the next call of an action, after its effect.
	Lose func(action string)
	// Lag makes new resources invisible for up to the duration from now on.
	Lag func(time.Duration)
	// Impair makes the status checks of an instance fail since a time.
	Impair func(id string, since time.Time)
	// Shift starts a zonal shift away from a zone; with a duration of 0 it is an autoshift without an end.
	Shift func(zoneID string, lasts time.Duration)
	// Plan schedules an event for an instance.
	Plan func(id, code string, notBefore time.Time)
}

// behaviour is one test of the suite.
type behaviour struct {
	name string
	try  func(t *testing.T, s Subject)
}

// Run runs every behaviour, each with its own subject.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	for _, group := range []struct {
		name       string
		behaviours []behaviour
	}{
		{"fleet", fleets}, {"template", templates}, {"instance", instances}, {"network", networks}, {"placement", placements},
		{"image", images}, {"cluster", clusters}, {"profile", profiles}, {"dry run", dryRuns}, {"fault", faults}, {"market", markets},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, b := range group.behaviours {
				t.Run(b.name, func(t *testing.T) { b.try(t, subject(t)) })
			}
		})
	}
}

// need skips the behaviour if the subject lacks a feature.
func need(t *testing.T, has bool, feature string) {
	t.Helper()
	if !has {
		t.Skip("the subject does not support " + feature)
	}
}

// must fails the behaviour on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantKind fails the behaviour unless the error has the kind.
func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != kind {
		t.Fatalf("error kind %q (%v), want %q", got, err, kind)
	}
}

const templateName = "joist-cloudtest"

// template returns a template that boots Image.
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

// request returns a request for n on-demand instances of Type, in the given subnets or in all; it creates the
// template.
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

// launch calls CreateFleet, and fails the behaviour on an error.
func (s Subject) launch(t *testing.T, request cloud.FleetRequest) cloud.FleetResult {
	t.Helper()
	out, err := s.CreateFleet(context.Background(), request)
	must(t, err)
	return out
}

// launched launches n instances, waits until they are visible, and returns their ids.
func (s Subject) launched(t *testing.T, n int) []string {
	t.Helper()
	out := ids(s.launch(t, s.request(t, "", n)))
	if len(out) != n {
		t.Fatalf("launched %d instances, want %d", len(out), n)
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

// described returns the instances and fails the behaviour on an error.
func (s Subject) described(t *testing.T, filter cloud.InstanceFilter) []cloud.Instance {
	t.Helper()
	out, err := s.DescribeInstances(context.Background(), filter)
	must(t, err)
	return out
}
