package nodeclass

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var everything = Policy{Reservations: true, DryRuns: true}

func fresh() *karpenter.EC2NodeClass {
	c := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 3}}
	c.Spec.Role = "node"
	return c
}

// found returns the result if everything was found.
func found(problems ...event.Problem) event.NodeClassResolved {
	return event.NodeClassResolved{
		Name: "default", UID: "u", Generation: 3, Asked: noon, Problems: problems,
		Subnets:        []event.Subnet{{ID: "subnet-2", Zone: "a", ZoneID: "az1", FreeIPs: 9}, {ID: "subnet-1", Zone: "b"}},
		SecurityGroups: []event.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		Images:         []event.Image{{ID: "ami-1", Name: "al2023", Requirements: []byte(`[{"key":"kubernetes.io/arch","operator":"In","values":["arm64"]}]`)}},
		Reservations: []event.Reservation{{
			ID: "cr-1", InstanceType: "p5.48xlarge", Zone: "a", OwnerID: "111111111111", MatchCriteria: "targeted",
			Kind: "capacity-block", Expiring: true, Ends: noon.Add(time.Hour),
		}},
	}
}

func resolve(t testing.TB, c *karpenter.EC2NodeClass, b event.NodeClassResolved, policy Policy) *karpenter.EC2NodeClass {
	t.Helper()
	out, err := ApplyResolved(c, b, policy, noon)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shown formats the conditions.
func shown(c *karpenter.EC2NodeClass) map[string]string {
	out := map[string]string{}
	for _, x := range c.Status.Conditions {
		out[x.Type] = string(x.Status)
		if x.Reason != x.Type {
			out[x.Type] += " " + x.Reason
		}
	}
	return out
}

// The lists of the status have Karpenter's format.
func TestStatus(t *testing.T) {
	c := resolve(t, fresh(), found(), everything)
	want := karpenter.EC2NodeClassStatus{
		Subnets:        []karpenter.Subnet{{ID: "subnet-2", Zone: "a", ZoneID: "az1"}, {ID: "subnet-1", Zone: "b"}},
		SecurityGroups: []karpenter.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		AMIs: []karpenter.AMI{{ID: "ami-1", Name: "al2023", Requirements: []corev1.NodeSelectorRequirement{
			{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"arm64"}},
		}}},
		CapacityReservations: []karpenter.CapacityReservation{{
			ID: "cr-1", InstanceType: "p5.48xlarge", AvailabilityZone: "a", OwnerID: "111111111111", InstanceMatchCriteria: "targeted",
			ReservationType: "capacity-block", State: "expiring", EndTime: &metav1.Time{Time: noon.Add(time.Hour)},
		}},
		Conditions: c.Status.Conditions,
	}
	if diff := cmp.Diff(want, c.Status); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}

func TestInvalidRequirementsAreRejected(t *testing.T) {
	b := found()
	b.Images[0].Requirements = []byte(`{}`)
	if _, err := ApplyResolved(fresh(), b, everything, noon); err == nil {
		t.Error("ApplyResolved returned no error")
	}
}

