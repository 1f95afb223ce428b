package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// rebootScenario is a node with a GPU error that a reboot clears, EC2 and the node's kubelet.
type rebootScenario struct {
	testProposal
	// refusal is EC2's answer to reboots, and answers whether the launcher publishes it.
	refusal string
	answers bool
	// reboots are the reboots of the instance, and bootsAt when the last one ends.
	reboots int
	bootsAt time.Time
	// untainted counts the reboots of a node that accepted pods.
	untainted int
	// client is the client of a process that may crash, and confirmation its message; nil for a process that does not.
	client       *crashingClient
	confirmation *event.Envelope
}

// withReboots configures node repair with the gate RebootForRepair.
func withReboots(t *testing.T) func(*lifecycle.Config) {
	t.Helper()
	m, err := repair.NewMatcher(repair.PolicySet{Policies: repair.Provider(true), Unhealthy: intstr.FromString("20%")})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *lifecycle.Config) { c.Repair = m }
}

// startReboot proposes the reboot of old-0, whose pod web can be evicted.
func startReboot(t *testing.T) *rebootScenario {
	t.Helper()
	s := newInitializedCluster(t, 1)
	s.configureService(withReboots(t))
	s.updateNodeOf("old-0", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-0" })
	s.breakGPU()
	s.addPod("old-0", "web")
	s.advanceOnce(11 * time.Minute)
	p := &rebootScenario{testProposal: s.newProposal("p", "old-0"), answers: true}
	p.Reason, p.Method, p.Moved, p.Reboot = string(karpenter.DisruptionReasonUnhealthy), "Repair", 1, true
	p.propose()
	return p
}

func (p *rebootScenario) propose() {
	p.t.Helper()
	p.deliver(event.Proposed, "")
	p.advanceOnce(planning.ConfirmAfter)
	p.takeSent()
}

func (s *testCluster) updateNodeOf(name string, change func(*corev1.Node)) {
	s.t.Helper()
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: name}, func(o cluster.Object) { change(o.(*corev1.Node)) })
}

// breakGPU gives old-0 a GPU error that a reboot clears.
func (s *testCluster) breakGPU() {
	s.t.Helper()
	s.updateNodeOf("old-0", func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			{Type: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Reason: "NvidiaXID48Error", LastTransitionTime: metav1.NewTime(s.now)},
		}
	})
}

// advanceWithPeers advances the time in steps of a second. The launcher answers requests at once, and a reboot
// takes a minute. Evicted pods end.
func (p *rebootScenario) advanceWithPeers(d time.Duration) {
	p.t.Helper()
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(time.Second)
		p.cache.DeliverAll()
		if err := p.svc.Step(p.t.Context()); err != nil && !p.hasCrashed() {
			p.t.Fatal(err)
		}
		p.restartIfCrashed()
		if pod, err := cluster.Get[*corev1.Pod](p.t.Context(), p.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: "web"}); err == nil && pod.DeletionTimestamp != nil {
			if err := p.DeletePod(p.t.Context(), cluster.KeyOf(pod), "", 0); err != nil {
				p.t.Fatal(err)
			}
		}
		for _, e := range p.takeSent() {
			if b, err := event.DecodeBody[event.RebootRequested](e); err == nil && e.Type == event.RebootRequestedType {
				p.rebootInstance(b)
			}
		}
		if !p.bootsAt.IsZero() && !p.now.Before(p.bootsAt) {
			p.bootsAt = time.Time{}
			p.updateNodeOf("old-0", func(n *corev1.Node) {
				n.Status.NodeInfo.BootID = fmt.Sprintf("boot-%d", p.reboots)
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			})
		}
	}
}

func (p *rebootScenario) hasCrashed() bool { return p.client != nil && p.client.writesLeft < 0 }

