package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// newInitializedCluster returns a cluster with n claims old-0, old-1, … on initialized nodes of
// the same names, without nominations.
func newInitializedCluster(t *testing.T, n int) *testCluster {
	t.Helper()
	s := newTestCluster(t)
	s.launchIntent("old", n)
	var instances []string
	for i := range n {
		instances = append(instances, fmt.Sprintf("i-%d", i))
	}
	s.handleMessage(s.newMessage(launchSettled("old", n, instances...)), "")
	for _, c := range s.listClaims() {
		id, err := c.Instance()
		if err != nil {
			t.Fatal(err)
		}
		s.joinNode(c.Name, id.InstanceID)
	}
	s.advance(6 * time.Second)
	s.advanceOnce(25 * time.Second)
	for _, c := range s.listClaims() {
		if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			t.Fatalf("%s is not initialized", c.Name)
		}
	}
	s.takeSent()
	return s
}

// testProposal is a proposal about claims of the cluster.
type testProposal struct {
	*testCluster
	event.DisruptionProposed
}

// startProposal proposes the claims, each with one pod, and waits until the proposal can be
// confirmed. Its replacements are claims new-0, new-1, ….
func (s *testCluster) startProposal(replacements int, claims ...string) testProposal {
	s.t.Helper()
	m := s.newProposal("p", claims...)
	for _, name := range claims {
		s.addPod(name, "pod-of-"+name)
	}
	m.Moved = len(claims)
	m.Plan = s.storeReplacementPlan("new", replacements)
	m.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	return m
}

// advanceOnce advances the time in one step.
func (s *testCluster) advanceOnce(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.reconcile()
}

func (s *testCluster) newProposal(id string, claims ...string) testProposal {
	return testProposal{s, event.DisruptionProposed{
		Proposal: id, Reason: string(karpenter.DisruptionReasonUnderutilized), Method: "MultiNode", Claims: claims, Decided: s.now,
	}}
}

// envelope returns the proposal's message in a phase, from a snapshot of now.
func (m testProposal) envelope(phase event.Phase) event.Envelope {
	b := m.DisruptionProposed
	b.Phase = phase
	b.Snapshot = event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte(m.now.String())), Size: 1}
	if phase != event.Confirmed {
		b.Plan = event.Ref{}
		return m.newMessage(b)
	}
	for _, name := range b.Claims {
		claim := m.getClaim(name)
		if claim == nil {
			continue
		}
		if p := planning.ReadProposal(claim); p != nil && p.ID == b.Proposal && p.ProposedAt.After(b.ProposedAt) {
			b.ProposedAt = p.ProposedAt
		}
	}
	return m.newMessage(b)
}

func (m testProposal) deliver(phase event.Phase, want fault.Kind) {
	m.t.Helper()
	m.handleMessage(m.envelope(phase), want)
}

// storeReplacementPlan stores a plan of n replacements, as disruption does, without a batch.
func (s *testCluster) storeReplacementPlan(intent string, n int) event.Ref {
	s.t.Helper()
	if n == 0 {
		return event.Ref{}
	}
	planned := s.planIntent(s.readOutbox(), intent, n)
	for i := range planned.Claims {
		planned.Claims[i].Object.Annotations[launchspec.BatchAnnotation] = "/0"
	}
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, planning.PlanKind, planning.Plan{Intents: []planning.PlannedIntent{planned}})
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

// addPod puts a running pod on the node.
func (s *testCluster) addPod(node, name string, changes ...func(*corev1.Pod)) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}}}
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	for _, change := range changes {
		change(pod)
	}
	s.SeedObjects(pod)
}

// removePodOf deletes the pod that startProposal put on the node of the claim.
func (s *testCluster) removePodOf(claim string) {
	s.t.Helper()
	if err := s.DeletePod(s.t.Context(), cluster.Key{Namespace: "default", Name: "pod-of-" + claim}, "", 0); err != nil {
		s.t.Fatal(err)
	}
}

// launchReplacement binds an instance to the replacement new-0 and registers its node.
func (s *testCluster) launchReplacement() {
	s.t.Helper()
	s.handleMessage(s.newMessage(launchSettled("new", 1, "i-new")), "")
	s.joinNode("new-0", "i-new")
}

