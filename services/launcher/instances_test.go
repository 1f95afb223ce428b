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
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

func TestTerminateInstance(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	e := s.newMessage(event.TerminateRequested{InstanceID: id, Claim: claimName("one", 0), ClaimUID: "u", Reason: "test"})
	s.handleMessage(e, "")
	s.handleMessage(e, "")
	if record, _ := s.Record(id); record.State != cloud.ShuttingDown {
		t.Errorf("the instance is %s, want shutting-down", record.State)
	}
	if n := s.Counts()[memcloud.TerminateInstances].Calls; n != 1 {
		t.Errorf("%d calls to terminate one instance", n)
	}
	s.advanceClock(time.Minute)
	s.handleMessage(e, "")
	if n := s.Counts()[memcloud.TerminateInstances].Calls; n != 1 {
		t.Errorf("a terminated instance was terminated again")
	}
	if diff := cmp.Diff([]string{metric.InstancesLaunched.Name + " on-demand", metric.TerminationsRequested.Name}, s.counts); diff != "" {
		t.Error(diff)
	}
	s.requireNoFacts()
}

// The instance of a NodeClaim that a user created is tagged, rebooted and terminated, although the planner did not choose the
// NodeClaim's name. No other NodeClaim gets it.
func TestInstanceOfUnplannedClaim(t *testing.T) {
	s := newFixture(t)
	intent := s.newIntent(launchspec.UnplannedIntentID(s.service.Cluster, "batch", 0, "mine"), 1)
	intent.Claims = []string{"mine"}
	s.handleMessage(s.launchRequest(intent), "")
	id := s.nextResult().Instances[0].InstanceID
	s.advanceClock(time.Minute)
	requests := func(claim string) []event.Body {
		return []event.Body{
			event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: map[string]string{karpenter.NodeClaimTagKey: claim, "Name": "node"}},
			event.RebootRequested{InstanceID: id, Claim: claim, ClaimUID: "u", Operation: "op"},
			event.TerminateRequested{InstanceID: id, Claim: claim, ClaimUID: "u", Reason: "test"},
		}
	}
	for _, body := range append(requests("yours"), requests(claimName("one", 0))...) {
		s.handleMessage(s.newMessage(body), fault.Foreign)
	}
	for _, body := range requests("mine") {
		s.handleMessage(s.newMessage(body), "")
	}
	record, _ := s.Record(id)
	if record.State != cloud.ShuttingDown || record.Tags[karpenter.NodeClaimTagKey] != "mine" || len(s.Reboots()) != 1 {
		t.Errorf("after %d reboots the instance is %s, with the tags %v", len(s.Reboots()), record.State, record.Tags)
	}
}

// EC2's definite answers are published; other errors are retried. The instance must be the cluster's.
func TestRebootInstance(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(f *fixture, id string)
		kind    fault.Kind
		refusal string
		reboots int
	}{
		"accepted": {func(*fixture, string) {}, "", "", 1},
		"throttled": {func(f *fixture, _ string) {
			f.Refuse(memcloud.RebootInstances, fault.Throttled, "RequestLimitExceeded", "slow down")
		}, fault.Throttled, "", 0},
		"no answer":  {func(f *fixture, _ string) { f.LoseAnswer(memcloud.RebootInstances) }, fault.Unknown, "", 1},
		"denied":     {func(f *fixture, _ string) { f.Deny(memcloud.RebootInstances) }, "", "ec2:RebootInstances", 0},
		"stopped":    {func(f *fixture, id string) { f.Stop(id) }, fault.Rejected, "", 0},
		"terminated": {func(f *fixture, id string) { f.Fail(id) }, "", "the instance is gone", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			id := s.launchInstance("one")
			s.advanceClock(time.Minute)
			c.change(s, id)
			b := event.RebootRequested{InstanceID: id, Claim: claimName("one", 0), ClaimUID: "u", Operation: "op"}
			s.handleMessage(s.newMessage(b), c.kind)
			if got := len(s.Reboots()); got != c.reboots {
				t.Errorf("%d reboots, want %d", got, c.reboots)
			}
			if c.kind != "" {
				s.requireNoFacts()
				return
			}
			body := nextFact[event.RebootSettled](s)
			if !strings.Contains(body.Refusal, c.refusal) || c.refusal == "" && body.Refusal != "" {
				t.Errorf("the refusal is %q, want %q", body.Refusal, c.refusal)
			}
			body.Refusal = ""
			if diff := cmp.Diff(event.RebootSettled{InstanceID: id, Claim: b.Claim, ClaimUID: "u", Operation: "op"}, body); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := newFixture(t)
	id := s.launchInstance("one")
	s.handleMessage(s.newMessage(event.RebootRequested{InstanceID: id, Claim: "default-other", ClaimUID: "u", Operation: "op"}), fault.Foreign)
	s.requireNoFacts()
}

// An instance that EC2 does not return may be too new: lifecycle repeats the request.
func TestTerminateMissingInstanceIsRetried(t *testing.T) {
	s := newFixture(t)
	s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: "i-0000000000000000", Reason: "test"}), "")
	if n := s.Counts()[memcloud.TerminateInstances].Calls; n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestTerminateErrorsAreReturned(t *testing.T) {
	s := newFixture(t)
	e := s.newMessage(event.TerminateRequested{InstanceID: s.launchInstance("one"), Intent: "one", Reason: "test"})
	s.LoseAnswer(memcloud.TerminateInstances)
	s.handleMessage(e, fault.Unknown)
	s.handleMessage(e, "")
	s.Deny(memcloud.DescribeInstances)
	s.handleMessage(e, fault.Denied)
}

