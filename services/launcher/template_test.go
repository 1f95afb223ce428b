package launcher_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func (s *fixture) tickMessage(want string) event.Envelope {
	return s.newMessage(event.Tick{Want: want, Due: s.now})
}

func (s *fixture) countTemplates() int {
	s.t.Helper()
	all, err := s.Templates(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(all)
}

func TestTemplatesAreDeletedByAge(t *testing.T) {
	s := newFixture(t)
	s.launchInstance("old")
	if err := s.EnsureTemplate(t.Context(), cloud.Template{Name: "foreign", ImageID: s.ImageAMD64.ID}); err != nil {
		t.Fatal(err)
	}
	s.advanceClock(launcher.TemplateAge - time.Second)
	s.launchInstance("young")
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	if n := s.countTemplates(); n != 3 {
		t.Fatalf("%d of 3 templates remain before any is old", n)
	}
	s.advanceClock(time.Second)
	s.handleMessage(s.tickMessage(event.WantStatus), "")
	if n := s.countTemplates(); n != 3 {
		t.Fatal("another tick deleted templates")
	}
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	for name, want := range map[string]bool{"template-old": false, "template-young": true, "foreign": true} {
		if _, ok := s.Template(name); ok != want {
			t.Errorf("%s exists: %t, want %t", name, ok, want)
		}
	}
	// The next intent that names it creates it again.
	intent := s.newIntent("next", 1)
	old := s.newIntent("old", 1)
	intent.Templates, intent.Fleet.Configs = old.Templates, old.Fleet.Configs
	s.handleMessage(s.launchRequest(intent), "")
	if _, ok := s.Template("template-old"); !ok {
		t.Error("the template was not created again")
	}
}

func TestTemplateDeletionContinuesAfterFailure(t *testing.T) {
	s := newFixture(t)
	s.service.TemplateAge = time.Minute
	s.launchInstance("one")
	s.launchInstance("two")
	s.advanceClock(time.Minute)
	s.Refuse(memcloud.DeleteTemplate, fault.Throttled, "RequestLimitExceeded", "no")
	s.handleMessage(s.tickMessage(event.WantTemplates), fault.Throttled)
	if n := s.countTemplates(); n != 1 {
		t.Errorf("%d templates remain, want 1: a failure stopped the deletion of the other", n)
	}
	s.Deny(memcloud.DescribeTemplates)
	s.handleMessage(s.tickMessage(event.WantTemplates), fault.Denied)
}

// TestTemplatesOfKarpenterStay: Karpenter, which may act while the launcher runs, caches its templates.
func TestTemplatesOfKarpenterStay(t *testing.T) {
	s := newFixture(t)
	s.launchInstance("old")
	old, ok := s.Template("template-old")
	if !ok {
		t.Fatal("the template of the launch does not exist")
	}
	const karpenters, joists = "karpenter.k8s.aws/8012345678901234567", "karpenter.k8s.aws/80123456789012345678901234567890"
	for _, name := range []string{karpenters, joists} {
		old.Name = name
		if err := s.EnsureTemplate(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	s.advanceClock(launcher.TemplateAge)
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	for name, want := range map[string]bool{"template-old": false, joists: false, karpenters: true} {
		if _, ok := s.Template(name); ok != want {
			t.Errorf("%s exists: %t, want %t", name, ok, want)
		}
	}
}

// A template that this process used recently is not deleted, even if it is old.
func TestTemplatesInUseAreNotDeleted(t *testing.T) {
	s := newFixture(t)
	s.launchInstance("old")
	s.advanceClock(launcher.TemplateAge)
	old, intent := s.newIntent("old", 1), s.newIntent("next", 1)
	intent.Templates, intent.Fleet.Configs = old.Templates, old.Fleet.Configs
	s.handleMessage(s.launchRequest(intent), "")
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	if _, exists := s.Template("template-old"); !exists {
		t.Error("a template that was just used was deleted")
	}
	s.advanceClock(launcher.TemplateAge)
	s.handleMessage(s.tickMessage(event.WantTemplates), "")
	if n := s.countTemplates(); n != 0 {
		t.Errorf("%d templates remain", n)
	}
}
