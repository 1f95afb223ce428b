package launcher_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/memcloud"
)

func (s *site) tick(want string) event.Envelope { return s.message(event.Tick{Want: want, Due: s.now}) }

func (s *site) templates() int {
	s.t.Helper()
	all, err := s.Templates(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(all)
}

func TestTemplatesAreSweptByAge(t *testing.T) {
	s := newSite(t)
	s.launch("old")
	if err := s.EnsureTemplate(t.Context(), cloud.Template{Name: "somebody's", ImageID: s.ImageAMD64.ID}); err != nil {
		t.Fatal(err)
	}
	s.pass(launcher.TemplateAge - time.Second)
	s.launch("young")
	s.handle(s.tick(event.WantTemplates), "")
	if n := s.templates(); n != 3 {
		t.Fatalf("%d of 3 templates are left before any is old", n)
	}
	s.pass(time.Second)
	s.handle(s.tick(event.WantStatus), "")
	if n := s.templates(); n != 3 {
		t.Fatal("another tick swept templates")
	}
	s.handle(s.tick(event.WantTemplates), "")
	for name, want := range map[string]bool{"template-old": false, "template-young": true, "somebody's": true} {
		if _, ok := s.Template(name); ok != want {
			t.Errorf("%s is there: %t", name, ok)
		}
	}
	// The next intent that names it makes it again.
	intent := s.intent("next", 1)
	old := s.intent("old", 1)
	intent.Templates, intent.Fleet.Configs = old.Templates, old.Fleet.Configs
	s.handle(s.request(intent), "")
	if _, ok := s.Template("template-old"); !ok {
		t.Error("the template was not made again")
	}
}

func TestSweepGoesOn(t *testing.T) {
	s := newSite(t)
	s.svc.TemplateAge = time.Minute
	s.launch("one")
	s.launch("two")
	s.pass(time.Minute)
	s.Refuse(memcloud.DeleteTemplate, fault.Throttled, "RequestLimitExceeded", "no")
	s.handle(s.tick(event.WantTemplates), fault.Throttled)
	if n := s.templates(); n != 1 {
		t.Errorf("%d templates are left: one failure held up the other", n)
	}
	s.Deny(memcloud.DescribeTemplates)
	s.handle(s.tick(event.WantTemplates), fault.Denied)
}

func TestProfiles(t *testing.T) {
	ask := event.NodeClassEnsure{Name: "default", UID: "u", Role: "prod-node", Profile: "prod_1", Path: "/karpenter/", Asked: noon}
	remove := ask
	remove.Delete = true
	nobody := ask
	nobody.Role = "nobody"
	for _, test := range []struct {
		name    string
		ask     event.NodeClassEnsure
		spoil   func(*site)
		kind    fault.Kind
		deleted bool
		problem bool
	}{
		{"made", ask, func(*site) {}, "", false, false},
		{"removed, though it was not there", remove, func(*site) {}, "", true, false},
		{"a role that does not exist", nobody, func(*site) {}, "", false, true},
		{"no right to make it", ask, func(s *site) { s.Deny(memcloud.CreateProfile) }, "", false, true},
		{"no right to remove it", remove, func(s *site) { s.Deny(memcloud.GetProfile, memcloud.DeleteProfile, memcloud.DetachRole) }, "", false, true},
		{"a launcher without IAM", remove, func(s *site) { s.svc.Profiles = nil }, "", false, true},
		{"IAM is away", ask, func(s *site) { s.LoseAnswer(memcloud.CreateProfile) }, fault.Unknown, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			test.spoil(s)
			s.handle(s.message(test.ask), test.kind)
			if test.kind != "" {
				s.silent()
				return
			}
			done := fact[event.NodeClassEnsured](s)
			if done.Deleted != test.deleted || (done.Problem != nil) != test.problem || done.Role != test.ask.Role || !done.Asked.Equal(noon) {
				t.Errorf("it was said %+v", done)
			}
			if profile, err := s.Cloud.Profile(t.Context(), "prod_1"); test.name == "made" && (err != nil || profile.Role != "prod-node") {
				t.Errorf("the profile is %+v (%v)", profile, err)
			}
		})
	}
}
