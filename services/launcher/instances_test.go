package launcher_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

func TestTerminate(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	e := s.newMessage(event.TerminateRequested{InstanceID: id, Claim: claimName("one", 0), ClaimUID: "u", Reason: "test"})
	s.handleMessage(e, "")
	s.handleMessage(e, "")
	if record, _ := s.Record(id); record.State != cloud.ShuttingDown {
		t.Errorf("the instance is %s", record.State)
	}
	if n := s.Counts()[memcloud.TerminateInstances].Calls; n != 1 {
		t.Errorf("%d calls for one end", n)
	}
	s.advanceClock(time.Minute)
	s.handleMessage(e, "")
	if n := s.Counts()[memcloud.TerminateInstances].Calls; n != 1 {
		t.Errorf("what is terminated was terminated again")
	}
	if diff := cmp.Diff([]string{"launched on-demand", "terminated"}, s.counts); diff != "" {
		t.Error(diff)
	}
	s.requireNoFacts()
}

// What cannot be seen may be too young: lifecycle asks again.
func TestTerminateUnseen(t *testing.T) {
	s := newFixture(t)
	s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: "i-0000000000000000", Reason: "test"}), "")
	if n := s.Counts()[memcloud.TerminateInstances].Calls; n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestTerminateFails(t *testing.T) {
	s := newFixture(t)
	e := s.newMessage(event.TerminateRequested{InstanceID: s.launchInstance("one"), Intent: "one", Reason: "test"})
	s.LoseAnswer(memcloud.TerminateInstances)
	s.handleMessage(e, fault.Unknown)
	s.handleMessage(e, "")
	s.Deny(memcloud.DescribeInstances)
	s.handleMessage(e, fault.Denied)
}

// What Joist did not launch for this cluster it does not touch, whoever asks.
func TestForeignInstances(t *testing.T) {
	for name, spoil := range map[string]func(tags map[string]string){
		"another cluster's": func(tags map[string]string) {
			delete(tags, "kubernetes.io/cluster/prod")
			tags["kubernetes.io/cluster/dev"] = "owned"
		},
		"shared":       func(tags map[string]string) { tags["kubernetes.io/cluster/prod"] = "shared" },
		"of no pool":   func(tags map[string]string) { delete(tags, "karpenter.sh/nodepool") },
		"of nobody":    func(tags map[string]string) { clear(tags) },
		"a pool alone": func(tags map[string]string) { delete(tags, "kubernetes.io/cluster/prod") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			intent := s.newIntent("one", 1)
			if err := s.EnsureTemplate(t.Context(), intent.Templates[0]); err != nil {
				t.Fatal(err)
			}
			spoil(intent.Fleet.TagSets[0].Tags)
			result, err := s.CreateFleet(t.Context(), intent.Fleet)
			if err != nil {
				t.Fatal(err)
			}
			id := result.Instances[0].IDs[0]
			before := len(s.Effects(0))
			s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: id, Reason: "test"}), fault.Foreign)
			s.handleMessage(s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: map[string]string{"Name": "mine"}}), fault.Foreign)
			if len(s.Effects(0)) != before {
				t.Errorf("it was touched: %+v", s.Effects(before))
			}
			want := []string{"foreign instance", "foreign instance"}
			if diff := cmp.Diff(want, s.counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTag(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	wanted := map[string]string{"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": claimName("one", 0), "eks:eks-cluster-name": "prod"}
	e := s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: wanted})
	s.handleMessage(e, "")
	record, _ := s.Record(id)
	for key, value := range wanted {
		if record.Tags[key] != value {
			t.Errorf("tag %s is %q", key, record.Tags[key])
		}
	}
	s.handleMessage(e, "")
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 1 {
		t.Errorf("%d calls for tags that are there", n)
	}
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: "i-0000000000000000", ClaimUID: "u", Tags: wanted}), fault.Retry)
}

// What an instance carries already is its user's: a Name of the EC2NodeClass's
// tags stays. The tag that binds the instance to its claim is ours all the same.
func TestExistingTagsStay(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	if err := s.Tag(t.Context(), []string{id}, map[string]string{"Name": "web-fleet", "eks:eks-cluster-name": ""}); err != nil {
		t.Fatal(err)
	}
	claim := claimName("one", 0)
	wanted := map[string]string{"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": claim, "eks:eks-cluster-name": "prod"}
	e := s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: wanted})
	s.handleMessage(e, "")
	record, _ := s.Record(id)
	if record.Tags["Name"] != "web-fleet" || record.Tags["eks:eks-cluster-name"] != "" || record.Tags["karpenter.sh/nodeclaim"] != claim {
		t.Errorf("the tags are %v", record.Tags)
	}
	s.handleMessage(e, "")
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 2 {
		t.Errorf("%d calls, one of them the user's: nothing was left to tag", n)
	}
}

