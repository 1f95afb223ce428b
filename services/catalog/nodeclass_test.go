package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// quickstartSpec returns the spec of the quickstart.
func quickstartSpec() karpenter.EC2NodeClassSpec {
	tags := map[string]string{"karpenter.sh/discovery": "demo"}
	return karpenter.EC2NodeClassSpec{
		SubnetSelectorTerms:        []karpenter.SubnetSelectorTerm{{Tags: tags}},
		SecurityGroupSelectorTerms: []karpenter.SecurityGroupSelectorTerm{{Tags: tags}},
		AMISelectorTerms:           []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}},
	}
}

func nodeClassChanged(t *testing.T, spec karpenter.EC2NodeClassSpec) event.NodeClassChanged {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return event.NodeClassChanged{Name: "default", UID: "nc-1", Generation: 3, Spec: text, Asked: start}
}

func (h *harness) resolveSpec(t *testing.T, spec karpenter.EC2NodeClassSpec) event.NodeClassResolved {
	t.Helper()
	if err := h.handleFrom(t, "watcher", nodeClassChanged(t, spec)); err != nil {
		t.Fatal(err)
	}
	return lastPublished[event.NodeClassResolved](t, h)
}

func TestResolveQuickstartClass(t *testing.T) {
	h := newHarness(t)
	full := h.ec2.AddSubnet(cloud.Subnet{Zone: "us-west-2a", FreeIPs: 9000, Tags: map[string]string{"karpenter.sh/discovery": "demo"}})
	h.ec2.AddSubnet(cloud.Subnet{Zone: "us-west-2a", FreeIPs: 9000, Tags: map[string]string{"karpenter.sh/discovery": "another"}})
	got := h.resolveSpec(t, quickstartSpec())
	if got.Name != "default" || got.UID != "nc-1" || got.Generation != 3 || !got.Asked.Equal(start) || !got.Read.Equal(h.now) || len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	if len(got.Subnets) != 4 || got.Subnets[0].ID != full.ID || got.Subnets[1].ZoneID == "" {
		t.Fatalf("subnets %+v", got.Subnets)
	}
	if len(got.SecurityGroups) != 1 || got.SecurityGroups[0].ID != h.account.SecurityGroup.ID {
		t.Fatalf("groups %+v", got.SecurityGroups)
	}
	ids := map[string]bool{}
	for _, image := range got.Images {
		ids[image.ID] = true
		if image.ID == h.account.ImageARM64.ID && !strings.Contains(string(image.Requirements), `"values":["arm64"]`) {
			t.Errorf("requirements %s", image.Requirements)
		}
	}
	if want := map[string]bool{h.account.ImageAMD64.ID: true, h.account.ImageARM64.ID: true}; !cmp.Equal(want, ids) {
		t.Fatalf("images %v, want %v", ids, want)
	}
}

func TestAliasPinsVersion(t *testing.T) {
	h := newHarness(t)
	h.now = h.now.AddDate(0, 0, 14)
	h.ec2.Advance()
	newer, _ := h.ec2.AddAL2023()
	spec := quickstartSpec()
	for alias, want := range map[string]string{"al2023@v20261120": h.account.ImageAMD64.ID, "al2023@latest": newer.ID} {
		spec.AMISelectorTerms[0].Alias = alias
		found := false
		for _, image := range h.resolveSpec(t, spec).Images {
			found = found || image.ID == want
		}
		if !found {
			t.Errorf("%s: did not find %s", alias, want)
		}
	}
}

