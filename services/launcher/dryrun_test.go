package launcher_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// withResolvedClass adds a class whose selectors are resolved to resources of the account.
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
	return func(b *event.NodeClassEnsure) { b.Class, b.InstanceType = text, "m6i.large" }
}

func TestDryRuns(t *testing.T) {
	for _, test := range []struct {
		name   string
		edit   func(*karpenter.EC2NodeClass)
		spoil  func(*fixture)
		reason string
		text   string
		// unknown means that the dry runs have no definite result.
		unknown bool
	}{
		{"all calls are allowed", nil, nil, "", "", false},
		{"no permission to create templates", nil, func(s *fixture) { s.Deny(memcloud.CreateTemplate) }, "CreateLaunchTemplateAuthCheckFailed", "isn't authorized to call ec2:CreateLaunchTemplate", false},
		{"no permission to create fleets", nil, func(s *fixture) { s.Deny(memcloud.CreateFleet) }, "CreateFleetAuthCheckFailed", "isn't authorized to call ec2:CreateFleet", false},
		{"no permission to run instances", nil, func(s *fixture) { s.Deny(memcloud.RunInstances) }, "RunInstancesAuthCheckFailed", "isn't authorized to call ec2:RunInstances", false},
		{"a call that may be denied for a tag", func(c *karpenter.EC2NodeClass) { c.Spec.Tags["cost-center"] = "7" }, func(s *fixture) { s.Deny(memcloud.CreateFleet) },
			"CreateFleetAuthCheckFailed", "nodeTags, check that it lists each key of spec.tags: cost-center, team", false},
		{"allowed in one subnet of two", nil, func(s *fixture) {
			s.Refuse(memcloud.RunInstances, fault.Denied, "UnauthorizedOperation", "not in this subnet")
		}, "", "", false},
		{"a security group that does not exist", func(c *karpenter.EC2NodeClass) { c.Status.SecurityGroups[0].ID = "sg-0" }, nil, "DependenciesNotReady", "sg-0", false},
		{"no resolved selectors", func(c *karpenter.EC2NodeClass) { c.Status = karpenter.EC2NodeClassStatus{} }, nil, "DependenciesNotReady", "needed", false},
		{"throttled", nil, func(s *fixture) { s.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "no") }, "", "", true},
		{"the template is not visible yet", nil, func(s *fixture) {
			for range s.Subnets {
				s.Refuse(memcloud.RunInstances, fault.Missing, "InvalidLaunchTemplateName.NotFoundException", "no")
			}
		}, "", "", true},
		{"the class names a profile that does not exist", func(c *karpenter.EC2NodeClass) {
			c.Spec.InstanceProfile, c.Status.InstanceProfile = new("nodes"), "nodes"
		}, nil, "InstanceProfileNotFound", `Instance profile "nodes" not found`, false},
		{"another parameter that is invalid", nil, func(s *fixture) {
			for range s.Subnets {
				s.Refuse(memcloud.RunInstances, fault.Invalid, "InvalidParameterValue", "Value (x) for parameter groupId is invalid")
			}
		}, "DependenciesNotReady", "groupId", false},
		{"the profile is not visible yet", nil, func(s *fixture) {
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
			if done.Problem != nil || done.Validated == test.unknown {
				t.Fatalf("unexpected result %+v", done)
			}
			if test.reason == "" {
				if done.Invalid != nil {
					t.Errorf("unexpected problem %+v", done.Invalid)
				}
				return
			}
			if p := done.Invalid; p == nil || p.Condition != "ValidationSucceeded" || p.Reason != test.reason || !strings.Contains(p.Message, test.text) {
				t.Errorf("unexpected problem %+v", done.Invalid)
			}
		})
	}
}

// That EC2 does not offer the instance type of the dry runs is no rejection of the class: its launches may
// use other types.
func TestTypeThatIsNotOffered(t *testing.T) {
	const unsupported = "Your requested instance type (m6i.large) is not supported in your requested Availability Zone (us-west-2a)."
	everywhere := event.Offering{InstanceType: "m6i.large"}
	for _, test := range []struct {
		name   string
		spoil  func(*fixture)
		edit   func(*event.NodeClassEnsure)
		reason string
		runs   int
	}{
		{"no zone offers it", func(s *fixture) { s.Withdraw(everywhere) }, nil, "", 3},
		{"one zone does not offer it", func(s *fixture) { s.Withdraw(event.Offering{InstanceType: "m6i.large", Zone: s.Subnets[0].Zone}) }, nil, "", 2},
		{"the region does not know it", nil, func(b *event.NodeClassEnsure) { b.InstanceType = "m9z.large" }, "", 3},
		{"the default type is unknown", nil, func(b *event.NodeClassEnsure) { b.InstanceType = "" }, "", 3},
		{"EC2 does not find it", func(s *fixture) {
			for range s.Subnets {
				s.Refuse(memcloud.RunInstances, fault.Invalid, "InvalidParameterValue", "The following supplied instance types do not exist: [m6i.large]")
			}
		}, nil, "", 3},
		{"the fleet does not find it", func(s *fixture) {
			s.Refuse(memcloud.CreateFleet, fault.Invalid, "InvalidFleetConfiguration", unsupported)
		}, nil, "", 1},
		{"denied where it is offered", func(s *fixture) {
			s.Refuse(memcloud.RunInstances, fault.Invalid, "Unsupported", unsupported)
			for range s.Subnets[1:] {
				s.Refuse(memcloud.RunInstances, fault.Denied, "UnauthorizedOperation", "not in this subnet")
			}
		}, nil, event.RunInstancesAuthCheckFailed, 3},
		{"another mistake of the fleet", func(s *fixture) {
			s.Refuse(memcloud.CreateFleet, fault.Invalid, "InvalidFleetConfiguration", "The fleet configuration contains duplicate instance pools.")
		}, nil, event.DependenciesNotReady, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			if test.spoil != nil {
				test.spoil(s)
			}
			edits := []func(*event.NodeClassEnsure){s.withResolvedClass()}
			if test.edit != nil {
				edits = append(edits, test.edit)
			}
			done := s.ensureClass(ensureRequest(edits...))
			reason := ""
			if done.Invalid != nil {
				reason = done.Invalid.Reason
			}
			if runs := s.Counts()[memcloud.RunInstances].Calls; !done.Validated || reason != test.reason || runs != test.runs {
				t.Errorf("%d runs, problem %+v, result %+v; want %d runs and the reason %q", runs, done.Invalid, done, test.runs, test.reason)
			}
		})
	}
}

