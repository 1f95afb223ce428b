package launcher_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

const profilePath = "/karpenter/us-west-2/prod/u/"

// policyTags returns the tags that the usual IAM policies require.
func policyTags() map[string]string {
	return map[string]string{
		"kubernetes.io/cluster/prod": "owned", "topology.kubernetes.io/region": "us-west-2",
		"karpenter.k8s.aws/ec2nodeclass": "default", "eks:eks-cluster-name": "prod",
	}
}

// ensureRequest is lifecycle's request for a class with a role.
func ensureRequest(edits ...func(*event.NodeClassEnsure)) event.NodeClassEnsure {
	b := event.NodeClassEnsure{
		Name: "default", UID: "u", Role: "prod-node", Profile: "prod_1", Path: profilePath, Tags: policyTags(), Asked: noon, Generation: 3,
	}
	for _, edit := range edits {
		edit(&b)
	}
	return b
}

func withDelete(b *event.NodeClassEnsure) { b.Delete = true }
func withRole(name string) func(*event.NodeClassEnsure) {
	return func(b *event.NodeClassEnsure) { b.Role = name }
}

// ensureClass handles the request and returns the result.
func (s *fixture) ensureClass(b event.NodeClassEnsure) event.NodeClassEnsured {
	s.t.Helper()
	s.handleMessage(s.newMessage(b), "")
	return nextFact[event.NodeClassEnsured](s)
}