func TestResolveProblems(t *testing.T) {
	type class = karpenter.EC2NodeClassSpec
	nothing := map[string]string{"team": "none"}
	for _, tt := range []struct {
		name      string
		spec      func(s *class)
		condition string
		reason    string
		text      string
	}{
		{"no subnets", func(s *class) { s.SubnetSelectorTerms[0].Tags = nothing }, "SubnetsReady", "SubnetsNotFound", "tag team=none"},
		{"no groups", func(s *class) { s.SecurityGroupSelectorTerms[0].Tags = nothing }, "SecurityGroupsReady", "SecurityGroupsNotFound", "tag team=none"},
		{"an AMI id as name", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{Name: "ami-0123456789abcdef0"} },
			"AMIsReady", "AMINotFound", "use id instead of name"},
		{"unknown id", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{ID: "ami-0"} }, "AMIsReady", "AMINotFound", "id ami-0"},
		{"AL2 on a newer cluster", func(s *class) { s.AMISelectorTerms[0].Alias = "al2@latest" }, "AMIsReady", "UnsupportedAlias", "al2023@latest"},
		{"no such version", func(s *class) { s.AMISelectorTerms[0].Alias = "al2023@v19700101" }, "AMIsReady", "AMINotFound", "al2023@latest"},
		{"no such family", func(s *class) { s.AMISelectorTerms[0].Alias = "beos@latest" }, "AMIsReady", "UnsupportedAlias", "al2023"},
		{"role and profile", func(s *class) { s.Role, s.InstanceProfile = "r", new("p") }, "ValidationSucceeded", "RoleAndInstanceProfile", "remove one"},
		{"a reserved tag", func(s *class) { s.Tags = map[string]string{"karpenter.sh/nodepool": "x"} }, "ValidationSucceeded", "TagValidationFailed", `"karpenter.sh/nodepool" is set`},
		{"too much user data", func(s *class) { s.UserData = new(strings.Repeat("x", 16384)) }, "ValidationSucceeded", "UserDataSizeLimitExceeded", "shorten"},
		{"unknown kubelet settings", func(s *class) { s.Kubelet = karpenter.KubeletConfiguration{"bogus": {Raw: []byte(`1`)}} },
			"ValidationSucceeded", "InvalidKubeletConfiguration", `spec.kubelet: unknown field "bogus"`},
		{"an expression without the gate", func(s *class) { s.Kubelet = karpenter.KubeletConfiguration{"maxPods": {Raw: []byte(`"vcpus * 8"`)}} },
			"ValidationSucceeded", "KubeletExpressionsDisabled", "NodeClassCEL"},
		{"no such parameter", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{SSMParameter: "/mine"} }, "AMIsReady", "AMINotFound", "/mine does not exist"},
		{"a parameter without an AMI id", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{SSMParameter: "/odd"} },
			"AMIsReady", "AMINotFound", "/odd does not contain an AMI id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			h.ec2.SetParameter("/odd", "42")
			spec := quickstartSpec()
			tt.spec(&spec)
			got := h.resolveSpec(t, spec)
			if len(got.Problems) != 1 {
				t.Fatalf("problems %+v", got.Problems)
			}
			p := got.Problems[0]
			if p.Condition != tt.condition || p.Reason != tt.reason || !strings.Contains(p.Message, tt.text) {
				t.Fatalf("got %+v", p)
			}
		})
	}
}

// TestExpressionsUsePublishedTypes checks that expressions are evaluated for the types of the published catalogue, and
// that a class waits for it instead of becoming invalid.
func TestExpressionsUsePublishedTypes(t *testing.T) {
	h := newHarness(t)
	spec := quickstartSpec()
	spec.Kubelet = karpenter.KubeletConfiguration{"maxPods": {Raw: []byte(`"max_pods - 4"`)}}
	body := nodeClassChanged(t, spec)
	body.Expressions, body.ReservedENIs = true, 1
	if err := h.handleFrom(t, "watcher", body); !fault.Is(err, fault.Retry) {
		t.Fatalf("without a catalogue: got %v, want an error that is retried", err)
	}
	first := lastPublished[event.NodeClassResolved](t, h)
	if len(first.Problems) != 1 || !first.Problems[0].Unread {
		t.Errorf("without a catalogue: got problems %+v", first.Problems)
	}
	if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: h.now}); err != nil {
		t.Fatal(err)
	}
	if err := h.handleFrom(t, "watcher", body); err != nil {
		t.Fatal(err)
	}
	second := lastPublished[event.NodeClassResolved](t, h)
	if len(second.Problems) != 1 || second.Problems[0].Reason != event.KubeletExpressionEvaluationFailed || len(second.Subnets) == 0 {
		t.Errorf("got problems %+v and %d subnets", second.Problems, len(second.Subnets))
	}
	body.ReservedENIs = 0 // Then the smallest types have 4 pods.
	if err := h.handleFrom(t, "watcher", body); err != nil {
		t.Fatal(err)
	}
	if third := lastPublished[event.NodeClassResolved](t, h); len(third.Problems) > 0 {
		t.Errorf("got problems %+v", third.Problems)
	}
}

