package nodehealth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption/nodehealth"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// rules returns Karpenter 1.14's repair policies.
func rules(testing.TB) []repair.Policy { return repair.LegacyProvider() }

// condition returns a node condition such as "Ready=False", since a time before noon.
func condition(text string, ago time.Duration) corev1.NodeCondition {
	kind, status, _ := strings.Cut(text, "=")
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), LastTransitionTime: metav1.NewTime(noon.Add(-ago)),
	}
}

func node(name, pool, zone string, conditions ...corev1.NodeCondition) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if pool != "" {
		n.Labels[karpenter.NodePoolLabelKey] = pool
	}
	if zone != "" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	n.Status.Conditions = conditions
	return n
}

func TestFindUnhealthy(t *testing.T) {
	for _, test := range []struct {
		name       string
		conditions []corev1.NodeCondition
		want       string
	}{
		{"well", []corev1.NodeCondition{condition("Ready=True", time.Hour), condition("StorageReady=True", time.Hour)}, ""},
		{"no conditions", nil, ""},
		{"not ready", []corev1.NodeCondition{condition("Ready=False", time.Minute)}, "Ready=False:30m0s in 29m0s"},
		{"silent", []corev1.NodeCondition{condition("Ready=Unknown", time.Hour)}, "Ready=Unknown:30m0s in -30m0s"},
		{"disk pressure is not unhealthy", []corev1.NodeCondition{condition("DiskPressure=True", time.Hour)}, ""},
		{"unknown state of accelerated hardware", []corev1.NodeCondition{condition("AcceleratedHardwareReady=Unknown", time.Hour)}, ""},
		{"the condition that became false later has the shorter toleration", []corev1.NodeCondition{condition("Ready=False", 5*time.Minute), condition("AcceleratedHardwareReady=False", time.Minute)},
			"AcceleratedHardwareReady=False:10m0s in 9m0s"},
		{"the condition that became false earlier expires first", []corev1.NodeCondition{condition("AcceleratedHardwareReady=False", time.Minute), condition("KernelReady=False", 25*time.Minute)},
			"KernelReady=False:30m0s in 5m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rule, since, sick := nodehealth.FindUnhealthy(node("n", "", "", test.conditions...), rules(t))
			got := ""
			if sick {
				got = fmt.Sprintf("%s=%s:%s in %s", rule.Condition, rule.Status, rule.Toleration, since.Add(rule.Toleration).Sub(noon))
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// unhealthyCluster is a cluster of nodes with claims. Each call of add adds nodes of a pool and
// zone, some of them unhealthy.
type unhealthyCluster struct {
	patients []nodehealth.MonitoredNode
	nodes    []*corev1.Node
}

func (h *unhealthyCluster) add(pool, zone string, all, sick int, since time.Duration) *unhealthyCluster {
	for i := range all {
		state := condition("Ready=True", time.Hour)
		if i < sick {
			state = condition("Ready=Unknown", since)
		}
		n := node(fmt.Sprintf("%s-%s-%d", pool, zone, len(h.nodes)), pool, zone, state)
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{}}}
		if pool != "" {
			c.Labels[karpenter.NodePoolLabelKey] = pool
		}
		h.nodes = append(h.nodes, n)
		h.patients = append(h.patients, nodehealth.MonitoredNode{Claim: c, Node: n})
	}
	return h
}

func (h *unhealthyCluster) next(policy repair.PolicySet) (repaired, blocked int, why string) {
	cases := nodehealth.PlanRepairs(nodehealth.View{Policy: policy, Monitored: h.patients, Nodes: h.nodes, Now: noon, Paused: func(*corev1.Node) bool { return false }})
	for _, c := range cases {
		if c.Blocked != "" {
			blocked, why = blocked+1, c.Blocked
		} else {
			repaired++
		}
	}
	return repaired, blocked, why
}

func TestRepairBreaker(t *testing.T) {
	const old, fresh = time.Hour, time.Minute
	for _, test := range []struct {
		name              string
		hospital          *unhealthyCluster
		repaired, blocked int
		why               string
	}{
		{"one of one; 20% is rounded up", new(unhealthyCluster).add("a", "", 1, 1, old), 1, 0, ""},
		{"one of three", new(unhealthyCluster).add("a", "", 3, 1, old), 1, 0, ""},
		{"two of three", new(unhealthyCluster).add("a", "", 3, 2, old), 0, 2, "more than 20% nodes are unhealthy in the nodepool: 2 of 3"},
		{"two of ten", new(unhealthyCluster).add("a", "", 10, 2, old), 2, 0, ""},
		{"three of eleven", new(unhealthyCluster).add("a", "", 11, 3, old), 3, 0, ""},
		{"three of ten", new(unhealthyCluster).add("a", "", 10, 3, old), 0, 3, "more than 20% nodes are unhealthy in the nodepool: 3 of 10"},
		{"nodes within their toleration count", new(unhealthyCluster).add("a", "", 8, 2, fresh).add("a", "", 2, 1, old), 0, 1, "more than 20% nodes are unhealthy in the nodepool: 3 of 10"},
		{"before the toleration ends", new(unhealthyCluster).add("a", "", 10, 1, 30*time.Minute-time.Second), 0, 0, ""},
		{"when the toleration ends", new(unhealthyCluster).add("a", "", 10, 1, 30*time.Minute), 1, 0, ""},
		{"each pool has its own breaker", new(unhealthyCluster).add("a", "", 10, 9, old).add("b", "", 10, 1, old), 1, 9, "more than 20% nodes are unhealthy in the nodepool: 9 of 10"},
		{"a node without a pool is counted in the cluster", new(unhealthyCluster).add("", "", 1, 1, old).add("b", "", 3, 0, old), 1, 0, ""},
		{"a node without a pool, in an unhealthy cluster", new(unhealthyCluster).add("", "", 1, 1, old).add("b", "", 3, 1, fresh), 0, 1, "more than 20% nodes are unhealthy in the cluster: 2 of 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			repaired, blocked, why := test.hospital.next(repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromString("20%")})
			if repaired != test.repaired || blocked != test.blocked || why != test.why {
				t.Errorf("%d repaired, %d blocked (%s)", repaired, blocked, why)
			}
		})
	}
}

// Rules and thresholds can be configured, and a breaker covers a failing zone.
func TestRepairPolicySettings(t *testing.T) {
	half, none := intstr.FromString("50%"), intstr.FromInt32(0)
	outage := func() *unhealthyCluster {
		return new(unhealthyCluster).add("a", "z1", 2, 2, time.Hour).add("a", "z2", 20, 0, 0).add("b", "z1", 2, 1, time.Hour).add("b", "z2", 20, 0, 0)
	}
	hours, err := repair.Parse("Ready=Unknown:2h")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name              string
		policy            repair.PolicySet
		repaired, blocked int
	}{
		{"no rules", repair.PolicySet{Unhealthy: half}, 0, 0},
		{"rule with a longer toleration", repair.PolicySet{Policies: hours, Unhealthy: half}, 0, 0},
		{"smaller threshold", repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromString("5%")}, 3, 0},
		{"a number", repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromInt32(1)}, 1, 2},
		{"threshold 0%", repair.PolicySet{Policies: rules(t), Unhealthy: none}, 0, 3},
		{"failing zone, no threshold per zone", repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromString("20%")}, 3, 0},
		{"failing zone, threshold per zone", repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromString("20%"), UnhealthyInZone: &half}, 0, 3},
		{"invalid threshold", repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromString("many")}, 0, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			repaired, blocked, why := outage().next(test.policy)
			if diff := cmp.Diff([]int{test.repaired, test.blocked}, []int{repaired, blocked}); diff != "" {
				t.Errorf("%s%s", diff, why)
			}
		})
	}
}

// A node whose repair the breaker blocked is not considered again for a while.
func TestBlockedRepairIsPaused(t *testing.T) {
	h := new(unhealthyCluster).add("a", "", 10, 2, time.Hour)
	first := h.nodes[0]
	cases := nodehealth.PlanRepairs(nodehealth.View{
		Policy: repair.PolicySet{Policies: rules(t), Unhealthy: intstr.FromString("20%")}, Monitored: h.patients, Nodes: h.nodes, Now: noon,
		Paused: func(n *corev1.Node) bool { return n == first },
	})
	if len(cases) != 1 || cases[0].Node == first || !strings.Contains(cases[0].Why, "Ready has been Unknown for longer than 30m0s") {
		t.Errorf("%+v", cases)
	}
}