// restartIfCrashed starts the next process after a crash, which gets the confirmation again.
func (p *rebootScenario) restartIfCrashed() {
	if !p.hasCrashed() {
		return
	}
	p.client = nil
	p.startService(p.ClientFor("lifecycle"), withReboots(p.t))
	p.cache.DeliverAll()
	_ = p.svc.Handle(p.t.Context(), *p.confirmation) // It may be stale.
}

func (p *rebootScenario) rebootInstance(b event.RebootRequested) {
	if p.refusal == "" {
		p.reboots++
		p.bootsAt = p.now.Add(time.Minute)
		if !karpenter.HasTaint(p.getNode("old-0").Spec.Taints, karpenter.RebootingTaint()) {
			p.untainted++
		}
		p.updateNodeOf("old-0", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	}
	if p.answers {
		p.cache.DeliverAll()
		answer := p.newMessage(event.RebootSettled{InstanceID: b.InstanceID, Claim: b.Claim, ClaimUID: b.ClaimUID, Operation: b.Operation, Refusal: p.refusal})
		if p.svc.Handle(p.t.Context(), answer) != nil && p.hasCrashed() {
			p.restartIfCrashed()
			_ = p.svc.Handle(p.t.Context(), answer) // SQS delivers it again; it may be stale.
		}
	}
}

func (s *testCluster) rebooting() string {
	c, found := s.getClaim("old-0").Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	if !found {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// A node is drained, rebooted and initialized again. Nothing is launched or deleted.
func TestReboot(t *testing.T) {
	p := startReboot(t)
	p.deliver(event.Confirmed, "")
	c := p.getClaim("old-0")
	if got := p.rebooting(); got != "True RebootRequested: rebooting for AcceleratedHardwareReady/NvidiaXID48Error" {
		t.Fatalf("the condition is %q", got)
	}
	if reason, _ := c.Status.Conditions.Get(karpenter.ConditionTypeDisruptionReason); reason.Reason != "Unhealthy" || reason.Status != "True" {
		t.Errorf("the claim has the reason %+v", reason)
	}
	if got := c.Annotations[karpenter.RebootTerminationGracePeriodAnnotationKey]; got != "5m0s" {
		t.Errorf("the drain has the limit %q", got)
	}
	if planning.ReadProposal(c) != nil {
		t.Error("the claim still carries the proposal")
	}
	p.advanceWithPeers(10 * time.Second)
	node := p.getNode("old-0")
	if p.reboots != 1 || !karpenter.HasTaint(node.Spec.Taints, karpenter.RebootingTaint()) || node.Labels[karpenter.NodeInitializedLabelKey] != "" {
		t.Errorf("%d reboots; the node has the taints %v and the labels %v", p.reboots, node.Spec.Taints, node.Labels)
	}
	if initialized, _ := p.getClaim("old-0").Status.Conditions.Get(karpenter.ConditionTypeInitialized); initialized.Status != "Unknown" || initialized.Message != "node is rebooting" {
		t.Errorf("initialized: %+v", initialized)
	}
	p.advanceWithPeers(3 * time.Minute)
	p.expectRecovered("")
	if got := p.eventsWithReason("RebootObserved"); len(got) != 1 {
		t.Errorf("the Events about the new boot are %q", got)
	}
}

// expectRecovered requires that the node was rebooted, is in use again, and that nothing of the reboot is left.
func (p *rebootScenario) expectRecovered(what string) {
	p.t.Helper()
	c, node := p.getClaim("old-0"), p.getNode("old-0")
	if c == nil || c.DeletionTimestamp != nil || node == nil {
		p.t.Fatalf("%s: the node was removed", what)
	}
	if got := p.rebooting(); got != "False RebootSucceeded: node rebooted and rejoined the cluster" {
		p.t.Errorf("%s: the condition is %q", what, got)
	}
	if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || c.Status.Conditions.IsTrue(karpenter.ConditionTypeDisruptionReason) {
		p.t.Errorf("%s: the claim has the conditions %+v", what, c.Status.Conditions)
	}
	for _, key := range []string{planning.ProposalAnnotation, nodeclaim.RebootAnnotation, karpenter.RebootPreBootIDAnnotationKey, karpenter.NodeClaimTerminationTimestampAnnotationKey} {
		if c.Annotations[key] != "" {
			p.t.Errorf("%s: the claim has the annotation %s=%s", what, key, c.Annotations[key])
		}
	}
	if len(node.Spec.Taints) > 0 || node.Labels[karpenter.NodeInitializedLabelKey] != "true" {
		p.t.Errorf("%s: the node has the taints %v and the labels %v", what, node.Spec.Taints, node.Labels)
	}
	if p.untainted > 0 || p.reboots == 0 {
		p.t.Errorf("%s: %d reboots, %d of them while the node accepted pods", what, p.reboots, p.untainted)
	}
	if len(planning.ReadReboots(c)) != 1 {
		p.t.Errorf("%s: the history is %q", what, c.Annotations[planning.RebootsAnnotation])
	}
}

// A process may crash at each of its writes. The next one continues, and a node is rebooted only while it has the
// taint.
func TestRebootSurvivesCrashes(t *testing.T) {
	crashed := true
	for n := 0; crashed; n++ {
		for _, done := range []bool{false, true} {
			p := startReboot(t)
			client, e := &crashingClient{Client: p.ClientFor("lifecycle"), writesLeft: n, completesLast: done}, p.envelope(event.Confirmed)
			p.client, p.confirmation = client, &e
			p.startService(client, withReboots(t))
			_ = p.svc.Handle(t.Context(), e)
			p.advanceWithPeers(5 * time.Minute)
			crashed = client.writesLeft < 0
			p.expectRecovered(fmt.Sprintf("crash at write %d, done %t", n, done))
			if p.reboots > 2 {
				t.Errorf("crash at write %d, done %t: %d reboots", n, done, p.reboots)
			}
		}
		if n > 30 {
			t.Fatal("the reboot does not end")
		}
	}
}

// An answer is delivered again while its NodeClaim cannot be read or written, and is recorded then.
func TestRebootAnswerWaitsForAPIServer(t *testing.T) {
	for _, verb := range []memcluster.Verb{memcluster.VerbGet, memcluster.VerbUpdate} {
		p := startReboot(t)
		p.answers, p.refusal = false, "no answer yet"
		p.deliver(event.Confirmed, "")
		p.advanceWithPeers(8 * time.Second)
		c := p.getClaim("old-0")
		answer := p.newMessage(event.RebootSettled{InstanceID: "i-0", Claim: c.Name, ClaimUID: string(c.UID), Operation: nodeclaim.RebootOperation(c), Refusal: "denied"})
		p.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: cluster.NodeClaims, Name: c.Name, As: fault.Throttled, Times: 1})
		p.handleMessage(answer, fault.Throttled)
		p.handleMessage(answer, "")
		p.advanceWithPeers(3 * time.Second)
		if diff := cmp.Diff([]string{"NodeClaim old-0: reboot rejected by the cloud provider: denied"}, p.eventsWithReason("RebootFailed")); diff != "" {
			t.Errorf("after a failed %s: %s", verb, diff)
		}
	}
}

// If the answer is lost, the new boot ID shows that the instance was rebooted.
func TestRebootWithoutAnswer(t *testing.T) {
	p := startReboot(t)
	p.answers = false
	p.deliver(event.Confirmed, "")
	p.advanceWithPeers(8 * time.Minute)
	p.expectRecovered("")
}

// A node that cannot be rebooted is replaced. Its drain has the limit of the reboot's.
func TestRefusedRebootReplaces(t *testing.T) {
	p := startReboot(t)
	p.refusal = "denied"
	p.deliver(event.Confirmed, "")
	p.advanceWithPeers(8 * time.Second)
	p.expectStates("going", "old-0")
	if got, want := p.deadlineOf("old-0"), p.getClaim("old-0").DeletionTimestamp.Add(5*time.Minute-time.Second).UTC().Format(time.RFC3339); got != want {
		t.Errorf("the deadline is %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"NodeClaim old-0: reboot rejected by the cloud provider: denied"}, p.eventsWithReason("RebootFailed")); diff != "" {
		t.Error(diff)
	}
}

// After two reboots within a day the node is replaced. The second reboot begins no earlier than the toleration
// after the first.
func TestRebootsAreLimited(t *testing.T) {
	p := startReboot(t)
	for i := range 2 {
		p.deliver(event.Confirmed, "")
		p.advanceWithPeers(4 * time.Minute)
		if p.reboots != i+1 {
			t.Fatalf("%d reboots after proposal %d", p.reboots, i)
		}
		p.breakGPU()
		p.advanceOnce(11 * time.Minute)
		p.Proposal = fmt.Sprintf("p%d", i)
		p.propose()
	}
	p.deliver(event.Confirmed, "")
	p.expectStates(stateUntouched, "old-0")
	if got := p.eventsWithReason("DisruptionBlocked"); !strings.Contains(strings.Join(got, "\n"), "the repair of the node has changed since the decision") {
		t.Errorf("got the Events %q", got)
	}
	p.Proposal, p.Reboot = "replaces", false
	p.propose()
	p.deliver(event.Confirmed, "")
	p.expectStates("going", "old-0")
}

// A message alone reboots no node: the live node must need a reboot, and answers must be about this reboot.
func TestRebootIsVerified(t *testing.T) {
	for name, change := range map[string]func(*rebootScenario){
		"gate off": func(p *rebootScenario) {
			p.configureService(func(c *lifecycle.Config) {
				m, err := repair.NewMatcher(repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("20%")})
				if err != nil {
					t.Fatal(err)
				}
				c.Repair = m
			})
		},
		"healthy again": func(p *rebootScenario) {
			p.updateNodeOf("old-0", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] })
		},
		"an error that a reboot does not clear": func(p *rebootScenario) {
			p.updateNodeOf("old-0", func(n *corev1.Node) { n.Status.Conditions[1].Reason = "NvidiaXID79Error" })
		},
		"do-not-repair": func(p *rebootScenario) {
			p.updateNodeOf("old-0", func(n *corev1.Node) {
				n.Annotations = map[string]string{karpenter.DoNotRepairAnnotationKey: "true"}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startReboot(t)
			change(p)
			p.deliver(event.Confirmed, "")
			p.advanceWithPeers(time.Minute)
			if p.reboots > 0 || p.rebooting() != "" {
				t.Errorf("%d reboots; the condition is %q", p.reboots, p.rebooting())
			}
		})
	}
	p := startReboot(t)
	p.handleMessage(p.newMessage(event.RebootSettled{InstanceID: "i-0", Claim: "old-0", ClaimUID: string(p.getClaim("old-0").UID), Operation: "x"}), fault.Stale)
	p.handleMessage(p.newMessage(event.RebootSettled{InstanceID: "i-0", Claim: "gone", ClaimUID: "u", Operation: "x"}), fault.Stale)
}