func TestEnsureProfile(t *testing.T) {
	for _, test := range []struct {
		name    string
		ask     event.NodeClassEnsure
		spoil   func(*fixture)
		kind    fault.Kind
		deleted bool
		problem bool
	}{
		{"created", ensureRequest(), func(*fixture) {}, "", false, false},
		{"created for a role with a path", ensureRequest(withRole("service/prod-node")), func(*fixture) {}, "", false, false},
		{"deleted although it did not exist", ensureRequest(withDelete), func(*fixture) {}, "", true, false},
		{"a role that does not exist", ensureRequest(withRole("missing")), func(*fixture) {}, "", false, true},
		{"no permission to create it", ensureRequest(), func(s *fixture) { s.Deny(memcloud.CreateProfile) }, "", false, true},
		{"no permission to delete it", ensureRequest(withDelete), func(s *fixture) { s.Deny(memcloud.GetProfile, memcloud.DeleteProfile, memcloud.DetachRole) }, "", false, true},
		{"no permission to list", ensureRequest(), func(s *fixture) { s.Deny(memcloud.ListProfiles) }, "", false, false},
		{"deleted without permission to list", ensureRequest(withDelete), func(s *fixture) { s.Deny(memcloud.ListProfiles) }, "", true, false},
		{"deleted while IAM does not list", ensureRequest(withDelete), func(s *fixture) { s.LoseCall(memcloud.ListProfiles) }, fault.Unknown, false, false},
		{"a launcher without permissions for IAM", ensureRequest(withDelete), func(s *fixture) { s.service.Profiles = nil }, "", false, true},
		{"IAM does not answer", ensureRequest(), func(s *fixture) { s.LoseAnswer(memcloud.CreateProfile) }, fault.Unknown, false, false},
		{"a foreign profile", ensureRequest(), func(s *fixture) {
			if err := s.CreateProfile(s.t.Context(), cloud.Profile{Name: "prod_1", Path: "/"}); err != nil {
				s.t.Fatal(err)
			}
		}, "", false, true},
		{"deleting a foreign profile", ensureRequest(withDelete), func(s *fixture) {
			if err := s.CreateProfile(s.t.Context(), cloud.Profile{Name: "prod_1", Path: "/"}); err != nil {
				s.t.Fatal(err)
			}
		}, "", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			test.spoil(s)
			s.handleMessage(s.newMessage(test.ask), test.kind)
			if test.kind != "" {
				s.requireNoFacts()
				return
			}
			done := nextFact[event.NodeClassEnsured](s)
			if foreign := strings.Contains(test.name, "foreign"); slices.Contains(s.counts, metric.ForeignRequestsRefused.Name+" profile") != foreign {
				t.Errorf("the metrics are %v", s.counts)
			}
			if done.Deleted != test.deleted || (done.Problem != nil) != test.problem || done.Role != test.ask.Role || !done.Asked.Equal(noon) || done.Generation != 3 {
				t.Errorf("unexpected result %+v", done)
			}
			if test.problem || test.deleted {
				return
			}
			want := cloud.Profile{Name: "prod_1", Path: profilePath, Role: "prod-node", Tags: policyTags(), Created: noon}
			got, err := s.Cloud.Profile(t.Context(), "prod_1")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// A request with more text than IAM allows is refused, and the answer has only the beginning of a long error: no request makes an answer
// that is too large to send.
func TestNodeClassAnswerIsLimited(t *testing.T) {
	long := strings.Repeat("\x01", 701)
	for name, edit := range map[string]func(*event.NodeClassEnsure){
		"role":    func(b *event.NodeClassEnsure) { b.Role = long },
		"profile": func(b *event.NodeClassEnsure) { b.Profile = long },
	} {
		s := newFixture(t)
		s.handleMessage(s.newMessage(ensureRequest(edit)), fault.Poison)
		if s.requireNoFacts(); t.Failed() {
			t.Fatal(name)
		}
	}
	s := newFixture(t)
	s.Refuse(memcloud.CreateProfile, fault.Invalid, "ValidationError", strings.Repeat("\x01", 20<<10))
	done := s.ensureClass(ensureRequest(withRole(long[:700]), func(b *event.NodeClassEnsure) { b.Profile = long[:700] }))
	if done.Problem == nil || len(done.Problem.Message) > 4<<10+len("…") {
		t.Errorf("the problem is %+v", done.Problem)
	}
}

// A profile that cannot be deleted does not stop the deletion of the others.
func TestProfilesAreDeletedOneByOne(t *testing.T) {
	s := newFixture(t)
	foreign := cloud.Profile{Name: "prod_0", Path: profilePath}
	if err := s.CreateProfile(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.ensureClass(ensureRequest())
	if done := s.ensureClass(ensureRequest(withDelete)); done.Problem == nil || done.Deleted {
		t.Errorf("unexpected result %+v", done)
	}
	if s.profileExists("prod_1") || !s.profileExists("prod_0") {
		t.Errorf("own profile exists: %t, foreign profile exists: %t", s.profileExists("prod_1"), s.profileExists("prod_0"))
	}
}

// The launcher does not call IAM for profiles that the usual policies deny or that do not
// belong to the cluster.
func TestProfilesDeniedByPolicies(t *testing.T) {
	for name, spoil := range map[string]func(*event.NodeClassEnsure){
		"no cluster":               func(b *event.NodeClassEnsure) { delete(b.Tags, "kubernetes.io/cluster/prod") },
		"another cluster":          func(b *event.NodeClassEnsure) { b.Tags["kubernetes.io/cluster/prod"] = "shared" },
		"no region":                func(b *event.NodeClassEnsure) { delete(b.Tags, "topology.kubernetes.io/region") },
		"no class":                 func(b *event.NodeClassEnsure) { delete(b.Tags, "karpenter.k8s.aws/ec2nodeclass") },
		"another class":            func(b *event.NodeClassEnsure) { b.Tags["karpenter.k8s.aws/ec2nodeclass"] = "other" },
		"another path":             func(b *event.NodeClassEnsure) { b.Path = "/" },
		"another cluster's path":   func(b *event.NodeClassEnsure) { b.Path = "/karpenter/us-west-2/dev/u/" },
		"deleting another path":    func(b *event.NodeClassEnsure) { b.Path, b.Delete = "/karpenter/us-west-2/dev/u/", true },
		"deleting without a class": func(b *event.NodeClassEnsure) { b.Delete = true; clear(b.Tags) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.handleMessage(s.newMessage(ensureRequest(spoil)), fault.Poison)
			for action, n := range s.Counts() {
				if action != memcloud.DescribeTemplates {
					t.Errorf("%s was called %d times", action, n.Calls)
				}
			}
		})
	}
}

// For a user-provided instance profile IAM is not called, even when the class is deleted.
func TestUserProvidedProfileIsKept(t *testing.T) {
	for _, b := range []event.NodeClassEnsure{ensureRequest(withRole("")), ensureRequest(withRole(""), withDelete)} {
		s := newFixture(t)
		b.Tags, b.Path, b.Profile = nil, "", s.World.Profile
		done := s.ensureClass(b)
		if done.Problem != nil || done.Deleted != b.Delete {
			t.Errorf("unexpected result %+v", done)
		}
		for _, action := range []memcloud.Action{
			memcloud.GetProfile, memcloud.ListProfiles, memcloud.CreateProfile, memcloud.DeleteProfile, memcloud.TagProfile, memcloud.AttachRole, memcloud.DetachRole,
		} {
			if n := s.Counts()[action].Calls; n != 0 {
				t.Errorf("%s was called %d times", action, n)
			}
		}
	}
}

func (s *fixture) profileExists(name string) bool {
	_, err := s.Cloud.Profile(s.t.Context(), name)
	return err == nil
}

// The profile of a former role is kept for an hour, and while an instance has it. A profile
// that is used again starts over.
func TestFormerProfileIsDeletedLater(t *testing.T) {
	s := newFixture(t)
	s.AddRole("other")
	next := ensureRequest(withRole("other"), func(b *event.NodeClassEnsure) { b.Profile = "prod_2" })
	s.ensureClass(ensureRequest())
	intent := s.newIntent("one", 1)
	intent.Templates[0].InstanceProfile = "prod_1"
	s.handleMessage(s.launchRequest(intent), "")
	node := s.nextResult().Instances[0].InstanceID

	s.advanceClock(24 * time.Hour)
	s.ensureClass(next)
	s.advanceClock(59 * time.Minute)
	s.ensureClass(next)
	if !s.profileExists("prod_1") {
		t.Fatal("the profile was deleted within the hour")
	}
	s.advanceClock(2 * time.Minute)
	s.ensureClass(next)
	if !s.profileExists("prod_1") {
		t.Fatal("the profile was deleted while an instance had it")
	}
	if err := s.Terminate(t.Context(), []string{node}); err != nil {
		t.Fatal(err)
	}
	s.advanceClock(5 * time.Minute)
	s.ensureClass(ensureRequest())
	s.advanceClock(time.Minute)
	s.ensureClass(next)
	s.advanceClock(50 * time.Minute)
	s.ensureClass(next)
	if !s.profileExists("prod_1") || !s.profileExists("prod_2") {
		t.Fatal("the hour did not start over")
	}
	s.advanceClock(10 * time.Minute)
	s.ensureClass(next)
	if s.profileExists("prod_1") || !s.profileExists("prod_2") {
		t.Errorf("former profile exists: %t, current profile exists: %t", s.profileExists("prod_1"), s.profileExists("prod_2"))
	}
}

// The profile of a removed role is deleted after an hour and once no instance has it. No
// other profile is changed.
func TestProfileAfterRoleIsRemoved(t *testing.T) {
	for name, listed := range map[string]bool{"with permission to list": true, "without permission to list": false} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			if !listed {
				s.Deny(memcloud.ListProfiles)
			}
			s.ensureClass(ensureRequest())
			intent := s.newIntent("one", 1)
			intent.Templates[0].InstanceProfile = "prod_1"
			s.handleMessage(s.launchRequest(intent), "")
			node := s.nextResult().Instances[0].InstanceID
			created := s.Counts()[memcloud.CreateProfile].Calls
			own := ensureRequest(withRole(""), func(b *event.NodeClassEnsure) { b.Profile, b.Former = s.World.Profile, "prod_1" })
			requireProfile := func(when string, want bool) {
				t.Helper()
				done := s.ensureClass(own)
				if done.Retired == want || done.Problem != nil || s.profileExists("prod_1") != want {
					t.Fatalf("%s: the profile exists: %t, result %+v", when, s.profileExists("prod_1"), done)
				}
			}
			requireProfile("at once", true)
			s.advanceClock(61 * time.Minute)
			requireProfile("used by an instance", true)
			if err := s.Terminate(t.Context(), []string{node}); err != nil {
				t.Fatal(err)
			}
			s.advanceClock(5 * time.Minute)
			requireProfile("unused", false)
			requireProfile("repeated", false)
			if !s.profileExists(s.World.Profile) || s.Counts()[memcloud.CreateProfile].Calls != created {
				t.Error("another profile was changed or created")
			}
		})
	}
}

