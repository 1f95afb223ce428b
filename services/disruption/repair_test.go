package disruption

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// sick gives a node an unhealthy condition since a time before the snapshot.
func sick(condition corev1.NodeConditionType, ago time.Duration) func(*node) {
	return func(n *node) {
		n.Ready = condition != corev1.NodeReady
		if n.Unhealthy == nil {
			n.Unhealthy = &planning.Unhealthy{}
		}
		n.Unhealthy.Conditions = append(n.Unhealthy.Conditions, repair.UnhealthyCondition{Type: condition, Status: corev1.ConditionFalse, Since: fixture.Taken.Add(-ago)})
	}
}

// unready makes a node unhealthy for long enough.
func unready(n *node) { sick(corev1.NodeReady, 31*time.Minute)(n) }

func doNotRepair(n *node)    { n.Unhealthy.DoNotRepair = true }
func notInitialized(n *node) { n.Initialized, n.InitializedAt = false, time.Time{} }
func rebooting(n *node)      { n.Rebooting = true }
func nominated(n *node)      { n.NominatedUntil = fixture.Taken.Add(time.Minute) }

func rebooted(ago time.Duration) func(*node) {
	return func(n *node) { n.Unhealthy.LastReboot = fixture.Taken.Add(-ago) }
}

// withHealthy adds healthy nodes, so that the breaker does not stop a repair.
func withHealthy(count int, nodes ...node) []node {
	for i := range count {
		nodes = append(nodes, fixture.Node(fmt.Sprintf("healthy-%d", i), "t4g.large", with(3), protected))
	}
	return nodes
}

// repaired returns a snapshot with node repair and Karpenter's policies.
func repaired(pool karpenter.NodePool, nodes ...node) planning.Snapshot {
	s := fixture.Snapshot(pool, nodes...)
	s.Settings.Gates.StaticCapacity = true
	s.Repair = &repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("20%")}
	return s
}