// A reboot whose confirmation cannot be written has not begun: it is counted when the next delivery begins it.
func TestRebootWaitsForConfirmation(t *testing.T) {
	p := startReboot(t)
	decisions := 0
	counting := func(c *lifecycle.Config) {
		c.Metrics = func(m metric.Metric, _ float64, _ ...string) {
			if m.Name == metric.Decisions.Name {
				decisions++
			}
		}
	}
	p.startService(&crashingClient{Client: p.ClientFor("lifecycle"), writesLeft: 1}, withReboots(t), counting) // It writes the reservation.
	p.deliver(event.Confirmed, fault.Unknown)
	if decisions > 0 || p.rebooting() != "" {
		t.Errorf("%d decisions are counted; the condition is %q", decisions, p.rebooting())
	}
	p.startService(p.ClientFor("lifecycle"), withReboots(t), counting)
	p.deliver(event.Confirmed, "")
	if decisions != 1 || p.rebooting() == "" {
		t.Errorf("%d decisions are counted, want 1; the condition is %q", decisions, p.rebooting())
	}
}

// Reboots are counted when they begin and when they end.
func TestRebootMetrics(t *testing.T) {
	counted := []string{metric.ClaimsDisrupted.Name, metric.UnhealthyDisrupted.Name, metric.PodsDisrupted.Name, metric.NodesRebooted.Name, metric.RebootTime.Name, metric.RebootRecoveryTime.Name, metric.Decisions.Name}
	for refusal, want := range map[string][]string{
		"": {
			"karpenter_voluntary_disruption_decisions_total [reboot unhealthy ] 1",
			"karpenter_nodeclaims_disrupted_total [unhealthy default spot  graceful] 1",
			"karpenter_nodeclaims_unhealthy_disrupted_total [accelerated_hardware_ready default spot ami-1 eventual] 1",
			"karpenter_pods_disruption_initiated_total [unhealthy default spot  graceful] 1",
			"karpenter_nodes_reboot_duration_seconds [succeeded] 157",
			"karpenter_nodes_reboot_recovery_duration_seconds [] 150",
			"karpenter_nodes_reboots_total [succeeded] 1",
		},
		"denied": {
			"karpenter_voluntary_disruption_decisions_total [reboot unhealthy ] 1",
			"karpenter_nodeclaims_disrupted_total [unhealthy default spot  graceful] 1",
			"karpenter_nodeclaims_unhealthy_disrupted_total [accelerated_hardware_ready default spot ami-1 eventual] 1",
			"karpenter_pods_disruption_initiated_total [unhealthy default spot  graceful] 1",
			"karpenter_nodes_reboot_duration_seconds [provider_error] 8",
			"karpenter_nodes_reboots_total [provider_error] 1",
		},
	} {
		p := startReboot(t)
		p.refusal = refusal
		var got []string
		p.startService(p.ClientFor("lifecycle"), withReboots(t), func(c *lifecycle.Config) {
			c.Metrics = func(m metric.Metric, value float64, labels ...string) {
				for _, name := range counted {
					if m.Name == name {
						got = append(got, fmt.Sprintf("%s [%s] %g", name, strings.Join(labels, " "), value))
					}
				}
			}
		})
		p.reconcile()
		p.deliver(event.Confirmed, "")
		p.advanceWithPeers(4 * time.Minute)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("refusal %q: %s", refusal, diff)
		}
	}
}

