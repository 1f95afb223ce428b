package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// withRepair returns a configuration with the changed policies of the provider.
func withRepair(t *testing.T, changes ...func(*repair.Policy)) func(*lifecycle.Config) {
	t.Helper()
	policies := repair.Provider(false)
	for i := range policies {
		for _, change := range changes {
			change(&policies[i])
		}
	}
	m, err := repair.NewMatcher(repair.PolicySet{Policies: policies, Unhealthy: intstr.FromString("20%")})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *lifecycle.Config) { c.Repair = m }
}

// startRepair starts a cluster of n nodes, of which old-0 is not ready for half an hour, and proposes
// its repair.
func startRepair(t *testing.T, n, replacements int, changes ...func(*repair.Policy)) testProposal {
	t.Helper()
	s := newInitializedCluster(t, n)
	s.configureService(withRepair(t, changes...))
	s.makeNotReady("old-0")
	s.addPod("old-0", "web", func(p *corev1.Pod) { p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"} })
	s.advanceOnce(31 * time.Minute)
	p := s.newProposal("p", "old-0")
	p.Reason, p.Method, p.Moved, p.Plan = string(karpenter.DisruptionReasonUnhealthy), "Repair", 1, s.storeReplacementPlan("new", replacements)
	p.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	s.takeSent()
	return p
}

func (s *testCluster) setClaim(name string, change func(*karpenter.NodeClaim)) {
	s.t.Helper()
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: name}, func(o cluster.Object) { change(o.(*karpenter.NodeClaim)) })
}

func (s *testCluster) deadlineOf(name string) string {
	return s.getClaim(name).Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey]
}

// The replacement comes first. The drain is limited from the deletion on, and its limit also applies
// to pods that block eviction.
func TestRepairReplacesFirst(t *testing.T) {
	p := startRepair(t, 1, 1)
	var counted []string
	p.svc.Metrics = func(m metric.Metric, _ float64, labels ...string) {
		if m.Name == metric.UnhealthyDisrupted.Name {
			counted = append(counted, strings.Join(labels, " "))
		}
	}
	p.setBudgetAndLimit("1", 2)
	p.deliver(event.Confirmed, "")
	p.expectStates(stateActing, "old-0")
	p.advance(time.Minute)
	if at := p.deadlineOf("old-0"); at != "" {
		t.Errorf("the drain has the deadline %s before its replacement is initialized", at)
	}
	p.handleMessage(p.newMessage(launchSettled("new", 1, "i-new")), "")
	p.joinNode("new-0", "i-new")
	p.advance(8 * time.Second)
	p.expectStates("going", "old-0")
	c := p.getClaim("old-0")
	if got, want := p.deadlineOf("old-0"), c.DeletionTimestamp.Add(10*time.Minute).UTC().Format(time.RFC3339); got != want {
		t.Errorf("the deadline is %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"Node old-0: Disrupting Node: Unhealthy", "NodeClaim old-0: Disrupting NodeClaim: Unhealthy"}, slices.Compact(p.eventsWithReason("DisruptionTerminating"))); diff != "" {
		t.Error(diff)
	}
	if condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeDisruptionReason); condition.Reason != "Unhealthy" || condition.Status != metav1.ConditionTrue {
		t.Errorf("got the condition %+v", condition)
	}
	if want := []string{"ready default spot ami-1 eventual"}; !slices.Equal(counted, want) {
		t.Errorf("the metric has the labels %q, want %q", counted, want)
	}
}

// The deadline is the shortest of the policy, the NodeClaim and a deadline that the claim has already.
func TestRepairLimitsDrain(t *testing.T) {
	for name, c := range map[string]struct {
		policy, claim *time.Duration
		earlier       time.Duration
		want          time.Duration
		none          bool
	}{
		"policy":                   {policy: new(5 * time.Minute), want: 5 * time.Minute},
		"no drain":                 {policy: new(time.Duration(0)), claim: new(time.Hour)},
		"the NodeClaim is shorter": {policy: new(time.Hour), claim: new(time.Minute), want: time.Minute},
		"the policy is shorter":    {policy: new(time.Minute), claim: new(time.Hour), want: time.Minute},
		"an earlier deadline":      {policy: new(time.Hour), earlier: 7 * time.Minute, want: 7 * time.Minute},
		"a later deadline":         {policy: new(time.Minute), earlier: 7 * time.Minute, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := startRepair(t, 1, 0, func(p *repair.Policy) { p.GracePeriod = c.policy })
			p.setClaim("old-0", func(o *karpenter.NodeClaim) {
				if c.claim != nil {
					o.Spec.TerminationGracePeriod = &metav1.Duration{Duration: *c.claim}
				}
				if c.earlier > 0 {
					o.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] = p.now.Add(c.earlier).UTC().Format(time.RFC3339)
				}
			})
			p.deliver(event.Confirmed, "")
			p.expectStates("going", "old-0")
			if got, want := p.deadlineOf("old-0"), p.now.Add(c.want).UTC().Format(time.RFC3339); got != want {
				t.Errorf("the deadline is %q, want %q", got, want)
			}
		})
	}
}

