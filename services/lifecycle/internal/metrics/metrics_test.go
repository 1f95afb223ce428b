package metrics_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/metrics"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// claim returns a claim of pool default in zone a, created at noon.
func claim(edits ...func(*karpenter.NodeClaim)) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "u", CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{},
		Labels: map[string]string{karpenter.NodePoolLabelKey: "default", corev1.LabelTopologyZone: "a", karpenter.CapacityTypeLabelKey: "spot"},
	}}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func is(condition string, after time.Duration) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) {
		at := noon.Add(after)
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition}, at)
	}
}

func going(after time.Duration) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) {
		at := metav1.NewTime(noon.Add(after))
		c.DeletionTimestamp = &at
	}
}

func until(after time.Duration) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) {
		c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] = noon.Add(after).Format(time.RFC3339)
	}
}

func within(period time.Duration) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) { c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: period} }
}

// repairs marks the claim as repaired because of a condition.
func repairs(condition corev1.NodeConditionType, limit *time.Duration) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) {
		p, err := json.Marshal(planning.Proposal{ID: "p", Reason: string(karpenter.DisruptionReasonUnhealthy), ConfirmedAt: noon, Condition: condition, GracePeriod: limit})
		if err != nil {
			panic(err)
		}
		c.Annotations[planning.ProposalAnnotation] = string(p)
	}
}

func node(goes ...time.Duration) *corev1.Node {
	n := &corev1.Node{}
	for _, after := range goes {
		at := metav1.NewTime(noon.Add(after))
		n.DeletionTimestamp = &at
	}
	return n
}