// For a class without tags, the hint about tags would be misleading.
func TestRefusalWithoutTagsHasNoHint(t *testing.T) {
	s := newFixture(t)
	s.Deny(memcloud.CreateFleet)
	done := s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.Spec.Tags = nil })))
	if p := done.Invalid; p == nil || strings.Contains(p.Message, "nodeTags") {
		t.Errorf("unexpected problem %+v", p)
	}
}

// Dry runs launch nothing. Successful ones are not repeated within half an hour, unless
// the spec changes.
func TestDryRunsAreCached(t *testing.T) {
	s := newFixture(t)
	runs := func() int { return s.Counts()[memcloud.RunInstances].Calls }
	s.ensureClass(ensureRequest(s.withResolvedClass()))
	s.advanceClock(29 * time.Minute)
	s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.ResourceVersion, c.Generation = "7", 2 })))
	if runs() != 1 || len(s.Records()) != 0 {
		t.Errorf("%d dry runs, %d instances", runs(), len(s.Records()))
	}
	s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.Spec.Tags["team"] = "pay" })))
	s.advanceClock(2 * time.Minute)
	s.ensureClass(ensureRequest(s.withResolvedClass()))
	if runs() != 3 {
		t.Errorf("%d dry runs", runs())
	}
	// Their template is deleted by age like all others.
	s.advanceClock(2 * time.Hour)
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	if n := s.countTemplates(); n != 0 {
		t.Errorf("%d templates remain", n)
	}
}

// A missing profile is not cached: the next dry runs pass as soon as it exists.
func TestMissingProfileIsTriedAgain(t *testing.T) {
	s := newFixture(t)
	request := ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) {
		c.Spec.InstanceProfile, c.Status.InstanceProfile = new("nodes"), "nodes"
	}))
	if done := s.ensureClass(request); done.Invalid == nil || done.Invalid.Reason != event.InstanceProfileNotFound {
		t.Fatalf("unexpected result %+v", done)
	}
	s.AddRole("node")
	if err := s.EnsureProfile(t.Context(), cloud.Profile{Name: "nodes", Role: "node"}); err != nil {
		t.Fatal(err)
	}
	s.advanceClock(time.Minute)
	if done := s.ensureClass(request); !done.Validated || done.Invalid != nil {
		t.Errorf("after the profile was created got %+v", done)
	}
}

// There are no dry runs after the profile was rejected, without a class, or if dry runs are
// disabled.
func TestSkippedDryRuns(t *testing.T) {
	s := newFixture(t)
	if done := s.ensureClass(ensureRequest(s.withResolvedClass(), withRole("missing"))); done.Validated || done.Invalid != nil || done.Problem == nil {
		t.Errorf("unexpected result %+v", done)
	}
	if done := s.ensureClass(ensureRequest()); done.Validated {
		t.Errorf("unexpected result %+v", done)
	}
	s.service.DryRun = nil
	if done := s.ensureClass(ensureRequest(s.withResolvedClass())); done.Validated {
		t.Errorf("unexpected result %+v", done)
	}
	if n := s.Counts()[memcloud.CreateFleet].Calls; n != 0 {
		t.Errorf("%d dry runs of fleets", n)
	}
}

// A class that cannot be decoded is not valid, and no calls are made for it.
func TestDryRunsOfAnUndecodableClass(t *testing.T) {
	s := newFixture(t)
	done := s.ensureClass(ensureRequest(func(b *event.NodeClassEnsure) { b.Class = []byte(`{"spec":7}`) }))
	if done.Validated || done.Invalid != nil || s.countTemplates() != 0 {
		t.Errorf("%d templates, result %+v", s.countTemplates(), done)
	}
}

// The resources of a class whose document has no name have the name of the request, by which they are deleted with the class.
func TestDryRunsHaveTheNameOfTheClass(t *testing.T) {
	s := newFixture(t)
	s.ensureClass(ensureRequest(s.withResolvedClass(func(c *karpenter.EC2NodeClass) { c.Name = "" })))
	s.ensureClass(ensureRequest(withDelete))
	if n := s.countTemplates(); n != 0 {
		t.Errorf("%d templates remain after the class was deleted", n)
	}
}

// The instances of a dry run have the tenancy of the request.
func TestDryRunsHaveTheTenancy(t *testing.T) {
	for _, want := range []string{"", karpenter.TenancyDedicated} {
		s := newFixture(t)
		s.ensureClass(ensureRequest(s.withResolvedClass(), func(b *event.NodeClassEnsure) { b.Tenancy = want }))
		list, err := s.Templates(t.Context(), nil)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d templates were created: %v", len(list), err)
		}
		tenancy := ""
		if template, _ := s.Template(list[0].Name); template.Placement != nil {
			tenancy = template.Placement.Tenancy
		}
		if tenancy != want {
			t.Errorf("the template has the tenancy %q, want %q", tenancy, want)
		}
	}
}