// A former profile stays, and is reported as not retired, as long as it is not known that no instance has it.
func TestFormerProfileStaysAfterErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(*fixture)
		edit func(*event.NodeClassEnsure)
	}{
		"profiles are not listed":      {func(s *fixture) { s.LoseCall(memcloud.ListProfiles) }, func(*event.NodeClassEnsure) {}},
		"instances are not described":  {func(s *fixture) { s.Deny(memcloud.DescribeInstances) }, func(*event.NodeClassEnsure) {}},
		"the path is another class's":  {func(*fixture) {}, func(b *event.NodeClassEnsure) { b.Path = "/karpenter/us-west-2/prod/v/" }},
		"the tags are another class's": {func(*fixture) {}, func(b *event.NodeClassEnsure) { b.Tags["karpenter.k8s.aws/ec2nodeclass"] = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.ensureClass(ensureRequest())
			request := func(edits ...func(*event.NodeClassEnsure)) event.NodeClassEnsure {
				return ensureRequest(append(edits, withRole(""), func(b *event.NodeClassEnsure) { b.Profile, b.Former = s.World.Profile, "prod_1" })...)
			}
			s.ensureClass(request())
			s.advanceClock(61 * time.Minute)
			c.fail(s)
			if done := s.ensureClass(request(c.edit)); done.Retired || done.Problem != nil || !s.profileExists("prod_1") {
				t.Errorf("the profile exists: %t, result %+v", s.profileExists("prod_1"), done)
			}
		})
	}
}

