package registrationhealth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/registrationhealth"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const kind = karpenter.ConditionTypeNodeRegistrationHealthy

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func pool() *karpenter.NodePool {
	return &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool", Generation: 3}}
}

func class() *karpenter.EC2NodeClass {
	return &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 7}}
}

// launch returns a claim of the pool whose launch ended a number of minutes after noon: T
// registered, L not launched, R not registered, - in progress.
func launch(end byte, minute int) *karpenter.NodeClaim {
	at := noon.Add(time.Duration(minute) * time.Minute)
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("c%d", minute), UID: types.UID(fmt.Sprintf("u%d", minute)), CreationTimestamp: metav1.NewTime(at),
		Annotations: map[string]string{}, OwnerReferences: []metav1.OwnerReference{{Kind: "NodePool", Name: "default", UID: "pool"}},
	}}
	launched := metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue, Reason: "Launched"}
	switch end {
	case 'T':
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeRegistered, Status: metav1.ConditionTrue}, at)
	case 'L':
		c.CreationTimestamp = metav1.NewTime(at.Add(-nodeclaim.LaunchTimeout))
		c.Annotations[nodeclaim.FailedAnnotation] = nodeclaim.FailedLaunch
		launched.Status, launched.Reason, launched.Message = metav1.ConditionUnknown, "LaunchFailed", fmt.Sprintf("no quota in minute %d", minute)
	case 'R':
		c.CreationTimestamp = metav1.NewTime(at.Add(-nodeclaim.RegistrationTimeout))
		c.Annotations[nodeclaim.FailedAnnotation] = nodeclaim.FailedRegistration
	}
	c.Status.Conditions = c.Status.Conditions.With(launched, at)
	return c
}

