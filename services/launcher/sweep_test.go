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

// What this process has launched by lately it does not sweep, however old.
func TestTemplatesInUseAreKept(t *testing.T) {
	s := newSite(t)
	s.launch("old")
	s.pass(launcher.TemplateAge)
	old, intent := s.intent("old", 1), s.intent("next", 1)
	intent.Templates, intent.Fleet.Configs = old.Templates, old.Fleet.Configs
	s.handle(s.request(intent), "")
	s.handle(s.tick(event.WantTemplates), "")
	if _, there := s.Template("template-old"); !there {
		t.Error("it was swept though a launch named it a moment ago")
	}
	s.pass(launcher.TemplateAge)
	s.handle(s.tick(event.WantTemplates), "")
	if n := s.templates(); n != 0 {
		t.Errorf("%d templates are left", n)
	}
}