func TestTermsFindImages(t *testing.T) {
	h := newHarness(t)
	mine := h.ec2.AddImage(cloud.Image{Name: "mine-1", Arch: "amd64", Tags: map[string]string{"team": "a"}})
	h.ec2.SetParameter("/mine", mine.ID)
	for name, term := range map[string]karpenter.AMISelectorTerm{
		"id": {ID: mine.ID}, "name": {Name: "mine-*"}, "tags": {Tags: map[string]string{"team": "*"}},
		"parameter": {SSMParameter: "/mine"}, "owner": {Owner: "self", Name: "mine-?"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := quickstartSpec()
			spec.AMISelectorTerms = []karpenter.AMISelectorTerm{term}
			got := h.resolveSpec(t, spec)
			if len(got.Images) != 1 || got.Images[0].ID != mine.ID || len(got.Problems) > 0 {
				t.Fatalf("got %+v", got)
			}
			const want = `[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]`
			if string(got.Images[0].Requirements) != want {
				t.Fatalf("requirements %s", got.Images[0].Requirements)
			}
		})
	}
}

// A missing permission must not make a working class unready. The affected condition is marked as
// unread, the other parts are published, and the error is returned.
func TestUnreadConditions(t *testing.T) {
	for _, tt := range []struct {
		action    memcloud.Action
		condition []string
	}{
		{memcloud.DescribeSubnets, []string{"SubnetsReady"}},
		{memcloud.DescribeSecurityGroups, []string{"SecurityGroupsReady"}},
		{memcloud.DescribeImages, []string{"AMIsReady"}},
		{memcloud.GetParameter, []string{"AMIsReady"}},
		{memcloud.DescribeReservations, []string{"CapacityReservationsReady"}},
		{memcloud.DescribeGroups, []string{"PlacementGroupReady"}},
		{memcloud.DescribeCluster, []string{"AMIsReady", "ValidationSucceeded"}},
	} {
		t.Run(string(tt.action), func(t *testing.T) {
			h := newHarness(t)
			h.ec2.Deny(tt.action)
			if err := h.handleFrom(t, "watcher", nodeClassChanged(t, specWithPlacements(h))); !fault.Is(err, fault.Denied) {
				t.Fatalf("got %v", err)
			}
			got := lastPublished[event.NodeClassResolved](t, h)
			var unread []string
			for _, p := range got.Problems {
				unread = append(unread, p.Condition)
				if !p.Unread || p.Warning || p.Reason != "AWSAccessDenied" || !strings.Contains(p.Message, string(tt.action)) {
					t.Errorf("got %+v", p)
				}
			}
			if diff := cmp.Diff(tt.condition, unread); diff != "" {
				t.Fatalf("unread (-want +got):\n%s", diff)
			}
			found := map[string]int{
				"SubnetsReady": len(got.Subnets), "SecurityGroupsReady": len(got.SecurityGroups),
				"AMIsReady": len(got.Images), "CapacityReservationsReady": len(got.Reservations),
			}
			for condition, n := range found {
				if (n == 0) != slices.Contains(tt.condition, condition) {
					t.Errorf("%s: %d resources", condition, n)
				}
			}
			if (got.Hash == "") != (tt.action == memcloud.DescribeCluster) || (got.Hash == "") != (got.HashVersion == "") {
				t.Errorf("hash %q of version %q", got.Hash, got.HashVersion)
			}
			partial := h.published[len(h.published)-1].ID
			h.ec2.Allow(tt.action)
			if err := h.handleFrom(t, "watcher", nodeClassChanged(t, specWithPlacements(h))); err != nil || h.published[len(h.published)-1].ID == partial {
				t.Errorf("no new event after the permission was added: %v", err)
			}
		})
	}
}