// The launcher changes only instances of this cluster.
func TestForeignInstances(t *testing.T) {
	for name, spoil := range map[string]func(tags map[string]string){
		"another cluster's": func(tags map[string]string) {
			delete(tags, "kubernetes.io/cluster/prod")
			tags["kubernetes.io/cluster/dev"] = "owned"
		},
		"shared":          func(tags map[string]string) { tags["kubernetes.io/cluster/prod"] = "shared" },
		"no NodePool":     func(tags map[string]string) { delete(tags, "karpenter.sh/nodepool") },
		"no tags":         func(tags map[string]string) { clear(tags) },
		"only a NodePool": func(tags map[string]string) { delete(tags, "kubernetes.io/cluster/prod") },
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
			s.handleMessage(s.newMessage(event.RebootRequested{InstanceID: id, Claim: "c", ClaimUID: "u", Operation: "op"}), fault.Foreign)
			s.handleMessage(s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: map[string]string{"Name": "mine"}}), fault.Foreign)
			if len(s.Effects(0)) != before {
				t.Errorf("EC2 was changed: %+v", s.Effects(before))
			}
			want := []string{metric.ForeignRequestsRefused.Name + " instance", metric.ForeignRequestsRefused.Name + " instance", metric.ForeignRequestsRefused.Name + " instance"}
			if diff := cmp.Diff(want, s.counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTagInstance(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	wanted := map[string]string{"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": claimName("one", 0), "eks:eks-cluster-name": "prod"}
	e := s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: wanted})
	s.handleMessage(e, "")
	record, _ := s.Record(id)
	for key, value := range wanted {
		if record.Tags[key] != value {
			t.Errorf("tag %s is %q, want %q", key, record.Tags[key], value)
		}
	}
	s.handleMessage(e, "")
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 1 {
		t.Errorf("%d calls, want 1: the tags exist", n)
	}
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: "i-0000000000000000", ClaimUID: "u", Tags: wanted}), fault.Retry)
	s.LoseCall(memcloud.CreateTags)
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: s.launchInstance("two"), ClaimUID: "u", Tags: map[string]string{"Name": "two"}}), fault.Unknown)
}

// A request that arrives again before EC2 shows the tags is denied by the role's policy, which allows a NodeClaim's tag only
// once. It is repeated until EC2 shows them. Without any permission to tag the denial remains.
func TestTagsThatEC2DoesNotShowYet(t *testing.T) {
	const lag = 20 * time.Second
	s := newFixture(t)
	id := s.launchInstance("one")
	wanted := map[string]string{"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": claimName("one", 0), "eks:eks-cluster-name": "prod"}
	e := s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: wanted})
	s.Refuse(memcloud.CreateTags, fault.Denied, "UnauthorizedOperation", "not authorized")
	s.Refuse(memcloud.CreateTags, fault.Denied, "UnauthorizedOperation", "not authorized")
	s.handleMessage(e, fault.Denied)
	s.SetFaults(memcloud.Faults{Lag: lag})
	s.handleMessage(e, "")
	s.SetFaults(memcloud.Faults{})
	s.Refuse(memcloud.CreateTags, fault.Denied, "UnauthorizedOperation", "not authorized")
	s.handleMessage(e, fault.Retry)
	s.advanceClock(lag)
	s.handleMessage(e, "")
	if record, _ := s.Record(id); record.Tags["karpenter.sh/nodeclaim"] != claimName("one", 0) {
		t.Errorf("tags %v", record.Tags)
	}
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 5 {
		t.Errorf("%d calls, want 5: two without permission, one that tags, and one denied with its check", n)
	}
	// Only the NodeClaim's tag may be denied for that reason.
	s.Refuse(memcloud.CreateTags, fault.Denied, "UnauthorizedOperation", "not authorized")
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: s.launchInstance("two"), ClaimUID: "u", Tags: map[string]string{"Name": "two"}}), fault.Denied)
	// Without other tags, no call can show that tags are allowed.
	s.Refuse(memcloud.CreateTags, fault.Denied, "UnauthorizedOperation", "not authorized")
	alone := map[string]string{"karpenter.sh/nodeclaim": claimName("three", 0)}
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: s.launchInstance("three"), ClaimUID: "u", Tags: alone}), fault.Denied)
}

