package upstream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	core "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// upstreamProvider returns Karpenter's AWS provider with options of node repair.
func upstreamProvider(options ...cloudprovider.Option) *cloudprovider.CloudProvider {
	return cloudprovider.New(nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, options...)
}

// Joist and Karpenter have the same repair policies, with and without reboots, and for the legacy node
// repair.
func TestSameRepairPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		ours   []repair.Policy
		theirs *cloudprovider.CloudProvider
	}{
		"default": {repair.Provider(false), upstreamProvider()},
		"reboot":  {repair.Provider(true), upstreamProvider(cloudprovider.WithRebootForRepair(true))},
		"legacy":  {repair.LegacyProvider(), upstreamProvider(cloudprovider.WithLegacyRepairPolicies(true))},
	} {
		var theirs []repair.Policy
		for _, p := range c.theirs.RepairPolicies() {
			theirs = append(theirs, repair.Policy{
				Condition: p.ConditionType, Status: p.ConditionStatus, Reason: p.ReasonRegex, Toleration: p.TolerationDuration,
				GracePeriod: p.TerminationGracePeriod, Priority: p.Priority, Action: repair.RepairAction(p.Action),
			})
		}
		if diff := cmp.Diff(theirs, c.ours); diff != "" {
			t.Errorf("%s (-upstream +ours):\n%s", name, diff)
		}
	}
}

// policies is a cloud provider that has only repair policies.
type policies struct {
	core.CloudProvider
	list []core.RepairPolicy
}

func (p policies) RepairPolicies() []core.RepairPolicy { return p.list }

func drawPolicy(t *rapid.T, i int) repair.Policy {
	name := fmt.Sprint("policy ", i)
	p := repair.Policy{
		Condition:  rapid.SampledFrom([]corev1.NodeConditionType{"A", "B", "C", ""}).Draw(t, name),
		Status:     rapid.SampledFrom([]corev1.ConditionStatus{"False", "False", "Unknown", "Bad"}).Draw(t, name),
		Reason:     rapid.SampledFrom([]string{"", ".*", "X", "^X[12]$", "1|2", "["}).Draw(t, name),
		Toleration: time.Duration(rapid.IntRange(-1, 60).Draw(t, name)) * time.Minute,
		Priority:   rapid.SampledFrom([]int{0, 0, 1, 7, 100, 101}).Draw(t, name),
		Action:     rapid.SampledFrom([]repair.RepairAction{repair.Replace, repair.Replace, repair.Reboot, "Other"}).Draw(t, name),
	}
	if rapid.Bool().Draw(t, name) {
		p.GracePeriod = new(time.Duration(rapid.IntRange(-1, 30).Draw(t, name)) * time.Minute)
	}
	return p
}

// For any policies, conditions and times, Joist and Karpenter accept the same sets, and decide the same
// repair with the same score.
func TestSameRepairDecisions(t *testing.T) {
	now := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	ctx := options.ToContext(context.Background(), &options.Options{FeatureGates: options.FeatureGates{NodeRepair: true}})
	decided, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		ours := []repair.Policy{{Condition: "A", Status: "False", Toleration: 20 * time.Minute, Action: repair.Replace}}
		for i := range rapid.IntRange(0, 6).Draw(t, "policies") {
			p := drawPolicy(t, i)
			// Most sets are valid, so that their decisions are compared.
			if rapid.IntRange(0, 20).Draw(t, "invalid") > 0 {
				if p.Reason == "" || p.Reason == "[" {
					p.Reason = "2"
				}
				if p.Condition == "" || p.Status == "Bad" || p.Action == "Other" || p.Priority > 100 || p.Toleration < 0 || p.GracePeriod != nil && *p.GracePeriod < 0 {
					continue
				}
			}
			ours = append(ours, p)
		}
		var theirs policies
		for _, p := range ours {
			theirs.list = append(theirs.list, core.RepairPolicy{
				ConditionType: p.Condition, ConditionStatus: p.Status, ReasonRegex: p.Reason, TolerationDuration: p.Toleration,
				TerminationGracePeriod: p.GracePeriod, Priority: p.Priority, Action: core.RepairAction(p.Action),
			})
		}
		upstream, upstreamErr := health.NewRepairPolicyMatcher(ctx, theirs)
		matcher, err := repair.NewMatcher(repair.PolicySet{Policies: ours})
		if (err == nil) != (upstreamErr == nil) {
			t.Fatalf("upstream: %v\nours: %v", upstreamErr, err)
		}
		if err != nil {
			refused++
			return
		}
		ago := func(label string) metav1.Time {
			return metav1.NewTime(now.Add(-time.Duration(rapid.IntRange(0, 120).Draw(t, label)) * time.Minute))
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago("created")}}
		for range rapid.IntRange(0, 4).Draw(t, "conditions") {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
				Type:   rapid.SampledFrom([]corev1.NodeConditionType{"A", "B", "C", "D"}).Draw(t, "type"),
				Status: rapid.SampledFrom([]corev1.ConditionStatus{"False", "False", "Unknown", "True"}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{"", "X1", "X2", "X3", "Y"}).Draw(t, "reason"), LastTransitionTime: ago("transition"),
			})
		}
		notBefore := ago("reboot").Time
		want := health.Resolve(upstream.Match(node), now, notBefore)
		got := matcher.Decide(matcher.FindConditions(node), now, notBefore)
		if got.Action != "" {
			decided++
		}
		if diff := cmp.Diff([]any{string(want.Action), want.Condition, want.ConditionStatus, want.Reason, want.SelectedEligibleAt, want.TerminationGracePeriod, want.ScoreAt(now)},
			[]any{string(got.Action), got.Condition.Type, got.Condition.Status, got.Condition.Reason, got.EligibleAt, got.GracePeriod, got.Score}); diff != "" {
			t.Fatalf("decision (-upstream +ours):\n%s", diff)
		}
		for _, c := range node.Status.Conditions {
			alone := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{c}}}
			if upstream.Matches(c) != (len(matcher.FindConditions(alone)) == 1) {
				t.Fatalf("%s=%s counts as unhealthy only for one of both", c.Type, c.Status)
			}
		}
	})
	if decided == 0 || refused == 0 {
		t.Errorf("%d repairs were decided and %d sets refused", decided, refused)
	}
}