// A rollback removes the deadline that a stopped process wrote before it could delete the claim.
func TestRollbackRemovesRepairDeadline(t *testing.T) {
	p := startRepair(t, 1, 1)
	p.setBudgetAndLimit("1", 2)
	p.deliver(event.Confirmed, "")
	p.setClaim("old-0", func(o *karpenter.NodeClaim) {
		o.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] = p.now.UTC().Format(time.RFC3339)
	})
	p.advanceOnce(2 * time.Second)
	p.handleMessage(p.newMessage(launchSettled("new", 1)), "")
	p.advance(5 * time.Second)
	p.expectStates(stateUntouched, "old-0")
	if at := p.deadlineOf("old-0"); at != "" {
		t.Errorf("the claim has the deadline %s", at)
	}
}

// Lifecycle repairs only a node that is unhealthy now. The message alone is not enough.
func TestRepairIsVerified(t *testing.T) {
	healthy := func(p testProposal) {
		p.ChangeObject(cluster.Nodes, cluster.Key{Name: "old-0"}, func(o cluster.Object) { o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionTrue })
	}
	annotate := func(kind cluster.Kind, key string) func(testProposal) {
		return func(p testProposal) {
			p.ChangeObject(kind, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
				annotations := o.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[key] = "true"
				o.SetAnnotations(annotations)
			})
		}
	}
	reboots := func(status metav1.ConditionStatus, ago time.Duration) func(testProposal) {
		return func(p testProposal) {
			p.setClaim("old-0", func(c *karpenter.NodeClaim) {
				c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeRebooting, Status: status, Reason: karpenter.RebootIssuedReason}, p.now.Add(-ago))
			})
		}
	}
	unbounded := func(p *repair.Policy) { p.GracePeriod = nil }
	for name, c := range map[string]struct {
		policy func(*repair.Policy)
		change func(testProposal)
		why    string
	}{
		"unhealthy":                {func(*repair.Policy) {}, func(testProposal) {}, ""},
		"do-not-disrupt":           {func(*repair.Policy) {}, annotate(cluster.Nodes, karpenter.DoNotDisruptAnnotationKey), ""},
		"healthy again":            {func(*repair.Policy) {}, healthy, "node is not unhealthy, or not for long enough"},
		"unhealthy again":          {func(*repair.Policy) {}, func(p testProposal) { p.makeNotReady("old-0") }, "node is not unhealthy, or not for long enough"},
		"rebooting":                {func(*repair.Policy) {}, reboots("True", time.Hour), "node is rebooting"},
		"rebooted lately":          {func(*repair.Policy) {}, reboots("False", time.Minute), "node is not unhealthy, or not for long enough"},
		"rebooted long ago":        {func(*repair.Policy) {}, reboots("False", time.Hour), ""},
		"gate off":                 {func(*repair.Policy) {}, func(p testProposal) { p.configureService(func(c *lifecycle.Config) { c.Repair = nil }) }, "node is not unhealthy, or not for long enough"},
		"do-not-repair, Node":      {func(*repair.Policy) {}, annotate(cluster.Nodes, karpenter.DoNotRepairAnnotationKey), `repair is blocked through the "karpenter.sh/do-not-repair" annotation`},
		"do-not-repair, NodeClaim": {func(*repair.Policy) {}, annotate(cluster.NodeClaims, karpenter.DoNotRepairAnnotationKey), `repair is blocked through the "karpenter.sh/do-not-repair" annotation`},
		"blocking pod":             {unbounded, func(testProposal) {}, "repair requires a termination grace period to bypass blocking pods"},
		"budget of zero":           {func(*repair.Policy) {}, func(p testProposal) { p.setBudgetAndLimit("0", 2) }, "No allowed disruptions for disruption reason Unhealthy due to blocking budget"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startRepair(t, 1, 0, c.policy)
			p.setBudgetAndLimit("1", 2)
			c.change(p)
			p.deliver(event.Confirmed, "")
			if c.why == "" {
				p.expectStates("going", "old-0")
				return
			}
			p.expectStates(stateUntouched, "old-0")
			if got := p.eventsWithReason("DisruptionBlocked"); !slices.ContainsFunc(got, func(text string) bool { return text == "NodeClaim old-0: "+c.why || text == "NodePool default: "+c.why }) {
				t.Errorf("got the Events %q, want %q", got, c.why)
			}
		})
	}
}

// The breaker is reported on Node, NodeClaim and NodePool.
func TestReportRepairBreaker(t *testing.T) {
	p := startRepair(t, 1, 0)
	p.handleMessage(p.newMessage(event.NodesKept{Decided: p.now, Snapshot: event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte("s")), Size: 1},
		Kept: []event.Kept{{Rule: "repair-breaker", Detail: "forged", Claims: []string{"old-0"}}}}), "")
	const text = `: more than 20% of nodes in nodepool "default" are unhealthy`
	got := p.eventsWithReason(karpenter.ReasonNodeRepairBlocked)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"Node old-0" + text, "NodeClaim old-0" + text, "NodePool default" + text}, got); diff != "" {
		t.Error(diff)
	}
}
