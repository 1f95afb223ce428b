package conditions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var (
	born = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	now  = born.Add(time.Minute)
)

// change modifies the observation.
type change func(*conditions.Observed)

// seen returns a claim that was created a minute ago, with these changes.
func seen(changes ...change) conditions.Observed {
	s := conditions.Observed{Now: now, Claim: &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "claim-uid", Generation: 1, CreationTimestamp: metav1.NewTime(born),
	}}}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// The phases, each in addition to the previous one. Registered and initialized are as after the
// write of the node's label.
func launched(s *conditions.Observed) { s.Claim.Status.ProviderID = "aws:///a/i-1" }

func joined(s *conditions.Observed) {
	launched(s)
	s.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}}
}

func registered(s *conditions.Observed) {
	joined(s)
	s.Nodes[0].Labels[karpenter.NodeRegisteredLabelKey] = "true"
	s.Claim.Status.Conditions = conditions.Compute(*s)
}

func ready(s *conditions.Observed) {
	registered(s)
	s.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

func initialized(s *conditions.Observed) {
	ready(s)
	s.Nodes[0].Labels[karpenter.NodeInitializedLabelKey] = "true"
	s.Claim.Status.Conditions = conditions.Compute(*s)
}

func tainted(key, value string, effect corev1.TaintEffect) change {
	return func(s *conditions.Observed) {
		s.Nodes[0].Spec.Taints = append(s.Nodes[0].Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func startup(key string) change {
	return func(s *conditions.Observed) {
		s.Claim.Spec.StartupTaints = []corev1.Taint{{Key: key, Value: "wanted", Effect: corev1.TaintEffectNoSchedule}}
	}
}

func requests(names ...string) change {
	return func(s *conditions.Observed) {
		s.Claim.Spec.Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("0")}
		for _, name := range names {
			s.Claim.Spec.Resources.Requests[corev1.ResourceName(name)] = resource.MustParse("1")
		}
	}
}

func offers(name, amount string) change {
	return func(s *conditions.Observed) {
		s.Nodes[0].Status.Allocatable = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
}

func nodes(n int) change {
	return func(s *conditions.Observed) {
		s.Nodes = nil
		for i := range n {
			s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
		}
	}
}

// words formats conditions, one per line.
func words(c karpenter.Conditions) string {
	var lines []string
	for _, x := range c {
		line := fmt.Sprintf("%s %s %s", x.Type, x.Status, x.Reason)
		if x.Message != "" {
			line += ": " + x.Message
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const awaits = "AwaitingReconciliation: object is awaiting reconciliation"

func TestConditions(t *testing.T) {
	for _, test := range []struct {
		name string
		seen conditions.Observed
		want []string
	}{
		{"new claim", seen(), []string{
			"Launched Unknown " + awaits, "Registered Unknown NodeNotFound: Node not registered with cluster", "Initialized Unknown " + awaits,
			"Ready Unknown ReconcilingDependents: Launched=Unknown, Registered=Unknown, Initialized=Unknown",
		}},
		{"refused", seen(func(s *conditions.Observed) { s.Failure = "launch refused: denied" }), []string{
			"Launched Unknown LaunchFailed: launch refused: denied", "Registered Unknown NodeNotFound: Node not registered with cluster",
			"Initialized Unknown " + awaits, "Ready Unknown ReconcilingDependents: Launched=Unknown, Registered=Unknown, Initialized=Unknown",
		}},
		{"launched", seen(launched), []string{
			"Launched True Launched", "Registered Unknown NodeNotFound: Node not registered with cluster", "Initialized Unknown " + awaits,
			"Ready Unknown ReconcilingDependents: Registered=Unknown, Initialized=Unknown",
		}},
		{"two nodes with one provider ID", seen(launched, nodes(2)), []string{
			"Launched True Launched", "Registered False MultipleNodesFound: Invariant violated, matched multiple nodes", "Initialized Unknown " + awaits,
			"Ready False UnhealthyDependents: Registered=False, Initialized=Unknown",
		}},
		{"a registration hook is pending", seen(joined, func(s *conditions.Observed) { s.Pending = []string{"A", "B"} }), []string{
			"Launched True Launched", "Registered Unknown RegistrationHookPending: A, B", "Initialized Unknown " + awaits,
			"Ready Unknown ReconcilingDependents: Registered=Unknown, Initialized=Unknown",
		}},
		{"no registration hook is pending", seen(joined), []string{
			"Launched True Launched", "Registered Unknown " + awaits, "Initialized Unknown " + awaits,
			"Ready Unknown ReconcilingDependents: Registered=Unknown, Initialized=Unknown",
		}},
		{"registered", seen(registered), []string{
			"Launched True Launched", "Registered True Registered", "Initialized Unknown NodeNotReady: Node status is NotReady",
			"Ready Unknown ReconcilingDependents: Initialized=Unknown",
		}},
		{"initialized", seen(initialized), []string{
			"Launched True Launched", "Registered True Registered", "Initialized True Initialized", "Ready True Ready",
		}},
		{"the node of an issued reboot is initialized only later", seen(initialized, func(s *conditions.Observed) {
			s.Claim.Status.Conditions = conditions.With(s.Claim, metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: "Rebooting", Message: "node is rebooting"}, now)
			s.Claim.Status.Conditions = conditions.With(s.Claim, metav1.Condition{Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionTrue, Reason: karpenter.RebootIssuedReason}, now)
		}), []string{
			"Launched True Launched", "Registered True Registered", "Initialized Unknown Rebooting: node is rebooting",
			"Ready Unknown ReconcilingDependents: Initialized=Unknown", "Rebooting True RebootIssued",
		}},
		{"conditions that are True stay True", seen(initialized, nodes(0)), []string{
			"Launched True Launched", "Registered True Registered", "Initialized True Initialized", "Ready True Ready",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(test.want, "\n"), words(conditions.Compute(test.seen))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The reasons why a registered node waits, in the order of the checks.
func TestInitializedReasons(t *testing.T) {
	const taint = corev1.TaintEffectNoSchedule
	for _, test := range []struct {
		name string
		seen conditions.Observed
		want string
	}{
		{"its node was removed", seen(ready, nodes(0)), "Unknown NodeNotFound: Node not registered with cluster"},
		{"two nodes", seen(ready, nodes(2)), "Unknown NodeNotFound: Node not registered with cluster"},
		{"not ready", seen(registered, startup("slow"), tainted("slow", "", taint)), "Unknown NodeNotReady: Node status is NotReady"},
		{"a startup taint", seen(ready, startup("slow"), tainted("slow", "", taint)), `Unknown StartupTaintsExist: StartupTaint "slow:NoSchedule" still exists`},
		{"a startup taint with another value", seen(ready, startup("slow"), tainted("slow", "other", taint)), `Unknown StartupTaintsExist: StartupTaint "slow=other:NoSchedule" still exists`},
		{"a startup taint with another effect", seen(ready, startup("slow"), tainted("slow", "", corev1.TaintEffectNoExecute)), "Unknown " + awaits},
		{"an ephemeral taint", seen(ready, tainted("node.cloudprovider.kubernetes.io/uninitialized", "true", taint)), `Unknown KnownEphemeralTaintsExist: KnownEphemeralTaint "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule" still exists`},
		{"an unreachable taint", seen(ready, tainted(corev1.TaintNodeUnreachable, "", corev1.TaintEffectNoExecute)), "Unknown " + awaits},
		{"a readiness rule taint", seen(ready, tainted("readiness.k8s.io/net", "", taint)), `Unknown KnownEphemeralTaintsExist: KnownEphemeralTaint "readiness.k8s.io/net:NoSchedule" still exists`},
		{"another taint", seen(ready, tainted("dedicated", "", taint)), "Unknown " + awaits},
		{"devices that are not registered", seen(ready, requests("z.com/gpu", "a.com/nic")), `Unknown ResourceNotRegistered: Resource "a.com/nic" was requested but not registered`},
		{"a device with zero allocatable", seen(ready, requests("a.com/nic"), offers("a.com/nic", "0")), `Unknown ResourceNotRegistered: Resource "a.com/nic" was requested but not registered`},
		{"a device", seen(ready, requests("a.com/nic"), offers("a.com/nic", "1")), "Unknown " + awaits},
		{"a driver without a pool", seen(ready, func(s *conditions.Observed) { s.MissingDriver = "gpu.nvidia.com" }),
			`Unknown DRADriverPoolsNotPublished: DRA driver "gpu.nvidia.com" has not published a complete resource pool`},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The previous reconcile did not have this condition.
			test.seen.Claim.Status.Conditions = test.seen.Claim.Status.Conditions.Without(karpenter.ConditionTypeInitialized)
			got, _ := conditions.Compute(test.seen).Get(karpenter.ConditionTypeInitialized)
			if diff := cmp.Diff("Initialized "+test.want, words(karpenter.Conditions{got})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A missing condition has the claim's creation time, and a changed reason does not change the
// transition time.
func TestTransitionTimes(t *testing.T) {
	at := func(c karpenter.Conditions, kind string) time.Time {
		got, _ := c.Get(kind)
		return got.LastTransitionTime.Time
	}
	first := conditions.Compute(seen())
	for _, kind := range []string{"Launched", "Registered", "Initialized", "Ready"} {
		if got := at(first, kind); !got.Equal(born) {
			t.Errorf("the transition time of %s on a new claim is %s", kind, got)
		}
	}
	s := seen(launched)
	s.Claim.Status.Conditions = first
	next := conditions.Compute(s)
	if got := at(next, "Launched"); !got.Equal(now) {
		t.Errorf("the transition time of Launched is %s", got)
	}
	s = seen(ready, tainted("readiness.k8s.io/net", "", corev1.TaintEffectNoSchedule))
	before := at(s.Claim.Status.Conditions, "Initialized")
	s.Now = now.Add(time.Minute)
	if got := at(conditions.Compute(s), "Initialized"); !got.Equal(before) {
		t.Errorf("the transition time changed to %s", got)
	}
}

// A second evaluation changes nothing, and the input is never changed.
func TestSecondEvaluationChangesNothing(t *testing.T) {
	for _, s := range []conditions.Observed{seen(), seen(launched), seen(joined), seen(registered), seen(ready), seen(initialized)} {
		before := s.Claim.DeepCopy()
		once := conditions.Compute(s)
		if diff := cmp.Diff(before, s.Claim); diff != "" {
			t.Errorf("the claim was changed:\n%s", diff)
		}
		s.Claim.Status.Conditions = once
		s.Now = s.Now.Add(time.Hour)
		if twice := conditions.Compute(s); !once.Equal(twice) {
			t.Errorf("once:\n%s\ntwice:\n%s", words(once), words(twice))
		}
	}
}

// A new generation is evaluated again. Deletion does not change Ready.
func TestObservedGenerations(t *testing.T) {
	s := seen(initialized)
	s.Claim.Generation = 2
	for _, c := range conditions.Compute(s) {
		if c.ObservedGeneration != 2 || c.Status != metav1.ConditionTrue {
			t.Errorf("after an edit the condition is %+v", c)
		}
	}
	at := metav1.NewTime(now)
	s.Claim.DeletionTimestamp = &at
	going := conditions.WithTrue(s.Claim, karpenter.ConditionTypeDrained, now)
	if !going.IsTrue(karpenter.ConditionTypeDrained) || !going.IsTrue(karpenter.ConditionTypeReady) {
		t.Errorf("a claim that goes:\n%s", words(going))
	}
	for _, c := range going {
		if c.ObservedGeneration != 2 {
			t.Errorf("after a deletion the condition is %+v", c)
		}
	}
	s.Claim.DeletionTimestamp = nil
	if stays := conditions.WithTrue(s.Claim, karpenter.ConditionTypeConsolidatable, now); stays.IsTrue(karpenter.ConditionTypeReady) {
		t.Error("Ready is True for a generation that was not evaluated")
	}
}

// A long error is truncated, but not within a character.
func TestLongMessageIsTruncated(t *testing.T) {
	for _, test := range []struct {
		name, failure, want string
	}{
		{"short", strings.Repeat("x", 299), strings.Repeat("x", 299)},
		{"long", strings.Repeat("x", 300), strings.Repeat("x", 300) + "..."},
		{"a multi-byte character at the limit", strings.Repeat("x", 299) + "ü" + "y", strings.Repeat("x", 299) + "..."},
	} {
		got, _ := conditions.Compute(seen(func(s *conditions.Observed) { s.Failure = test.failure })).Get(karpenter.ConditionTypeLaunched)
		if got.Message != test.want {
			t.Errorf("%s: %q", test.name, got.Message)
		}
	}
}

// Drifted exists while there is a reason. Its time is when the first reason began.
func TestDriftedCondition(t *testing.T) {
	claim := seen(launched).Claim
	drift := func(reason string, at time.Time) metav1.Condition {
		claim.Status.Conditions = conditions.WithDrifted(claim, reason, at)
		got, _ := claim.Status.Conditions.Get(karpenter.ConditionTypeDrifted)
		return got
	}
	later := now.Add(time.Minute)
	for _, step := range []struct {
		reason string
		at     time.Time
		since  time.Time
	}{{"", now, time.Time{}}, {"AMIDrift", now, now}, {"SubnetDrift", later, now}, {"", later, time.Time{}}, {"AMIDrift", later, later}} {
		if got := drift(step.reason, step.at); got.Reason != step.reason || got.Message != step.reason || !got.LastTransitionTime.Time.Equal(step.since) {
			t.Errorf("for drift reason %q got %+v, want transition time %s", step.reason, got, step.since)
		}
	}
}