// The cases are those of Karpenter's pkg/controllers/disruption/repair_test.go.
func TestRepair(t *testing.T) {
	n := fixture.Node
	unlimited := fixture.Pool(never)
	only := func(nodes string, reasons ...karpenter.DisruptionReason) karpenter.NodePool {
		return fixture.Pool(never, func(p *karpenter.NodePool) {
			p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, karpenter.Budget{Nodes: nodes, Reasons: reasons})
		})
	}
	limited := func(nodes int64) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) {
			p.Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: *resource.NewQuantity(nodes, resource.DecimalSI)}
		}
	}
	apart := func(s *planning.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelTopologyZone: "mars"} }
	unbounded := func(s *planning.Snapshot) {
		for i := range s.Repair.Policies {
			s.Repair.Policies[i].GracePeriod = nil
		}
	}
	terminateFirst := func(s *planning.Snapshot) { s.Repair.TerminateFirst = true }
	reboots := func(s *planning.Snapshot) { s.Repair.Policies = repair.Provider(true) }
	gpuError := func(n *node) {
		sick("AcceleratedHardwareReady", 10*time.Minute)(n)
		n.Unhealthy.Conditions[len(n.Unhealthy.Conditions)-1].Reason = "NvidiaXID48Error"
	}
	rebootedTwice := func(first time.Duration) func(*node) {
		return func(n *node) {
			n.Unhealthy.Reboots = []time.Time{fixture.Taken.Add(-first), fixture.Taken.Add(-time.Hour)}
		}
	}
	nothing := func(*planning.Snapshot) {}
	for _, tt := range []struct {
		name   string
		pool   karpenter.NodePool
		nodes  []node
		change func(*planning.Snapshot)
		want   []string
		kept   string
	}{
		{"a replacement comes first", unlimited, []node{n("a", "t4g.large", with(3), unready)}, nothing, []string{"Repair -a +t4g.medium"}, ""},
		{"an empty node is removed only", unlimited, []node{n("a", "t4g.large", unready)}, nothing, []string{"Repair -a"}, ""},
		{"the gate is off", unlimited, []node{n("a", "t4g.large", unready)}, func(s *planning.Snapshot) { s.Repair = nil }, nil, "a consolidation-disabled"},
		{"a NodePool that waits for the approval of its deletion", fixture.Pool(never, waitingForApproval), []node{n("a", "t4g.large", unready)}, nothing, nil, "a nodepool-deleting"},
		{"within its toleration", unlimited, []node{n("a", "t4g.large", sick(corev1.NodeReady, 30*time.Minute-1))}, nothing, nil, "a consolidation-disabled"},
		{"at the end of its toleration", unlimited, []node{n("a", "t4g.large", sick(corev1.NodeReady, 30*time.Minute))}, nothing, []string{"Repair -a"}, ""},
		{"do-not-repair", unlimited, []node{n("a", "t4g.large", unready, doNotRepair)}, nothing, nil, "a do-not-repair"},
		{"do-not-repair within the toleration", unlimited, []node{n("a", "t4g.large", sick(corev1.NodeReady, time.Minute), doNotRepair)}, nothing, nil, "a consolidation-disabled"},
		{"do-not-repair is reported before an unbounded drain", unlimited, []node{n("a", "t4g.large", with(1), protected, unready, doNotRepair)}, unbounded, nil, "a do-not-repair"},
		{"do-not-disrupt of the node does not block", unlimited, []node{n("a", "t4g.large", unready, func(n *node) { n.DoNotDisrupt = true })}, nothing, []string{"Repair -a"}, ""},
		{"budget of zero", only("0", karpenter.DisruptionReasonUnhealthy), []node{n("a", "t4g.large", unready)}, nothing, nil, "a budget"},
		{"budget of zero for all reasons", only("0"), []node{n("a", "t4g.large", unready)}, nothing, nil, "a budget"},
		{"budget of zero for another reason", only("0", karpenter.DisruptionReasonDrifted), []node{n("a", "t4g.large", unready)}, nothing, []string{"Repair -a"}, ""},
		{"nodes that are not ready use no budget", only("1"), withHealthy(8, n("a", "t4g.large", unready), n("b", "t4g.large", sick(corev1.NodeReady, time.Minute))), nothing, []string{"Repair -a"}, ""},
		{"nodes that are being removed use budget", only("1"), withHealthy(8, n("a", "t4g.large", unready), n("b", "t4g.large", func(n *node) { n.MarkedForDeletion = true })), nothing, nil, "a budget"},
		{"one repair in each evaluation", unlimited, withHealthy(8, n("a", "t4g.large", unready), n("b", "t4g.large", sick(corev1.NodeReady, 40*time.Minute))), nothing, []string{"Repair -b"}, "a lower-priority"},
		{"repair before drift", only("1"), []node{n("a", "t4g.large", unready), n("b", "t4g.large", drift(time.Hour)), n("c", "t4g.large", drift(time.Hour))}, nothing, []string{"Repair -a"}, ""},
		{"more than 20 % of the NodePool, rounded up", unlimited, withHealthy(3, n("a", "t4g.large", unready), n("b", "t4g.large", unready)), nothing, nil, "a repair-breaker"},
		{"20 % of the NodePool", unlimited, withHealthy(4, n("a", "t4g.large", unready), n("b", "t4g.large", unready)), nothing, []string{"Repair -a"}, ""},
		{"nodes within their tolerations count for the breaker", unlimited, withHealthy(3, n("a", "t4g.large", unready), n("b", "t4g.large", sick("KernelReady", 0))), nothing, nil, "a repair-breaker"},
		{"the limit of unhealthy nodes can be set", unlimited, withHealthy(3, n("a", "t4g.large", unready), n("b", "t4g.large", unready)), func(s *planning.Snapshot) { s.Repair.Unhealthy = intstr.FromInt32(2) }, []string{"Repair -a"}, ""},
		{"too many nodes of the zone", unlimited, withHealthy(4, n("a", "t4g.large", unready), n("b", "t4g.large", unready)),
			func(s *planning.Snapshot) { s.Repair.UnhealthyInZone = new(intstr.FromInt32(1)) }, nil, "a repair-breaker"},
		{"a pod that blocks, within the policy's grace period", unlimited, []node{n("a", "t4g.large", with(3), protected, unready)}, nothing, []string{"Repair -a +t4g.medium"}, ""},
		{"a pod that blocks, without a grace period", unlimited, []node{n("a", "t4g.large", with(3), protected, unready)}, unbounded, nil, "a repair-unbounded"},
		{"a pod that blocks, within the NodeClaim's grace period", unlimited, []node{n("a", "t4g.large", with(3), protected, unready, func(n *node) { n.HasTerminationGracePeriod = true })}, unbounded, []string{"Repair -a +t4g.medium"}, ""},
		{"no capacity for its pods", unlimited, []node{n("a", "t4g.large", with(3, apart), unready)}, nothing, nil, "a repair-unplaceable"},
		{"the next node if the first has no capacity", unlimited, withHealthy(8, n("a", "t4g.large", with(3, apart), sick(corev1.NodeReady, time.Hour)), n("b", "t4g.large", unready)), nothing, []string{"Repair -b"}, "a repair-unplaceable"},
		{"a node without a NodePool", unlimited, []node{n("a", "t4g.large", unready, func(n *node) { n.NodePool = ""; delete(n.Labels, karpenter.NodePoolLabelKey) })}, nothing, nil, "a repair-standalone"},
		{"nominated", unlimited, []node{n("a", "t4g.large", unready, nominated)}, nothing, nil, "a nominated"},
		{"rebooting", unlimited, []node{n("a", "t4g.large", unready, rebooting)}, nothing, nil, "a rebooting"},
		{"rebooting and not initialized", unlimited, []node{n("a", "t4g.large", unready, rebooting, notInitialized)}, nothing, nil, "a rebooting"},
		{"drifted and rebooting", unlimited, []node{n("a", "t4g.large", drift(time.Hour), rebooting)}, nothing, nil, "a rebooting"},
		{"rebooting nodes use budget", only("1"), withHealthy(8, n("a", "t4g.large", unready), n("b", "t4g.large", rebooting)), nothing, nil, "a budget"},
		{"within its toleration after a reboot", unlimited, []node{n("a", "t4g.large", unready, rebooted(30*time.Minute-1))}, nothing, nil, "a consolidation-disabled"},
		{"at the end of its toleration after a reboot", unlimited, []node{n("a", "t4g.large", unready, rebooted(30*time.Minute))}, nothing, []string{"Repair -a"}, ""},
		{"an error that a reboot clears", unlimited, []node{n("a", "t4g.large", with(3), gpuError)}, reboots, []string{"Repair -a reboot"}, ""},
		{"an error that a reboot clears, with the gate off", unlimited, []node{n("a", "t4g.large", with(3), gpuError)}, nothing, []string{"Repair -a +t4g.medium"}, ""},
		{"also an error that a reboot does not clear", unlimited, []node{n("a", "t4g.large", with(3), gpuError, unready)}, reboots, []string{"Repair -a +t4g.medium"}, ""},
		{"a reboot although its pods fit nowhere else", unlimited, []node{n("a", "t4g.large", with(3, apart), gpuError)}, reboots, []string{"Repair -a reboot"}, ""},
		{"a reboot and do-not-repair", unlimited, []node{n("a", "t4g.large", gpuError, doNotRepair)}, reboots, nil, "a do-not-repair"},
		{"a reboot without a budget", only("0"), []node{n("a", "t4g.large", gpuError)}, reboots, nil, "a budget"},
		{"a reboot and a pod that blocks, without a grace period", unlimited, []node{n("a", "t4g.large", with(1), protected, gpuError)}, func(s *planning.Snapshot) { reboots(s); unbounded(s) }, nil, "a repair-unbounded"},
		{"too many unhealthy nodes for a reboot", unlimited, withHealthy(3, n("a", "t4g.large", gpuError), n("b", "t4g.large", gpuError)), reboots, nil, "a repair-breaker"},
		{"two reboots within a day", unlimited, []node{n("a", "t4g.large", with(3), gpuError, rebootedTwice(24*time.Hour-1))}, reboots, []string{"Repair -a +t4g.medium"}, ""},
		{"two reboots, one of them a day ago", unlimited, []node{n("a", "t4g.large", with(3), gpuError, rebootedTwice(24*time.Hour))}, reboots, []string{"Repair -a reboot"}, ""},
		{"static pool at its limit, reboot", fixture.Pool(static(1), limited(1)), []node{n("a", "t4g.medium", gpuError)}, reboots, []string{"Repair -a reboot"}, ""},
		{"not initialized", unlimited, []node{n("a", "t4g.large", unready, notInitialized)}, nothing, []string{"Repair -a"}, ""},
		{"not initialized, but nominated", unlimited, []node{n("a", "t4g.large", unready, notInitialized, nominated)}, nothing, []string{"Repair -a"}, ""},
		{"not initialized, without a budget", only("0"), []node{n("a", "t4g.large", unready, notInitialized)}, nothing, []string{"Repair -a"}, ""},
		{"not initialized, but do-not-repair", unlimited, []node{n("a", "t4g.large", unready, notInitialized, doNotRepair)}, nothing, nil, "a do-not-repair"},
		{"not initialized, but too many are unhealthy", unlimited, withHealthy(3, n("a", "t4g.large", unready, notInitialized), n("b", "t4g.large", unready)), nothing, nil, "a repair-breaker"},
		{"not registered", unlimited, []node{n("a", "t4g.large", unready, notInitialized, func(n *node) { n.Registered = false })}, nothing, nil, "a not-initialized"},
		{"static pool", fixture.Pool(static(2)), []node{n("a", "t4g.medium", unready, with(1)), n("b", "t4g.medium")}, func(s *planning.Snapshot) { s.Repair.Unhealthy = intstr.FromInt32(1) }, []string{"Repair -a +t4g.medium"}, ""},
		{"static pool with too many nodes", fixture.Pool(static(1)), []node{n("a", "t4g.medium", unready), n("b", "t4g.medium")}, nothing, nil, "a no-replacement"},
		{"static pool at its limit", fixture.Pool(static(1), limited(1)), []node{n("a", "t4g.medium", unready)}, nothing, nil, "a static-at-limit"},
		{"static pool at its limit, terminating first", fixture.Pool(static(1), limited(1)), []node{n("a", "t4g.medium", unready, with(1))}, terminateFirst, []string{"Repair -a first static-at-limit"}, ""},
		{"static pool below its limit, terminating first", fixture.Pool(static(1), limited(2)), []node{n("a", "t4g.medium", unready)}, terminateFirst, []string{"Repair -a +t4g.medium"}, ""},
		{"static pool at its limit, not ready", fixture.Pool(static(1), limited(1), func(p *karpenter.NodePool) { p.Status.Conditions = nil }), []node{n("a", "t4g.medium", unready)}, terminateFirst, nil, "a static-at-limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := repaired(tt.pool, tt.nodes...)
			tt.change(&s)
			found := Evaluate(s, fixture.Stock(s), Options{})
			var got []string
			for _, c := range found.Commands {
				text := describeFindings(s, c)
				if c.TerminateFirst != "" {
					text += " first " + string(c.TerminateFirst)
				}
				if c.Reboot {
					text += " reboot"
				}
				got = append(got, text)
			}
			kept := ""
			for _, k := range found.Kept {
				if k.Node == "a" {
					kept = "a " + k.Rule
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || kept != tt.kept {
				t.Errorf("commands (-want +got):\n%s\nkept %q, want %q", diff, kept, tt.kept)
			}
		})
	}
}