// formatCondition formats a condition.
func formatCondition(c metav1.Condition) string {
	return strings.TrimRight(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

// The condition after launches that ended one by one. The divisor is always four, so two failures
// are too many.
func TestConditionAfterLaunches(t *testing.T) {
	const (
		unknown    = "Unknown AwaitingReconciliation: object is awaiting reconciliation"
		healthy    = "True NodeRegistrationHealthy"
		unlaunched = "False LaunchFailed: no quota in minute "
		unjoined   = "False RegistrationFailed: Failed to register node"
	)
	for launches, want := range map[string]string{
		"":                 unknown,
		"-":                unknown,
		"T":                healthy,
		"R":                unknown,
		"TR":               healthy,
		"RT":               healthy,
		"RR":               unjoined,
		"LL":               unlaunched + "2",
		"LLRL":             unlaunched + "2",
		"RL":               unlaunched + "2",
		"RRT":              unjoined,
		"RRTT":             unjoined,
		"RRTTT":            healthy,
		"TTTR":             healthy,
		"TTTRT":            healthy,
		"TTTRTR":           unjoined,
		"RRTTTTTTTTTTTTTT": healthy,
		"TTTTTTTTTTTTTTRR": unjoined,
	} {
		t.Run(launches, func(t *testing.T) {
			p := pool()
			ring := registrationhealth.ReadHistory(p, class(), noon)
			var claims []*karpenter.NodeClaim
			condition := ring.Condition(metav1.Condition{})
			for i := range launches {
				claims = append(claims, launch(launches[i], i+1))
				ring = ring.WithOutcomes(p, claims)
				p.Annotations = map[string]string{registrationhealth.HistoryAnnotation: ring.Encode()}
				condition = ring.Condition(condition)
				if again := registrationhealth.ReadHistory(p, class(), noon.Add(time.Hour)).WithOutcomes(p, claims); again.Encode() != ring.Encode() {
					t.Fatalf("a second reconcile gives %s, want %s", again.Encode(), ring.Encode())
				}
			}
			if got := formatCondition(condition); got != want || condition.ObservedGeneration != 3 || condition.Type != kind {
				t.Errorf("got %q of generation %d, want %q", got, condition.ObservedGeneration, want)
			}
			if len(ring.Records) > registrationhealth.HistorySize {
				t.Errorf("the history has %d launches", len(ring.Records))
			}
		})
	}
}

// Another generation of the pool or its class resets the history, and earlier results do not
// count, although their claims exist.
func TestChangeResetsHistory(t *testing.T) {
	past := []*karpenter.NodeClaim{launch('R', 1), launch('R', 2)}
	for name, change := range map[string]func(*karpenter.NodePool, *karpenter.EC2NodeClass){
		"pool":  func(p *karpenter.NodePool, _ *karpenter.EC2NodeClass) { p.Generation++ },
		"class": func(_ *karpenter.NodePool, c *karpenter.EC2NodeClass) { c.Generation++ },
		"unreadable": func(p *karpenter.NodePool, _ *karpenter.EC2NodeClass) {
			p.Annotations[registrationhealth.HistoryAnnotation] = "{"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := pool(), class()
			ring := registrationhealth.ReadHistory(p, c, noon).WithOutcomes(p, past)
			p.Annotations = map[string]string{registrationhealth.HistoryAnnotation: ring.Encode()}
			before := ring.Condition(metav1.Condition{})
			if before.Status != metav1.ConditionFalse {
				t.Fatal("the pool is healthy after two failures")
			}
			change(p, c)
			ring = registrationhealth.ReadHistory(p, c, noon.Add(time.Hour)).WithOutcomes(p, past)
			if got := ring.Condition(before); got.Status != metav1.ConditionUnknown || got.ObservedGeneration != p.Generation {
				t.Errorf("after the change got %s of generation %d", formatCondition(got), got.ObservedGeneration)
			}
			if ring = ring.WithOutcomes(p, append(past, launch('T', 61))); ring.Condition(before).Status != metav1.ConditionTrue {
				t.Errorf("a launch after the change does not count: %s", ring.Encode())
			}
		})
	}
}

// A pool that Karpenter managed keeps Karpenter's condition, unless it is of another generation.
func TestKarpenterConditionIsKept(t *testing.T) {
	for _, test := range []struct {
		name        string
		status      metav1.ConditionStatus
		pool, class int64
		then        string
		want        string
	}{
		{"healthy", metav1.ConditionTrue, 3, 7, "", "True NodeRegistrationHealthy"},
		{"healthy, and one failure", metav1.ConditionTrue, 3, 7, "R", "True NodeRegistrationHealthy"},
		{"healthy, and two failures", metav1.ConditionTrue, 3, 7, "RR", "False RegistrationFailed: Failed to register node"},
		{"unhealthy", metav1.ConditionFalse, 3, 7, "", "False Why: because"},
		{"unhealthy, and two successes", metav1.ConditionFalse, 3, 7, "TT", "False Why: because"},
		{"unhealthy, and three successes", metav1.ConditionFalse, 3, 7, "TTT", "True NodeRegistrationHealthy"},
		{"unknown", metav1.ConditionUnknown, 3, 7, "", "Unknown AwaitingReconciliation: object is awaiting reconciliation"},
		{"another generation of the pool", metav1.ConditionFalse, 2, 7, "", "Unknown AwaitingReconciliation: object is awaiting reconciliation"},
		{"another generation of the class", metav1.ConditionFalse, 3, 6, "", "Unknown AwaitingReconciliation: object is awaiting reconciliation"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pool()
			condition := metav1.Condition{Type: kind, Status: test.status, Reason: "Why", Message: "because", ObservedGeneration: test.pool}
			p.Status.Conditions = p.Status.Conditions.With(condition, noon)
			p.Status.NodeClassObservedGeneration = test.class
			ring := registrationhealth.ReadHistory(p, class(), noon)
			for i := range test.then {
				ring = ring.WithOutcomes(p, []*karpenter.NodeClaim{launch(test.then[i], i+1)})
				condition = ring.Condition(condition)
			}
			if got := formatCondition(ring.Condition(condition)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Claims without the pool's owner reference do not count.
func TestClaimsOfOtherOwnersDoNotCount(t *testing.T) {
	for name, owner := range map[string][]metav1.OwnerReference{
		"no owner":                       nil,
		"an earlier pool":                {{Kind: "NodePool", Name: "default", UID: "earlier"}},
		"another kind with the same UID": {{Kind: "Deployment", Name: "default", UID: "pool"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := launch('T', 1)
			c.OwnerReferences = owner
			if ring := registrationhealth.ReadHistory(pool(), class(), noon).WithOutcomes(pool(), []*karpenter.NodeClaim{c}); len(ring.Records) != 0 {
				t.Errorf("the claim counts: %s", ring.Encode())
			}
		})
	}
}

// Claims that are read one by one or together, late or twice, give the same history if it contains
// a failure. A history of successes may keep older ones.
func TestHistoryDoesNotDependOnReadOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.StringMatching(`[TLR]{0,12}`).Draw(t, "ends")
		var claims []*karpenter.NodeClaim
		for i := range ends {
			claims = append(claims, launch(ends[i], i+1))
		}
		p := pool()
		at := registrationhealth.ReadHistory(p, class(), noon)
		once := at.WithOutcomes(p, claims)
		several := at
		for len(claims) > 0 && rapid.Bool().Draw(t, "more") {
			n := rapid.IntRange(0, len(claims)).Draw(t, "seen")
			several = several.WithOutcomes(p, claims[:n])
		}
		several = several.WithOutcomes(p, claims)
		if diff := cmp.Diff(once.Condition(metav1.Condition{}).Status, several.Condition(metav1.Condition{}).Status); diff != "" {
			t.Fatalf("together %s, one by one %s", once.Encode(), several.Encode())
		}
		if strings.ContainsAny(ends[max(0, len(ends)-registrationhealth.HistorySize):], "LR") && once.Encode() != several.Encode() {
			t.Fatalf("together %s, one by one %s", once.Encode(), several.Encode())
		}
	})
}

// A pool that grows fast is not written in each reconcile.
func TestMoreSuccessesAreNotWritten(t *testing.T) {
	p := pool()
	var claims []*karpenter.NodeClaim
	ring, written := registrationhealth.ReadHistory(p, class(), noon), 0
	for minute := range 100 {
		claims = append(claims, launch('T', minute+1))
		next := ring.WithOutcomes(p, claims)
		if next.Encode() != ring.Encode() {
			written++
		}
		ring = next
	}
	if written != registrationhealth.HistorySize {
		t.Errorf("the history was written %d times for 100 nodes", written)
	}
	if failed := ring.WithOutcomes(p, append(claims, launch('R', 101))); len(failed.Records) != registrationhealth.HistorySize || failed.Records[registrationhealth.HistorySize-1].OK {
		t.Errorf("the history misses a later failure: %s", failed.Encode())
	}
}