// A throttled call is reported in the reason and retried.
func TestThrottledIsUnread(t *testing.T) {
	h := newHarness(t)
	h.ec2.Refuse(memcloud.DescribeSubnets, fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	if err := h.handleFrom(t, "watcher", nodeClassChanged(t, quickstartSpec())); !fault.Is(err, fault.Throttled) {
		t.Fatalf("got %v", err)
	}
	got := lastPublished[event.NodeClassResolved](t, h)
	if len(got.Problems) != 1 || got.Problems[0].Reason != "AWSThrottled" || !got.Problems[0].Unread {
		t.Fatalf("got %+v", got.Problems)
	}
}

// specWithPlacements returns a spec that also selects a reservation and a placement group.
func specWithPlacements(h *harness) karpenter.EC2NodeClassSpec {
	spec := quickstartSpec()
	tags := map[string]string{"team": "ml"}
	h.ec2.AddReservation(cloud.Reservation{InstanceType: "m6i.large", Zone: "us-west-2a", Available: 3, Tags: tags})
	h.ec2.AddPlacementGroup(cloud.PlacementGroup{Name: "spread-group", Strategy: "spread"})
	spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: tags}}
	spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("spread-group")}
	return spec
}

func TestPlacements(t *testing.T) {
	h := newHarness(t)
	got := h.resolveSpec(t, specWithPlacements(h))
	if len(got.Problems) > 0 || len(got.Reservations) != 1 {
		t.Fatalf("got %+v", got)
	}
	if r := got.Reservations[0]; r.InstanceType != "m6i.large" || r.Zone != "us-west-2a" || r.MatchCriteria != "targeted" || r.Kind != "default" {
		t.Errorf("got %+v", r)
	}
	spec := specWithPlacements(h)
	spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{ID: "cr-0"}}
	spec.PlacementGroupSelector.Name = new("nowhere")
	got = h.resolveSpec(t, spec)
	want := []event.Problem{
		{Condition: "CapacityReservationsReady", Reason: "CapacityReservationsNotFound", Warning: true},
		{Condition: "PlacementGroupReady", Reason: "PlacementGroupNotFound"},
	}
	if len(got.Problems) != 2 || !strings.Contains(got.Problems[0].Message, "id cr-0") || !strings.Contains(got.Problems[1].Message, "name nowhere") {
		t.Fatalf("problems %+v", got.Problems)
	}
	if diff := cmp.Diff(want, got.Problems, cmpopts.IgnoreFields(event.Problem{}, "Message")); diff != "" {
		t.Fatalf("problems (-want +got):\n%s", diff)
	}
}

// A class without reservations and placement group needs no permission to read them.
func TestUnusedPermissionsAreNotRequired(t *testing.T) {
	h := newHarness(t)
	h.ec2.Deny(memcloud.DescribeReservations, memcloud.DescribeGroups)
	if got := h.resolveSpec(t, quickstartSpec()); len(got.Problems) > 0 {
		t.Fatalf("problems %+v", got.Problems)
	}
}

// A term that matches nothing is a warning if another term matches.
func TestUnmatchedTermsAreWarnings(t *testing.T) {
	h := newHarness(t)
	mine := h.ec2.AddImage(cloud.Image{Name: "mine-1", Arch: "amd64"})
	spec := quickstartSpec()
	spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{ID: mine.ID}, {Name: "ami-0123456789abcdef0"}, {SSMParameter: "/nowhere"}}
	got := h.resolveSpec(t, spec)
	if len(got.Images) != 1 || len(got.Problems) != 1 {
		t.Fatalf("got %+v", got)
	}
	p := got.Problems[0]
	if !p.Warning || p.Reason != "AMITermsUnmatched" || !strings.Contains(p.Message, "use id instead") || !strings.Contains(p.Message, "/nowhere does not exist") {
		t.Fatalf("got %+v", p)
	}
}

func TestInvalidSpecIsPoison(t *testing.T) {
	h := newHarness(t)
	body := nodeClassChanged(t, quickstartSpec())
	body.Spec = json.RawMessage(`[]`)
	if err := h.handleFrom(t, "watcher", body); !fault.Is(err, fault.Poison) {
		t.Fatalf("got %v", err)
	}
}