func (s *testCluster) getNode(name string) *corev1.Node {
	s.t.Helper()
	node, err := cluster.Get[*corev1.Node](s.t.Context(), s.Server, cluster.Nodes, cluster.Key{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return node
}

// disruptionState describes the disruption marks of the claim and its node.
func (s *testCluster) disruptionState(name string) string {
	s.t.Helper()
	c, out := s.getClaim(name), ""
	if c == nil {
		return "gone"
	}
	if c.DeletionTimestamp != nil {
		return "going"
	}
	if p := planning.ReadProposal(c); p != nil {
		out += "proposed "
		if !p.ConfirmedAt.IsZero() {
			out += "confirmed "
		}
	}
	if c.Status.Conditions.IsTrue(karpenter.ConditionTypeDisruptionReason) {
		out += "condition "
	}
	if karpenter.HasTaint(s.getNode(name).Spec.Taints, karpenter.DisruptedTaint()) {
		out += "taint "
	}
	return out
}

const (
	stateUntouched = ""
	stateActing    = "proposed confirmed condition taint "
)

// expectStates expects the same state of every claim.
func (s *testCluster) expectStates(want string, claims ...string) {
	s.t.Helper()
	for _, name := range claims {
		if got := s.disruptionState(name); got != want {
			s.t.Errorf("%s is in state %q, want %q", name, got, want)
		}
	}
}

// eventsWithReason lists the Events of a reason, as "kind name: message".
func (s *testCluster) eventsWithReason(reason string) []string {
	var out []string
	for _, e := range s.Events() {
		if e.Reason == reason {
			out = append(out, fmt.Sprintf("%s %s: %s", e.Kind.Kind, e.About.GetName(), e.Message))
		}
	}
	return out
}

// checkInvariants fails the test if findViolation finds one.
func (s *testCluster) checkInvariants(budget, limit int) {
	s.t.Helper()
	if wrong := s.findViolation(budget, limit); wrong != "" {
		s.t.Fatal(wrong)
	}
}

// findViolation reads the log of all writes and returns the first point at which a proposal started
// beyond the budget, a limit was exceeded, or a proposal deleted a node before its replacements
// were initialized.
func (s *testCluster) findViolation(budget, limit int) string {
	claims := map[string]*karpenter.NodeClaim{}
	back := map[string]time.Time{}
	all, limited := s.countsAllClaims(), false
	for _, e := range s.Effects() {
		if pool, ok := e.After.(*karpenter.NodePool); ok {
			limited = len(pool.Spec.Limits) > 0
		}
		if e.Kind != cluster.NodeClaims {
			continue
		}
		if e.After == nil {
			delete(claims, e.Key.Name)
			continue
		}
		before := claims[e.Key.Name]
		claims[e.Key.Name] = e.After.(*karpenter.NodeClaim)
		if before != nil && disruption.ActingProposal(before) != nil && disruption.ActingProposal(claims[e.Key.Name]) == nil {
			back[e.Key.Name] = e.At
		}
		created := before == nil && limited
		// Notices ignore budgets, so the budget is checked when a disruption starts.
		begins := disruption.ActingProposal(claims[e.Key.Name]) != nil && (before == nil || disruption.ActingProposal(before) == nil)
		switch missing := missingReplacement(claims, claims[e.Key.Name]); {
		case begins && countLeaving(claims) > budget:
			return fmt.Sprintf("version %d: %d nodes are being deleted at once, the budget is %d", e.Version, countLeaving(claims), budget)
		case created && !all && countStaying(claims, back, e.At) > limit:
			return fmt.Sprintf("version %d: %d claims remain in addition to %s, the limit is %d", e.Version, countStaying(claims, back, e.At), e.Key.Name, limit)
		case all && len(claims) > limit:
			return fmt.Sprintf("version %d: there are %d claims, the limit is %d", e.Version, len(claims), limit)
		case e.Verb == memcluster.VerbDelete && missing != "":
			return fmt.Sprintf("version %d: %s was deleted before %s was initialized", e.Version, e.Key.Name, missing)
		}
	}
	return ""
}

// countsAllClaims reports whether all claims count against the pool's limit until they are deleted.
func (s *testCluster) countsAllClaims() bool {
	pool, err := s.ClientFor("test").Get(s.t.Context(), cluster.NodePools, cluster.Key{Name: "default"})
	if err != nil {
		return false
	}
	annotations := pool.GetAnnotations()
	return annotations[policy.Limits] == "strict" || annotations[policy.PriceLimit] != ""
}

// countStaying counts the claims that are neither being deleted nor replaced. A replacement that
// was rolled back recently may have been counted as one before.
func countStaying(claims map[string]*karpenter.NodeClaim, back map[string]time.Time, now time.Time) int {
	n := 0
	for name, c := range claims {
		lately := !back[name].IsZero() && now.Sub(back[name]) < planning.AdmissionTime
		if c.DeletionTimestamp == nil && disruption.ActingProposal(c) == nil && !lately {
			n++
		}
	}
	return n
}

// countLeaving counts the nodes that are being removed or replaced.
func countLeaving(claims map[string]*karpenter.NodeClaim) int {
	going := 0
	for _, c := range claims {
		is := c.Status.Conditions.IsTrue
		if is(karpenter.ConditionTypeInitialized) && !is(karpenter.ConditionTypeInstanceTerminating) && (c.DeletionTimestamp != nil || disruption.ActingProposal(c) != nil) {
			going++
		}
	}
	return going
}

// missingReplacement returns a missing replacement of a claim; "" if none exists, or the claim is
// interrupted by AWS.
func missingReplacement(claims map[string]*karpenter.NodeClaim, c *karpenter.NodeClaim) string {
	p := disruption.ActingProposal(c)
	if p == nil || c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return ""
	}
	for _, name := range p.Replacements {
		if r := claims[name]; r == nil || !r.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || r.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// setBudgetAndLimit sets one budget and a limit of that many claims on the pool.
func (s *testCluster) setBudgetAndLimit(budget string, limit int) {
	s.t.Helper()
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		pool := o.(*karpenter.NodePool)
		pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: budget}}
		pool.Spec.Limits = karpenter.Limits{"cpu": *cpuQuantity(2 * limit)}
	})
}

// setStrictLimits sets strict limits: nodes count until they are deleted.
func (s *testCluster) setStrictLimits() {
	s.t.Helper()
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{policy.Limits: "strict"})
	})
}

// setBudgetAndPriceLimit sets one budget and a price limit of that many claims on the pool.
func (s *testCluster) setBudgetAndPriceLimit(budget string, limit int) {
	s.t.Helper()
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		pool := o.(*karpenter.NodePool)
		pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: budget}}
		pool.Annotations = map[string]string{policy.PriceLimit: fmt.Sprintf("%.4f", 0.0301*float64(limit))}
	})
}