// Without a change of the cluster, an evaluation is due when the next toleration ends.
func TestRepairIsDueWhenTolerationEnds(t *testing.T) {
	s := repaired(fixture.Pool(never), fixture.Node("a", "t4g.large", sick(corev1.NodeReady, 20*time.Minute)))
	if found := Evaluate(s, fixture.Stock(s), Options{}); !found.NextChange.Equal(s.TakenAt.Add(10 * time.Minute)) {
		t.Errorf("the next change is at %s", found.NextChange)
	}
}

// A node whose condition has a higher priority, or that has waited for longer, comes first. Ties go to
// the lower disruption cost and then to the name.
func TestRepairOrder(t *testing.T) {
	urgent := func(s *planning.Snapshot) {
		for i := range s.Repair.Policies {
			if s.Repair.Policies[i].Condition == "KernelReady" {
				s.Repair.Policies[i].Priority = 50
			}
		}
	}
	for name, tt := range map[string]struct {
		a, b []func(*node)
		want string
	}{
		"priority":                  {[]func(*node){unready}, []func(*node){sick("KernelReady", 31*time.Minute)}, "b"},
		"waited for a rank longer":  {[]func(*node){sick(corev1.NodeReady, 62*time.Minute)}, []func(*node){sick("KernelReady", 31*time.Minute)}, "a"},
		"the most urgent condition": {[]func(*node){unready, sick("KernelReady", 0)}, []func(*node){sick("KernelReady", 31*time.Minute)}, "b"},
		"disruption cost":           {[]func(*node){with(2), unready}, []func(*node){with(1), unready}, "b"},
		"name":                      {[]func(*node){unready}, []func(*node){unready}, "a"},
	} {
		s := repaired(fixture.Pool(never), withHealthy(8, fixture.Node("b", "t4g.large", tt.b...), fixture.Node("a", "t4g.large", tt.a...))...)
		urgent(&s)
		found := Evaluate(s, fixture.Stock(s), Options{})
		if len(found.Commands) != 1 || s.Nodes[found.Commands[0].Nodes[0]].Name != tt.want {
			t.Errorf("%s: %v, want %s", name, all(s, found), tt.want)
		}
	}
}

// The texts of the Events that Karpenter publishes.
func TestRepairTexts(t *testing.T) {
	pool := fixture.Pool(never)
	s := repaired(pool, fixture.Node("a", "t4g.large", unready), fixture.Node("b", "t4g.large", unready))
	if found := Evaluate(s, fixture.Stock(s), Options{}); found.Kept[0].Detail != `more than 20% of nodes in nodepool "default" are unhealthy` {
		t.Errorf("%+v", found.Kept[0])
	}
}
