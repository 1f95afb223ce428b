package launcher_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// withResolvedClass is a class whose selectors have found what the account has.
func (s *fixture) withResolvedClass(edits ...func(*karpenter.EC2NodeClass)) func(*event.NodeClassEnsure) {
	s.t.Helper()
	class := &karpenter.EC2NodeClass{}
	class.Name = "default"
	class.Spec.Tags = map[string]string{"team": "shop"}
	class.Status.AMIs = []karpenter.AMI{{ID: s.ImageAMD64.ID}}
	class.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: s.SecurityGroup.ID}}
	for _, subnet := range s.Subnets {
		class.Status.Subnets = append(class.Status.Subnets, karpenter.Subnet{ID: subnet.ID, Zone: subnet.Zone})
	}
	for _, edit := range edits {
		edit(class)
	}
	text, err := json.Marshal(class)
	if err != nil {
		s.t.Fatal(err)
	}
	return func(b *event.NodeClassEnsure) { b.Class = text }
}

func TestDryRuns(t *testing.T) {
	for _, test := range []struct {
		name   string
		edit   func(*karpenter.EC2NodeClass)
		spoil  func(*fixture)
		reason string
		says   string
		// unsure is that nothing definite is known.
		unsure bool
	}{
		{"all is allowed", nil, nil, "", "", false},
		{"no right to make templates", nil, func(s *fixture) { s.Deny(memcloud.CreateTemplate) }, "CreateLaunchTemplateAuthCheckFailed", "isn't authorized to call ec2:CreateLaunchTemplate", false},
		{"no right to make fleets", nil, func(s *fixture) { s.Deny(memcloud.CreateFleet) }, "CreateFleetAuthCheckFailed", "isn't authorized to call ec2:CreateFleet", false},
		{"no right to run instances", nil, func(s *fixture) { s.Deny(memcloud.RunInstances) }, "RunInstancesAuthCheckFailed", "isn't authorized to call ec2:RunInstances", false},
		{"a right that a tag may be the end of", func(c *karpenter.EC2NodeClass) { c.Spec.Tags["cost-center"] = "7" }, func(s *fixture) { s.Deny(memcloud.CreateFleet) },
			"CreateFleetAuthCheckFailed", "nodeTags, check that it lists each key of spec.tags: cost-center, team", false},
		{"allowed in one subnet of two", nil, func(s *fixture) {
			s.Refuse(memcloud.RunInstances, fault.Denied, "UnauthorizedOperation", "not in this subnet")
		}, "", "", false},
		{"a group that is gone", func(c *karpenter.EC2NodeClass) { c.Status.SecurityGroups[0].ID = "sg-0" }, nil, "DependenciesNotReady", "sg-0", false},
		{"nothing resolved", func(c *karpenter.EC2NodeClass) { c.Status = karpenter.EC2NodeClassStatus{} }, nil, "DependenciesNotReady", "needed", false},
		{"throttled", nil, func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "no") }, "", "", true},
		{"the template has not spread yet", nil, func(s *fixture) {
			for range s.Subnets {
				s.Refuse(memcloud.RunInstances, fault.Missing, "InvalidLaunchTemplateName.NotFoundException", "no")
			}
		}, "", "", true},
		{"the profile has not spread yet", nil, func(s *fixture) {
			for range s.Subnets {
				s.Refuse(memcloud.RunInstances, fault.Invalid, "InvalidParameterValue", "Value (prod_1) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name")
			}
		}, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			if test.spoil != nil {
				test.spoil(s)
			}
			var edits []func(*karpenter.EC2NodeClass)
			if test.edit != nil {
				edits = append(edits, test.edit)
			}
			done := s.ensureClass(ensureRequest(s.withResolvedClass(edits...)))
			if done.Problem != nil || done.Validated == test.unsure {
				t.Fatalf("it was said %+v", done)
			}
			if test.reason == "" {
				if done.Invalid != nil {
					t.Errorf("it is invalid: %+v", done.Invalid)
				}
				return
			}
			if p := done.Invalid; p == nil || p.Condition != "ValidationSucceeded" || p.Reason != test.reason || !strings.Contains(p.Message, test.says) {
				t.Errorf("it is invalid: %+v", done.Invalid)
			}
		})
	}
}

// A class without tags cannot have the wrong ones: the hint would mislead.
func TestRefusalWithoutTagsHasNoHint(t *testing.T) {
	s := newFixture(t)
	s.Deny(memcloud.CreateFleet)
	done := s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.Spec.Tags = nil })))
	if p := done.Invalid; p == nil || strings.Contains(p.Message, "nodeTags") {
		t.Errorf("it is invalid: %+v", p)
	}
}

// A rehearsal launches nothing, and one that went well is not repeated within
// half an hour; another spec is tried at once.
func TestDryRunsAreCached(t *testing.T) {
	s := newFixture(t)
	runs := func() int { return s.Counts()[memcloud.RunInstances].Calls }
	s.ensureClass(ensureRequest(s.withResolvedClass()))
	s.advanceClock(29 * time.Minute)
	s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.ResourceVersion, c.Generation = "7", 2 })))
	if runs() != 1 || len(s.Records()) != 0 {
		t.Errorf("%d runs were rehearsed, %d instances launched", runs(), len(s.Records()))
	}
	s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.Spec.Tags["team"] = "pay" })))
	s.advanceClock(2 * time.Minute)
	s.ensureClass(ensureRequest(s.withResolvedClass()))
	if runs() != 3 {
		t.Errorf("%d runs were rehearsed", runs())
	}
	// The template that they named goes as all others do.
	s.advanceClock(2 * time.Hour)
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	if n := s.countTemplates(); n != 0 {
		t.Errorf("%d templates are left", n)
	}
}

// With a profile that was refused nothing is tried; without a class, or a
// launcher that rehearses, nothing is said of it.
func TestSkippedDryRuns(t *testing.T) {
	s := newFixture(t)
	if done := s.ensureClass(ensureRequest(s.withResolvedClass(), withRole("nobody"))); done.Validated || done.Invalid != nil || done.Problem == nil {
		t.Errorf("it was said %+v", done)
	}
	if done := s.ensureClass(ensureRequest()); done.Validated {
		t.Errorf("it was said %+v", done)
	}
	s.service.DryRun = nil
	if done := s.ensureClass(ensureRequest(s.withResolvedClass())); done.Validated {
		t.Errorf("it was said %+v", done)
	}
	if n := s.Counts()[memcloud.CreateFleet].Calls; n != 0 {
		t.Errorf("%d fleets were rehearsed", n)
	}
}

// The instances of a dry run have the tenancy that lifecycle asks for.
func TestDryRunsHaveTheTenancy(t *testing.T) {
	for _, want := range []string{"", karpenter.TenancyDedicated} {
		s := newFixture(t)
		s.ensureClass(ensureRequest(s.withResolvedClass(), func(b *event.NodeClassEnsure) { b.Tenancy = want }))
		list, err := s.Templates(t.Context(), nil)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d templates were made: %v", len(list), err)
		}
		tenancy := ""
		if template, _ := s.Template(list[0].Name); template.Placement != nil {
			tenancy = template.Placement.Tenancy
		}
		if tenancy != want {
			t.Errorf("the template has the tenancy %q, and %q was asked for", tenancy, want)
		}
	}
}
