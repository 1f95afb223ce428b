package cloudtest

import (
	"context"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var dryRuns = []behaviour{
	{"succeeds and changes nothing", dryRunChangesNothing},
	{"is denied with its action", dryRunIsDenied},
	{"is throttled", dryRunIsThrottled},
	{"finds a missing template", dryRunFindsMissingTemplate},
	{"finds a type that the region does not offer", dryRunFindsMissingType},
}

// dryRun is one dry run and its action.
type dryRun struct {
	action string
	try    func(s Subject, t *testing.T) error
}

var dryRunCalls = []dryRun{
	{"ec2:CreateLaunchTemplate", func(s Subject, _ *testing.T) error {
		return s.TryTemplate(context.Background(), s.template("joist-dry-run"))
	}},
	{"ec2:CreateFleet", func(s Subject, t *testing.T) error {
		return s.TryFleet(context.Background(), s.request(t, "dry-run", 1))
	}},
	{"ec2:RunInstances", func(s Subject, t *testing.T) error {
		s.request(t, "", 1)
		return s.TryRun(context.Background(), cloud.RunRequest{
			Template: templateName, InstanceType: s.Type, SubnetID: s.Subnets[0].ID,
			TagSets: []cloud.TagSet{{Resource: "instance", Tags: map[string]string{"joist/test": t.Name()}}},
		})
	}},
}

func dryRunChangesNothing(t *testing.T, s Subject) {
	for _, r := range dryRunCalls {
		must(t, r.try(s, t))
	}
	s.wantCount(t, 0)
	for _, name := range s.templateNames(t, map[string]string{"joist/test": "template"}) {
		if name == "joist-dry-run" {
			t.Error("a dry run created a template")
		}
	}
	// A dry run does not use up the token.
	if n := len(ids(s.launch(t, s.request(t, "dry-run", 2)))); n != 2 {
		t.Errorf("%d instances", n)
	}
}

func dryRunIsDenied(t *testing.T, s Subject) {
	need(t, s.Deny != nil, "Deny")
	s.request(t, "", 1)
	for _, r := range dryRunCalls[1:] {
		allow := s.Deny(r.action)
		err := r.try(s, t)
		allow()
		wantKind(t, err, fault.Denied)
		if code := cloud.Code(err); code != "UnauthorizedOperation" {
			t.Errorf("%s: code %q", r.action, code)
		}
	}
}

func dryRunIsThrottled(t *testing.T, s Subject) {
	need(t, s.Throttle != nil, "Throttle")
	s.request(t, "", 1)
	for _, r := range dryRunCalls[1:] {
		s.Throttle(r.action)
		wantKind(t, r.try(s, t), fault.Throttled)
	}
}

func dryRunFindsMissingTemplate(t *testing.T, s Subject) {
	err := s.TryRun(context.Background(), cloud.RunRequest{Template: "joist-nowhere", InstanceType: s.Type, SubnetID: s.Subnets[0].ID})
	wantKind(t, err, fault.Missing)
}

func dryRunFindsMissingType(t *testing.T, s Subject) {
	s.request(t, "", 1)
	err := s.TryRun(context.Background(), cloud.RunRequest{Template: templateName, InstanceType: "m0.nowhere", SubnetID: s.Subnets[0].ID})
	wantKind(t, err, fault.Invalid)
}