// A reboot whose drain has no limit does not inherit the limit of an earlier one.
func TestRebootWithoutLimit(t *testing.T) {
	s := newInitializedCluster(t, 1)
	policies := repair.Provider(true)
	for i := range policies {
		policies[i].GracePeriod = nil
	}
	m, err := repair.NewMatcher(repair.PolicySet{Policies: policies, Unhealthy: intstr.FromString("20%")})
	if err != nil {
		t.Fatal(err)
	}
	s.configureService(func(c *lifecycle.Config) { c.Repair = m })
	s.setClaim("old-0", func(c *karpenter.NodeClaim) {
		annotateAs(c, karpenter.RebootTerminationGracePeriodAnnotationKey, "5m")
	})
	s.updateNodeOf("old-0", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-0" })
	s.breakGPU()
	s.advanceOnce(11 * time.Minute)
	p := &rebootScenario{testProposal: s.newProposal("p", "old-0")}
	p.Reason, p.Method, p.Reboot = string(karpenter.DisruptionReasonUnhealthy), "Repair", true
	p.propose()
	p.deliver(event.Confirmed, "")
	if c := s.getClaim("old-0"); !c.IsRebooting() || c.Annotations[karpenter.RebootTerminationGracePeriodAnnotationKey] != "" {
		t.Errorf("got rebooting %t, annotations %v", c.IsRebooting(), c.Annotations)
	}
}