// A message cannot rename an instance into somebody else's.
func TestTagsNotAllowed(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	for _, key := range []string{"kubernetes.io/cluster/prod", "karpenter.sh/nodepool", "joist.sh/intent", "cost-centre"} {
		e := s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: map[string]string{"Name": "x", key: "y"}})
		s.handleMessage(e, fault.Poison)
	}
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestTagTerminatedInstance(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: id, Intent: "one", Reason: "test"}), "")
	s.advanceClock(time.Minute)
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: map[string]string{"Name": "x"}}), "")
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 0 {
		t.Errorf("a terminated instance was tagged")
	}
}

// Without a claim an instance is ended only if it carries exactly the tags that the
// request says: otherwise a claim may stand for it.
func TestTerminateWithoutClaim(t *testing.T) {
	const tag = "karpenter.sh/nodeclaim"
	for _, test := range []struct {
		name          string
		tags          map[string]string
		claim, intent string
		kind          fault.Kind
	}{
		{"of the intent", nil, "", "one", ""},
		{"of another intent", nil, "", "unknown", fault.Foreign},
		{"of no intent that is said", nil, "", "", fault.Foreign},
		{"of a claim", map[string]string{tag: claimName("one", 0)}, "", "one", fault.Foreign},
		{"of a claim that is said", map[string]string{tag: claimName("one", 0)}, claimName("one", 0), "one", ""},
		{"of another claim", map[string]string{tag: claimName("one", 0)}, claimName("one", 1), "one", fault.Foreign},
		{"of a claim of another intent", map[string]string{tag: claimName("one", 0)}, claimName("one", 0), "two", fault.Foreign},
		{"of no claim, and one is said", nil, claimName("one", 0), "one", fault.Foreign},
		{"Karpenter's", map[string]string{tag: "default-x1", "joist.sh/intent": ""}, "default-x1", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			id := s.launchInstance("one")
			if err := s.Tag(t.Context(), []string{id}, test.tags); err != nil {
				t.Fatal(err)
			}
			s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: id, Claim: test.claim, Intent: test.intent, Reason: "test"}), test.kind)
			record, _ := s.Record(id)
			if ended := record.State == cloud.ShuttingDown; ended != (test.kind == "") {
				t.Errorf("it is %s", record.State)
			}
		})
	}
}

// An instance is ended for its own claim alone.
func TestTerminateChecksClaim(t *testing.T) {
	for _, test := range []struct {
		name  string
		tags  map[string]string
		claim string
		kind  fault.Kind
	}{
		{"a claim of its intent", nil, claimName("one", 0), ""},
		{"another claim of its intent", nil, claimName("one", 7), ""},
		{"a claim of another intent", nil, claimName("two", 0), fault.Foreign},
		{"a claim of another pool", nil, launchspec.ClaimName("other", "one", 0), fault.Foreign},
		{"the claim that it is tagged with", map[string]string{"karpenter.sh/nodeclaim": claimName("one", 1)}, claimName("one", 1), ""},
		{"another than it is tagged with", map[string]string{"karpenter.sh/nodeclaim": claimName("one", 1)}, claimName("one", 0), fault.Foreign},
		{"launched by Karpenter", map[string]string{"karpenter.sh/nodeclaim": "default-x1", "joist.sh/intent": ""}, "default-x1", ""},
		{"launched by Karpenter for another", map[string]string{"karpenter.sh/nodeclaim": "default-x1", "joist.sh/intent": ""}, "default-x2", fault.Foreign},
		{"launched by Karpenter and not tagged yet", map[string]string{"joist.sh/intent": ""}, "default-x1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			id := s.launchInstance("one")
			if err := s.Tag(t.Context(), []string{id}, test.tags); err != nil {
				t.Fatal(err)
			}
			s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: id, Claim: test.claim, ClaimUID: "u", Reason: "test"}), test.kind)
			record, _ := s.Record(id)
			if ended := record.State == cloud.ShuttingDown; ended != (test.kind == "") {
				t.Errorf("it is %s", record.State)
			}
		})
	}
}