// A repair counts with its condition, and with the mode of the limit that applies to its drain. The
// other metrics have the mode of the NodeClaim.
func TestCountRepairs(t *testing.T) {
	for name, tt := range map[string]struct {
		condition corev1.NodeConditionType
		limit     *time.Duration
		edits     []func(*karpenter.NodeClaim)
		want      string
		ofClaim   string
	}{
		"limit of the policy":                      {"NetworkingReady", new(10 * time.Minute), nil, "networking_ready eventual", "graceful"},
		"no drain":                                 {"AcceleratedHardwareReady", new(time.Duration(0)), []func(*karpenter.NodeClaim){within(time.Hour)}, "accelerated_hardware_ready forceful", "eventual"},
		"no limit":                                 {"Ready", nil, nil, "ready graceful", "graceful"},
		"limit of the NodeClaim":                   {"Ready", nil, []func(*karpenter.NodeClaim){within(time.Hour)}, "ready eventual", "eventual"},
		"limit of the NodeClaim without a drain":   {"Ready", nil, []func(*karpenter.NodeClaim){within(0)}, "ready forceful", "forceful"},
		"adjacent capitals, as in Karpenter":       {"GPUHealthOKv2Ready", nil, nil, "gpu_health_o_kv2_ready graceful", "graceful"},
		"proposal that an older version confirmed": {"", nil, nil, "", "graceful"},
	} {
		before, now := metrics.ClaimAndNode{Claim: claim()}, metrics.ClaimAndNode{Claim: claim(append(tt.edits, repairs(tt.condition, tt.limit), going(time.Hour))...)}
		got := map[string][]string{}
		for _, c := range (metrics.Snapshots{
			Before: map[types.UID]metrics.ClaimAndNode{"u": before}, Now: map[types.UID]metrics.ClaimAndNode{"u": now},
			Why:  func(types.UID) (string, bool) { return "Unhealthy", true },
			Pool: func(string) *karpenter.NodePool { return nil }, Moving: func(string) int { return 0 },
		}).CountChanges() {
			got[c.Metric.Name] = c.Labels
		}
		want := map[string][]string{
			"karpenter_nodeclaims_disrupted_total": {"unhealthy", "default", "spot", "", tt.ofClaim}, "karpenter_pods_disruption_initiated_total": {"unhealthy", "default", "spot", "", tt.ofClaim},
		}
		if condition, mode, _ := strings.Cut(tt.want, " "); condition != "" {
			want["karpenter_nodeclaims_unhealthy_disrupted_total"] = []string{condition, "default", "spot", "", mode}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// rebooting returns a claim whose reboot was requested after a minute and issued a minute later.
func rebooting(reason string, edits ...func(*karpenter.NodeClaim)) *karpenter.NodeClaim {
	return claim(append([]func(*karpenter.NodeClaim){is(karpenter.ConditionTypeRegistered, 0), func(c *karpenter.NodeClaim) {
		for _, condition := range []metav1.Condition{
			{Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionTrue, Reason: reason},
			{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: "Rebooting"},
		} {
			c.Status.Conditions = c.Status.Conditions.With(condition, c.CreationTimestamp.Add(time.Minute))
		}
	}}, edits...)...)
}

func TestCountChanges(t *testing.T) {
	const registered, initialized, drained = karpenter.ConditionTypeRegistered, karpenter.ConditionTypeInitialized, karpenter.ConditionTypeDrained
	young := metrics.ClaimAndNode{Claim: claim()}
	ready := metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0)), Node: node()}
	pool := &karpenter.NodePool{}
	pool.Spec.Disruption.ConsolidationPolicy = karpenter.ConsolidationPolicyWhenEmpty
	leaves := claim(is(registered, 0), is(initialized, 0), going(time.Hour), until(62*time.Minute))
	for _, test := range []struct {
		name        string
		before, now *metrics.ClaimAndNode
		why         string
		want        []string
	}{
		{"nothing", &ready, &ready, "", nil},
		{"new claim", nil, &young, "", []string{"karpenter_nodeclaims_created_total [provisioned default false] 1"}},
		{"new claim that relaxed minValues", nil, &metrics.ClaimAndNode{Claim: claim(func(c *karpenter.NodeClaim) {
			c.Annotations[karpenter.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
		})}, "", []string{"karpenter_nodeclaims_created_total [provisioned default true] 1"}},
		{"new claim that is initialized already", nil, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, time.Minute))}, "",
			[]string{"joist_nodeclaim_initialized_seconds [default] 60", "karpenter_nodeclaims_created_total [provisioned default false] 1", "karpenter_nodes_created_total [default a] 1"}},
		{"claim registers", &young, &metrics.ClaimAndNode{Claim: claim(is(registered, time.Second)), Node: node()}, "", []string{"karpenter_nodes_created_total [default a] 1"}},
		{"unchanged claim", &ready, &metrics.ClaimAndNode{Claim: ready.Claim.DeepCopy(), Node: node()}, "", nil},
		{"claim deleted by Joist", &ready, &metrics.ClaimAndNode{Claim: leaves, Node: node()}, "Underutilized", []string{
			"karpenter_nodeclaims_disrupted_total [underutilized default spot when_empty graceful] 1", "karpenter_pods_disruption_initiated_total [underutilized default spot when_empty graceful] 3"}},
		{"drifted claim with a grace period", &ready, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0), going(time.Hour), within(time.Minute))}, "Drifted", []string{
			"karpenter_nodeclaims_disrupted_total [drifted default spot  eventual] 1", "karpenter_nodes_terminated_total [default a] 1", "karpenter_pods_disruption_initiated_total [drifted default spot  eventual] 0"}},
		{"interrupted claim without a grace period", &ready, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0), going(time.Hour), within(0)), Node: node()}, "spot-interruption",
			[]string{"karpenter_nodeclaims_disrupted_total [spot_interrupted default spot  forceful] 1"}},
		{"unhealthy claim", &ready, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0), going(time.Hour), func(c *karpenter.NodeClaim) { c.Status.ImageID = "ami-1" }), Node: node()},
			metrics.Unhealthy + "its condition AcceleratedHardwareReady has been False for longer than 10m0s", []string{"karpenter_nodeclaims_disrupted_total [unhealthy default spot  graceful] 1",
				"karpenter_nodeclaims_unhealthy_disrupted_total [accelerated_hardware_ready default spot ami-1 graceful] 1", "karpenter_pods_disruption_initiated_total [unhealthy default spot  graceful] 3"}},
		{"reboot after which the node did not recover", &metrics.ClaimAndNode{Claim: rebooting(karpenter.RebootIssuedReason), Node: node()},
			&metrics.ClaimAndNode{Claim: rebooting(karpenter.RebootIssuedReason, going(time.Hour)), Node: node()}, "reboot failed: node did not recover within the observation window", []string{
				"karpenter_nodes_reboot_duration_seconds [recovery_timeout] 3540", "karpenter_nodes_reboots_total [recovery_timeout] 1"}},
		{"claim whose launch failed", &young, &metrics.ClaimAndNode{Claim: claim(going(0))}, "launch refused", []string{"karpenter_nodeclaims_disrupted_total [insufficient_capacity default spot  graceful] 1"}},
		{"claim deleted by another client", &ready, &metrics.ClaimAndNode{Claim: leaves, Node: node()}, "", nil},
		{"node removed", &metrics.ClaimAndNode{Claim: leaves, Node: node(time.Hour)}, &metrics.ClaimAndNode{Claim: leaves}, "Empty",
			[]string{"karpenter_nodes_terminated_total [default a] 1", "karpenter_nodes_termination_duration_seconds [default] 3600"}},
		{"claim removed", &metrics.ClaimAndNode{Claim: leaves}, nil, "Empty", []string{"karpenter_nodeclaims_terminated_total [default spot a] 1", "karpenter_nodeclaims_termination_duration_seconds [default] 3600"}},
		{"claim and node removed together", &ready, nil, "expired", []string{
			"karpenter_nodeclaims_disrupted_total [expired default spot  graceful] 1", "karpenter_nodeclaims_terminated_total [default spot a] 1", "karpenter_nodes_terminated_total [default a] 1",
			"karpenter_pods_disruption_initiated_total [expired default spot  graceful] 3"}},
		{"drained before the deadline", &metrics.ClaimAndNode{Claim: leaves, Node: node()}, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0), going(time.Hour), until(62*time.Minute),
			is(drained, 61*time.Minute)), Node: node()}, "spot-interruption", nil},
		{"interruption deadline passed", &metrics.ClaimAndNode{Claim: leaves, Node: node()}, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0), going(time.Hour),
			until(62*time.Minute), is(drained, 62*time.Minute)), Node: node()}, "spot-interruption", []string{"joist_drains_overdue_total [default] 1"}},
		{"termination grace period passed", &metrics.ClaimAndNode{Claim: leaves, Node: node()}, &metrics.ClaimAndNode{Claim: claim(is(registered, 0), is(initialized, 0), going(time.Hour),
			until(62*time.Minute), is(drained, 62*time.Minute)), Node: node()}, "Drifted", nil},
		{"instance terminated with pods", &metrics.ClaimAndNode{Claim: leaves, Node: node(time.Hour)}, nil, "spot-interruption", []string{
			"joist_drains_overdue_total [default] 1", "karpenter_nodeclaims_terminated_total [default spot a] 1", "karpenter_nodeclaims_termination_duration_seconds [default] 3600",
			"karpenter_nodes_terminated_total [default a] 1", "karpenter_nodes_termination_duration_seconds [default] 3600"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			looks := metrics.Snapshots{Before: map[types.UID]metrics.ClaimAndNode{}, Now: map[types.UID]metrics.ClaimAndNode{}, At: noon.Add(2 * time.Hour),
				Why:  func(types.UID) (string, bool) { return test.why, test.why != "" },
				Pool: func(string) *karpenter.NodePool { return pool }, Moving: func(string) int { return 3 }}
			if test.before != nil {
				looks.Before["u"] = *test.before
			}
			if test.now != nil {
				looks.Now["u"] = *test.now
			}
			var got []string
			for _, c := range looks.CountChanges() {
				got = append(got, fmt.Sprintf("%s [%s] %g", c.Metric.Name, strings.Join(c.Labels, " "), c.Value))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every reason has one of few labels.
func TestReasonLabels(t *testing.T) {
	for why, want := range map[string]string{
		"Empty": "empty", "spot-interruption": "spot_interrupted", metrics.Unhealthy + "Ready is False": "unhealthy", "expired": "expired",
		"its launch took too long": "launch_timeout", "its registration took too long": "registration_timeout", "": metrics.OtherReason,
		"NodePool default asks for no more than 3 nodes": metrics.OtherReason, `EC2NodeClass "x" is not ready: no subnets`: "nodeclass_not_ready",
	} {
		if got := metrics.ReasonLabel(why); got != want {
			t.Errorf("the label of %q is %s, want %s", why, got, want)
		}
	}
}