func TestConditions(t *testing.T) {
	type class = karpenter.EC2NodeClass
	problem := func(condition, reason string) event.Problem {
		return event.Problem{Condition: condition, Reason: reason, Message: "because"}
	}
	unread := func(condition string) event.Problem {
		p := problem(condition, "AWSAccessDenied")
		p.Unread = true
		return p
	}
	warning := func(condition, reason string) event.Problem {
		p := problem(condition, reason)
		p.Warning = true
		return p
	}
	ensured := func(edit func(*event.NodeClassEnsured)) func(*class) *class {
		return func(c *class) *class {
			b := event.NodeClassEnsured{Name: "default", UID: "u", Role: "node", Profile: "p", Generation: 3, Validated: true, Asked: noon}
			if edit != nil {
				edit(&b)
			}
			return ApplyEnsured(c, b, everything, noon)
		}
	}
	answered := func(b event.NodeClassResolved) func(*class) *class {
		return func(c *class) *class { return resolve(t, c, b, everything) }
	}
	shares := func(value string, gate bool) func(*class) *class {
		return func(c *class) *class {
			c = c.DeepCopy()
			c.Annotations = map[string]string{karpenter.NVIDIAConsumableCapacityAnnotationKey: value}
			policy := everything
			policy.SharedGPUs = gate
			return resolve(t, c, found(), policy)
		}
	}
	newSpec := func(c *class) *class {
		c = c.DeepCopy()
		c.Generation++
		return c
	}
	next := found(unread("SubnetsReady"))
	next.Generation = 4
	refused := func(b *event.NodeClassEnsured) {
		b.Invalid = &event.Problem{Condition: "ValidationSucceeded", Reason: event.RunInstancesAuthCheckFailed, Message: "denied"}
	}
	badProfile := func(b *event.NodeClassEnsured) {
		b.Problem, b.Validated = &event.Problem{Condition: "InstanceProfileReady", Reason: "InstanceProfileRefused", Message: "denied"}, false
	}
	steps := func(all ...func(*class) *class) []func(*class) *class { return all }
	good := steps(answered(found()), ensured(nil))
	for _, tt := range []struct {
		name  string
		steps []func(*class) *class
		// want has the differences from a class that is ready.
		want map[string]string
	}{
		{"everything is ready", good, nil},
		{"profile before selectors", steps(ensured(func(b *event.NodeClassEnsured) { b.Validated = false }), answered(found()), ensured(nil)), nil},
		{"selectors before dry runs", steps(answered(found()), ensured(func(b *event.NodeClassEnsured) { b.Validated = false })),
			map[string]string{"ValidationSucceeded": "Unknown AwaitingReconciliation", "Ready": "Unknown ReconcilingDependents"}},
		{"selectors before the profile", steps(answered(found())), map[string]string{
			"InstanceProfileReady": "", "ValidationSucceeded": "Unknown DependenciesNotReady", "Ready": "Unknown ReconcilingDependents"}},
		{"a dry run is denied", steps(answered(found()), ensured(refused)), map[string]string{
			"ValidationSucceeded": "False RunInstancesAuthCheckFailed", "Ready": "False UnhealthyDependents"}},
		{"a denied dry run stays denied after the selectors are resolved again", steps(answered(found()), ensured(refused), answered(found())), map[string]string{
			"ValidationSucceeded": "False RunInstancesAuthCheckFailed", "Ready": "False UnhealthyDependents"}},
		{"a dry run is denied, then allowed", steps(answered(found()), ensured(refused), ensured(nil)), nil},
		{"an ensured message without dry runs changes nothing", steps(answered(found()), ensured(nil), ensured(func(b *event.NodeClassEnsured) { b.Validated = false })), nil},
		{"a dry run of another generation changes nothing", steps(answered(found()), ensured(nil), ensured(func(b *event.NodeClassEnsured) { refused(b); b.Generation = 2 })), nil},
		{"a dependency fails", steps(answered(found()), ensured(nil), answered(found(problem("SubnetsReady", "SubnetsNotFound")))), map[string]string{
			"SubnetsReady": "False SubnetsNotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"a dependency fails and recovers", steps(answered(found()), ensured(nil), answered(found(problem("SubnetsReady", "SubnetsNotFound"))), answered(found())), map[string]string{
			"ValidationSucceeded": "Unknown AwaitingReconciliation", "Ready": "Unknown ReconcilingDependents"}},
		{"the catalog rejects the spec", steps(answered(found(problem("ValidationSucceeded", event.TagValidationFailed))), ensured(nil)), map[string]string{
			"ValidationSucceeded": "False TagValidationFailed", "Ready": "False UnhealthyDependents"}},
		{"the catalog rejects the kubelet settings", steps(answered(found(problem("ValidationSucceeded", event.KubeletExpressionInvalid))), ensured(nil)), map[string]string{
			"ValidationSucceeded": "False KubeletExpressionInvalid", "Ready": "False UnhealthyDependents"}},
		{"the catalog rejects the user data", steps(answered(found(problem("ValidationSucceeded", event.UserDataSizeLimitExceeded))), ensured(nil)), map[string]string{
			"ValidationSucceeded": "False UserDataSizeLimitExceeded", "Ready": "False UnhealthyDependents"}},
		{"the catalog rejects the kubelet settings, then accepts them", steps(answered(found(problem("ValidationSucceeded", event.InvalidKubeletConfiguration))), ensured(nil), answered(found()), ensured(nil)), nil},
		{"the catalog rejects the spec, then accepts it", steps(answered(found(problem("ValidationSucceeded", event.ClusterCIDRResolutionFailed))), ensured(nil), answered(found()), ensured(nil)), nil},
		{"an invalid annotation for sharing GPUs", steps(answered(found()), ensured(nil), shares("many", true)), map[string]string{
			"ValidationSucceeded": "False NVIDIAConsumableCapacityInvalid", "Ready": "False UnhealthyDependents"}},
		{"dry runs do not overrule an invalid annotation", steps(answered(found()), shares("0", true), ensured(nil)), map[string]string{
			"ValidationSucceeded": "False NVIDIAConsumableCapacityInvalid", "Ready": "False UnhealthyDependents"}},
		{"GPUs are shared without the feature gate", steps(answered(found()), ensured(nil), shares("memory", false)), map[string]string{
			"ValidationSucceeded": "False DRADisabled", "Ready": "False UnhealthyDependents"}},
		{"GPUs are not shared, without the feature gate", steps(answered(found()), ensured(nil), shares("disabled", false)), nil},
		{"an empty annotation", steps(answered(found()), ensured(nil), shares("", false)), nil},
		{"GPUs are shared", steps(answered(found()), ensured(nil), shares("4", true)), nil},
		{"an annotation that is corrected", steps(answered(found()), shares("many", true), shares("memory", true), ensured(nil)), nil},
		{"a warning", steps(answered(found()), ensured(nil), answered(found(warning("ValidationSucceeded", event.UserDataSizeLimitExceeded))), ensured(nil)), map[string]string{
			"ValidationSucceeded": "True UserDataSizeLimitExceeded"}},
		{"not readable, never read before", steps(answered(found(unread("SubnetsReady"))), ensured(nil)), map[string]string{
			"SubnetsReady": "Unknown AWSAccessDenied", "ValidationSucceeded": "Unknown DependenciesNotReady", "Ready": "Unknown ReconcilingDependents"}},
		{"not readable, read before", steps(answered(found()), ensured(nil), answered(found(unread("SubnetsReady"), unread("AMIsReady"), unread("ValidationSucceeded")))), map[string]string{
			"SubnetsReady": "True AWSAccessDenied", "AMIsReady": "True AWSAccessDenied", "ValidationSucceeded": "True AWSAccessDenied"}},
		{"not readable, then readable again", steps(answered(found()), ensured(nil), answered(found(unread("SubnetsReady"), unread("ValidationSucceeded"))), answered(found())), nil},
		{"not readable, missing before", steps(answered(found(problem("AMIsReady", "AMINotFound"))), ensured(nil), answered(found(unread("AMIsReady")))), map[string]string{
			"AMIsReady": "False AMINotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"not readable after a change of the spec", steps(answered(found()), ensured(nil), newSpec, answered(next)), map[string]string{
			"SubnetsReady": "Unknown AWSAccessDenied", "ValidationSucceeded": "Unknown DependenciesNotReady", "Ready": "Unknown ReconcilingDependents"}},
		{"reservations not found", steps(answered(found()), ensured(nil), answered(found(warning("CapacityReservationsReady", "CapacityReservationsNotFound")))), map[string]string{
			"CapacityReservationsReady": "True CapacityReservationsNotFound"}},
		{"placement group not found", steps(answered(found()), ensured(nil), answered(found(problem("PlacementGroupReady", "PlacementGroupNotFound")))), map[string]string{
			"PlacementGroupReady": "False PlacementGroupNotFound", "Ready": "False UnhealthyDependents"}},
		{"the profile is denied", steps(answered(found()), ensured(badProfile)), map[string]string{
			"InstanceProfileReady": "False InstanceProfileRefused", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := map[string]string{}
			for _, kind := range append(karpenter.EC2NodeClassReady(true), "Ready") {
				want[kind] = "True"
			}
			for kind, text := range tt.want {
				if want[kind] = text; text == "" {
					delete(want, kind)
				}
			}
			c := fresh()
			for _, step := range tt.steps {
				c = step(c)
			}
			if diff := cmp.Diff(want, shown(c)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// Resources that could not be read are kept; missing ones are removed.
func TestUnreadableListsAreKept(t *testing.T) {
	c := resolve(t, fresh(), found(), everything)
	b := event.NodeClassResolved{Generation: 3, Problems: []event.Problem{
		{Condition: "SubnetsReady", Reason: "AWSThrottled", Message: "rate", Unread: true},
		{Condition: "AMIsReady", Reason: "AWSThrottled", Message: "rate", Unread: true},
		{Condition: "CapacityReservationsReady", Reason: "AWSAccessDenied", Message: "denied", Unread: true},
		{Condition: "SecurityGroupsReady", Reason: "SecurityGroupsNotFound", Message: "none"},
	}}
	got := resolve(t, c, b, everything).Status
	if len(got.Subnets) != 2 || len(got.AMIs) != 1 || len(got.CapacityReservations) != 1 || len(got.SecurityGroups) != 0 {
		t.Errorf("got %+v", got)
	}
	again := resolve(t, resolve(t, c, b, everything), b, everything)
	for _, x := range again.Status.Conditions {
		if x.Type == "SubnetsReady" && (strings.Count(x.Message, "kept") != 1 || !strings.Contains(x.Message, "rate")) {
			t.Errorf("got message %q", x.Message)
		}
	}
}

func TestFeatureGates(t *testing.T) {
	c := resolve(t, fresh(), found(), everything)
	off := resolve(t, c, found(), Policy{})
	if _, there := off.Status.Conditions.Get("CapacityReservationsReady"); there || off.Status.CapacityReservations != nil {
		t.Error("CapacityReservations are in the status without the feature gate")
	}
	off = ApplyEnsured(off, event.NodeClassEnsured{Role: "node", Profile: "p"}, Policy{}, noon)
	if !off.Status.Conditions.IsTrue("Ready") {
		t.Errorf("without dry runs the class is not Ready: %v", shown(off))
	}
}

// The input of dry runs contains the data that launches use, and does not change with free
// addresses and conditions.
func TestDryRunInput(t *testing.T) {
	c := resolve(t, fresh(), found(), everything)
	if CanDryRun(c) {
		t.Fatal("a class without a profile has dry runs")
	}
	c = ApplyEnsured(c, event.NodeClassEnsured{Role: "node", Profile: "p", Generation: 3}, everything, noon)
	if !CanDryRun(c) {
		t.Fatalf("a complete class has no dry runs: %v", shown(c))
	}
	first, _, err := DryRunInput(c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := found()
	b.Subnets[0], b.Subnets[1] = b.Subnets[1], b.Subnets[0]
	c = resolve(t, c, b, everything)
	c = ApplyEnsured(c, event.NodeClassEnsured{Role: "node", Profile: "p", Generation: 3, Validated: true}, everything, noon.Add(time.Hour))
	second, _, err := DryRunInput(c, nil, nil)
	if err != nil || string(first) != string(second) {
		t.Errorf("%s\nis another than\n%s (%v)", second, first, err)
	}
	c.Generation++
	if CanDryRun(c) || IsValidated(c) {
		t.Error("results for another generation are used")
	}
}

// TestUnreadableValidationKeepsWaiting checks that a validation which cannot be read while it waits continues
// to wait for the dry runs, with the same message.
func TestUnreadableValidationKeepsWaiting(t *testing.T) {
	policy := Policy{DryRuns: true}
	resolved := func(c *karpenter.EC2NodeClass, problem event.Problem) *karpenter.EC2NodeClass {
		t.Helper()
		out, err := ApplyResolved(c, found(problem), policy, noon)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	c := ApplyEnsured(fresh(), event.NodeClassEnsured{Role: "node", Profile: "p", Generation: 3}, policy, noon)
	c = resolved(c, event.Problem{Condition: karpenter.ConditionTypeAMIsReady, Reason: "Other", Message: "m"})
	unread := event.Problem{Condition: karpenter.ConditionTypeValidationSucceeded, Reason: "Other", Message: "m", Unread: true}
	for range 2 {
		c = resolved(c, unread)
		if have, _ := c.Status.Conditions.Get(conditionValidated); have.Reason != karpenter.ReasonAwaitingReconciliation {
			t.Errorf("got reason %s: %s", have.Reason, have.Message)
		}
	}
}

// Results may arrive twice and in any order: the input never changes, Ready is consistent with the
// other conditions, and a repeated result changes nothing.
func TestResultsInAnyOrder(t *testing.T) {
	kinds := append(karpenter.EC2NodeClassReady(true), "Other")
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{Reservations: rapid.Bool().Draw(t, "gate"), DryRuns: rapid.Bool().Draw(t, "dry runs")}
		c := fresh()
		for i := range rapid.IntRange(1, 8).Draw(t, "answers") {
			var answer func(*karpenter.EC2NodeClass) *karpenter.EC2NodeClass
			problem := &event.Problem{
				Condition: rapid.SampledFrom(kinds).Draw(t, fmt.Sprint("kind", i)), Reason: rapid.SampledFrom([]string{event.TagValidationFailed, "Other"}).Draw(t, "reason"),
				Unread: rapid.Bool().Draw(t, "unread"), Warning: rapid.Bool().Draw(t, "warning"), Message: "m",
			}
			if rapid.Bool().Draw(t, "selectors") {
				answer = func(c *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
					out, err := ApplyResolved(c, found(*problem), policy, noon)
					if err != nil {
						t.Fatal(err)
					}
					return out
				}
			} else {
				b := event.NodeClassEnsured{Role: "node", Profile: "p", Generation: 3, Validated: rapid.Bool().Draw(t, "validated")}
				if rapid.Bool().Draw(t, "invalid") {
					b.Invalid = problem
				}
				answer = func(c *karpenter.EC2NodeClass) *karpenter.EC2NodeClass { return ApplyEnsured(c, b, policy, noon) }
			}
			before := c.DeepCopy()
			next := answer(c)
			if diff := cmp.Diff(before, c); diff != "" {
				t.Fatalf("the object was changed:\n%s", diff)
			}
			if diff := cmp.Diff(next.Status, answer(next).Status); diff != "" {
				t.Fatalf("the same answer again changed something:\n%s", diff)
			}
			c = next
		}
		if c.Status.Conditions.IsTrue("Ready") {
			for _, kind := range karpenter.EC2NodeClassReady(policy.Reservations) {
				if !c.Status.Conditions.IsTrue(kind) {
					t.Fatalf("Ready is True without %s", kind)
				}
			}
		}
	})
}
