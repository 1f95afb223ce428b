package cloudtest

import (
	"context"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var profiles = []behaviour{
	{"is ensured twice", ensuresProfileTwice},
	{"changes its role", changesRole},
	{"is deleted twice", deletesProfileTwice},
	{"refuses a role that is missing", missesRole},
	{"is there again after its end", ensuresAgain},
}

func (s Subject) profile(role string) cloud.Profile {
	return cloud.Profile{
		Name: "joist-cloudtest", Path: "/karpenter/test/", Role: role, Tags: map[string]string{"joist/test": "profile"},
	}
}

func ensuresProfileTwice(t *testing.T, s Subject) {
	for range 2 {
		must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	}
	s.boots(t, true)
}

// boots says whether instances start with the profile: whether it exists is
// seen by nothing else in package cloud.
func (s Subject) boots(t *testing.T, want bool) {
	t.Helper()
	request := s.request(t, "", 1)
	template := s.template("joist-profile")
	template.InstanceProfile = s.profile("").Name
	must(t, s.EnsureTemplate(context.Background(), template))
	request.Configs[0].Template = template.Name
	if got := len(ids(s.launch(t, request))) == 1; got != want {
		t.Errorf("an instance with the profile starts: %v", got)
	}
}

func changesRole(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.OtherRole)))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	s.boots(t, true)
}

func deletesProfileTwice(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	for range 2 {
		must(t, s.DeleteProfile(context.Background(), s.profile("").Name))
	}
	s.boots(t, false)
}

func missesRole(t *testing.T, s Subject) {
	wantKind(t, s.EnsureProfile(context.Background(), s.profile("joist-no-such-role")), fault.Missing)
}

func ensuresAgain(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	must(t, s.DeleteProfile(context.Background(), s.profile("").Name))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.OtherRole)))
	s.boots(t, true)
}
