package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var profiles = []behaviour{
	{"is ensured twice", ensuresProfileTwice},
	{"changes its role", changesRole},
	{"is deleted twice", deletesProfileTwice},
	{"rejects a missing role", rejectsMissingRole},
	{"can be created again after deletion", ensuresAgain},
	{"has all fields", readsProfile},
	{"is listed by path", listsProfiles},
	{"is tagged after creation", tagsProfile},
	{"uses the role's name without its path", dropsRolePath},
	{"is named by its instances", describesProfileOfInstance},
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
	s.canLaunch(t, true)
}

// canLaunch checks whether instances can start with the profile, which shows whether it exists.
func (s Subject) canLaunch(t *testing.T, want bool) {
	t.Helper()
	request := s.request(t, "", 1)
	template := s.template("joist-profile")
	template.InstanceProfile = s.profile("").Name
	must(t, s.EnsureTemplate(context.Background(), template))
	request.Configs[0].Template = template.Name
	if got := len(ids(s.launch(t, request))) == 1; got != want {
		t.Errorf("an instance with the profile launches: %v", got)
	}
}

func changesRole(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.OtherRole)))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	s.canLaunch(t, true)
}

func deletesProfileTwice(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	for range 2 {
		must(t, s.DeleteProfile(context.Background(), s.profile("").Name))
	}
	s.canLaunch(t, false)
}

func rejectsMissingRole(t *testing.T, s Subject) {
	wantKind(t, s.EnsureProfile(context.Background(), s.profile("joist-no-such-role")), fault.Missing)
}

func ensuresAgain(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	must(t, s.DeleteProfile(context.Background(), s.profile("").Name))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.OtherRole)))
	s.canLaunch(t, true)
}

func readsProfile(t *testing.T, s Subject) {
	want := s.profile(s.Role)
	_, err := s.Profile(context.Background(), want.Name)
	wantKind(t, err, fault.Missing)
	must(t, s.EnsureProfile(context.Background(), want))
	got, err := s.Profile(context.Background(), want.Name)
	must(t, err)
	if got.Created.IsZero() {
		t.Error("the profile has no creation time")
	}
	got.Created = want.Created
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func listsProfiles(t *testing.T, s Subject) {
	other := s.profile(s.Role)
	other.Name, other.Path = "joist-cloudtest-other", "/karpenter/tested/"
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	must(t, s.EnsureProfile(context.Background(), other))
	for path, want := range map[string][]string{
		"/karpenter/test/": {s.profile("").Name}, "/karpenter/test": {s.profile("").Name, other.Name}, "/joist/nowhere/": nil,
	} {
		found, err := s.ListProfiles(context.Background(), path)
		must(t, err)
		var names []string
		for _, p := range found {
			names = append(names, p.Name)
			if p.Role != s.Role || p.Created.IsZero() {
				t.Errorf("listed profile = %+v", p)
			}
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("profiles below %s: %s", path, diff)
		}
	}
}

func tagsProfile(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	must(t, s.TagProfile(context.Background(), s.profile("").Name, map[string]string{"joist/more": "yes"}))
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	got, err := s.Profile(context.Background(), s.profile("").Name)
	must(t, err)
	if diff := cmp.Diff(map[string]string{"joist/test": "profile", "joist/more": "yes"}, got.Tags); diff != "" {
		t.Error(diff)
	}
}

func dropsRolePath(t *testing.T, s Subject) {
	for range 2 {
		must(t, s.EnsureProfile(context.Background(), s.profile("service-role/"+s.Role)))
	}
	got, err := s.Profile(context.Background(), s.profile("").Name)
	must(t, err)
	if got.Role != s.Role {
		t.Errorf("role of the profile = %q", got.Role)
	}
}

func describesProfileOfInstance(t *testing.T, s Subject) {
	must(t, s.EnsureProfile(context.Background(), s.profile(s.Role)))
	request := s.request(t, "", 1)
	template := s.template("joist-profile")
	template.InstanceProfile = s.profile("").Name
	must(t, s.EnsureTemplate(context.Background(), template))
	request.Configs[0].Template = template.Name
	launched := ids(s.launch(t, request))
	s.wait(time.Minute)
	found := s.described(t, cloud.InstanceFilter{IDs: launched})
	if len(found) != 1 || found[0].Profile != template.InstanceProfile {
		t.Errorf("described %+v", found)
	}
}