// A profile that the class names itself is not deleted, and neither is a profile of another class.
func TestProfilesOfOthersAreKept(t *testing.T) {
	s := newFixture(t)
	s.ensureClass(ensureRequest())
	s.ensureClass(ensureRequest(func(b *event.NodeClassEnsure) {
		b.Name, b.UID, b.Profile, b.Path = "other", "v", "prod_3", "/karpenter/us-west-2/prod/v/"
		b.Tags["karpenter.k8s.aws/ec2nodeclass"] = "other"
	}))
	own := func(profile, former string) func(*event.NodeClassEnsure) {
		return func(b *event.NodeClassEnsure) { b.Role, b.Profile, b.Former = "", profile, former }
	}
	for range 2 {
		if done := s.ensureClass(ensureRequest(own("prod_1", "prod_1"))); !done.Retired {
			t.Errorf("unexpected result %+v", done)
		}
		if done := s.ensureClass(ensureRequest(own("prod_1", "prod_3"))); done.Retired {
			t.Errorf("unexpected result %+v", done)
		}
		s.advanceClock(2 * time.Hour)
	}
	if want := metric.ForeignRequestsRefused.Name + " profile"; !slices.Contains(s.counts, want) {
		t.Errorf("the metrics %v lack %s", s.counts, want)
	}
	if done := s.ensureClass(ensureRequest(withDelete, own("prod_1", "prod_1"))); !done.Deleted {
		t.Errorf("unexpected result %+v", done)
	}
	if !s.profileExists("prod_1") || !s.profileExists("prod_3") {
		t.Errorf("own profile exists: %t, profile of the other class exists: %t", s.profileExists("prod_1"), s.profileExists("prod_3"))
	}
	if done := s.ensureClass(ensureRequest(withDelete, own(s.World.Profile, "prod_1"))); !done.Deleted || s.profileExists("prod_1") {
		t.Errorf("the former profile was not deleted with the class: %+v", done)
	}
}

// All profiles and templates of a deleted class are deleted, and no others.
func TestNodeClassDeletion(t *testing.T) {
	s := newFixture(t)
	s.AddRole("other")
	s.ensureClass(ensureRequest())
	s.ensureClass(ensureRequest(withRole("other"), func(b *event.NodeClassEnsure) { b.Profile = "prod_2" }))
	s.ensureClass(ensureRequest(func(b *event.NodeClassEnsure) {
		b.Name, b.UID, b.Profile, b.Path = "other", "v", "prod_3", "/karpenter/us-west-2/prod/v/"
		b.Tags["karpenter.k8s.aws/ec2nodeclass"] = "other"
	}))
	for name, class := range map[string]string{"template-1": "default", "template-2": "other"} {
		tags := policyTags()
		tags["karpenter.k8s.aws/ec2nodeclass"] = class
		if err := s.EnsureTemplate(t.Context(), cloud.Template{Name: name, ImageID: s.ImageAMD64.ID, Tags: tags}); err != nil {
			t.Fatal(err)
		}
	}
	if done := s.ensureClass(ensureRequest(withDelete)); !done.Deleted || done.Problem != nil {
		t.Errorf("unexpected result %+v", done)
	}
	for name, want := range map[string]bool{"prod_1": false, "prod_2": false, "prod_3": true, s.World.Profile: true} {
		if s.profileExists(name) != want {
			t.Errorf("profile %s exists: %t, want %t", name, !want, want)
		}
	}
	for name, want := range map[string]bool{"template-1": false, "template-2": true} {
		if _, exists := s.Template(name); exists != want {
			t.Errorf("%s exists: %t, want %t", name, exists, want)
		}
	}
}