// Existing tags of an instance are kept, for example a Name of the EC2NodeClass. The NodeClaim tag
// is set nevertheless.
func TestExistingTagsAreKept(t *testing.T) {
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
		t.Errorf("unexpected tags %v", record.Tags)
	}
	s.handleMessage(e, "")
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 2 {
		t.Errorf("%d calls, want 2 with the call of the test: no tags were missing", n)
	}
}

// A message cannot change the tags that determine the owner.
func TestOwnerTagsAreRejected(t *testing.T) {
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

func TestTerminatedInstanceIsNotTagged(t *testing.T) {
	s := newFixture(t)
	id := s.launchInstance("one")
	s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: id, Intent: "one", Reason: "test"}), "")
	s.advanceClock(time.Minute)
	s.handleMessage(s.newMessage(event.TagRequested{InstanceID: id, ClaimUID: "u", Tags: map[string]string{"Name": "x"}}), "")
	if n := s.Counts()[memcloud.CreateTags].Calls; n != 0 {
		t.Errorf("a terminated instance was tagged")
	}
}

// Without a claim an instance is terminated only if it has exactly the tags of the
// request: otherwise a NodeClaim may exist for it.
func TestTerminateWithoutClaim(t *testing.T) {
	const tag = "karpenter.sh/nodeclaim"
	for _, test := range []struct {
		name          string
		tags          map[string]string
		claim, intent string
		kind          fault.Kind
	}{
		{"the intent of the request", nil, "", "one", ""},
		{"another intent", nil, "", "unknown", fault.Foreign},
		{"no intent in the request", nil, "", "", fault.Foreign},
		{"tagged with a claim", map[string]string{tag: claimName("one", 0)}, "", "one", fault.Foreign},
		{"tagged with the claim of the request", map[string]string{tag: claimName("one", 0)}, claimName("one", 0), "one", ""},
		{"tagged with another claim", map[string]string{tag: claimName("one", 0)}, claimName("one", 1), "one", fault.Foreign},
		{"tagged with a claim of another intent", map[string]string{tag: claimName("one", 0)}, claimName("one", 0), "two", fault.Foreign},
		{"not tagged with the claim of the request", nil, claimName("one", 0), "one", fault.Foreign},
		{"launched by Karpenter", map[string]string{tag: "default-x1", "joist.sh/intent": ""}, "default-x1", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			id := s.launchInstance("one")
			if err := s.Tag(t.Context(), []string{id}, test.tags); err != nil {
				t.Fatal(err)
			}
			s.handleMessage(s.newMessage(event.TerminateRequested{InstanceID: id, Claim: test.claim, Intent: test.intent, Reason: "test"}), test.kind)
			record, _ := s.Record(id)
			if terminated := record.State == cloud.ShuttingDown; terminated != (test.kind == "") {
				t.Errorf("the instance is %s", record.State)
			}
			if refused := slices.Contains(s.counts, metric.ForeignRequestsRefused.Name+" instance"); refused != (test.kind == fault.Foreign) {
				t.Errorf("the metrics are %v", s.counts)
			}
		})
	}
}

// An instance is terminated only for its own claim.
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
		{"the claim of its tag", map[string]string{"karpenter.sh/nodeclaim": claimName("one", 1)}, claimName("one", 1), ""},
		{"another claim than its tag", map[string]string{"karpenter.sh/nodeclaim": claimName("one", 1)}, claimName("one", 0), fault.Foreign},
		{"launched by Karpenter", map[string]string{"karpenter.sh/nodeclaim": "default-x1", "joist.sh/intent": ""}, "default-x1", ""},
		{"launched by Karpenter for another claim", map[string]string{"karpenter.sh/nodeclaim": "default-x1", "joist.sh/intent": ""}, "default-x2", fault.Foreign},
		{"launched by Karpenter for a claim without a NodePool", map[string]string{"karpenter.sh/nodeclaim": "mine", "joist.sh/intent": "", "karpenter.sh/nodepool": ""}, "mine", ""},
		{"launched by Karpenter for another claim without a NodePool", map[string]string{"karpenter.sh/nodeclaim": "mine", "joist.sh/intent": "", "karpenter.sh/nodepool": ""}, "yours", fault.Foreign},
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
			if terminated := record.State == cloud.ShuttingDown; terminated != (test.kind == "") {
				t.Errorf("the instance is %s", record.State)
			}
		})
	}
}
