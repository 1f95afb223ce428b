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

// estate is a site with so many claims old-0, old-1, … on nodes of the same names,
// on which nobody is expected any more.
func estate(t *testing.T, n int) *site {
	t.Helper()
	s := newSite(t)
	s.launched("old", n)
	var instances []string
	for i := range n {
		instances = append(instances, fmt.Sprintf("i-%d", i))
	}
	s.handle(s.message(settled("old", n, instances...)), "")
	for _, c := range s.claims() {
		id, err := c.Instance()
		if err != nil {
			t.Fatal(err)
		}
		s.join(c.Name, id.InstanceID)
	}
	s.pass(6 * time.Second)
	s.leap(25 * time.Second)
	for _, c := range s.claims() {
		if !c.Status.Conditions.True(karpenter.ConditionTypeInitialized) {
			t.Fatalf("%s is not initialized", c.Name)
		}
	}
	s.sent()
	return s
}

// move is a proposal about claims of an estate.
type move struct {
	*site
	event.DisruptionProposed
}

// moves proposes the claims, each with one pod on it, and lets the proposal be old
// enough. Replacements are so many claims new-0, new-1, ….
func (s *site) moves(replacements int, claims ...string) move {
	s.t.Helper()
	m := s.move("p", claims...)
	for _, name := range claims {
		s.runs(name, "pod-of-"+name)
	}
	m.Moved = len(claims)
	m.Plan = s.replacing("new", replacements)
	m.take(event.Proposed, "")
	s.leap(planning.ConfirmAfter)
	return m
}

// leap lets that much time pass in one step.
func (s *site) leap(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.step()
}

func (s *site) move(id string, claims ...string) move {
	return move{s, event.DisruptionProposed{
		Proposal: id, Reason: string(karpenter.DisruptionReasonUnderutilized), Method: "MultiNode", Claims: claims, Decided: s.now,
	}}
}

// fact is the proposal in a phase, from a snapshot of now.
func (m move) fact(phase event.Phase) event.Envelope {
	b := m.DisruptionProposed
	b.Phase = phase
	b.Snapshot = event.Ref{Kind: planning.SnapshotKind, Digest: event.DigestOf([]byte(m.now.String())), Size: 1}
	if phase != event.Confirmed {
		b.Plan = event.Ref{}
	}
	return m.message(b)
}

func (m move) take(phase event.Phase, want fault.Kind) {
	m.t.Helper()
	m.handle(m.fact(phase), want)
}

// replacing stores a plan of so many replacements, as disruption does: for no batch.
func (s *site) replacing(intent string, n int) event.Ref {
	s.t.Helper()
	if n == 0 {
		return event.Ref{}
	}
	planned := s.planned(s.outbox(), intent, n)
	for i := range planned.Claims {
		planned.Claims[i].Object.Annotations[launchspec.BatchAnnotation] = "/0"
	}
	ref, err := blob.Put(s.t.Context(), s.blobs, s.now, planning.PlanKind, planning.Plan{Intents: []planning.PlannedIntent{planned}})
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

// runs puts a running pod on the node.
func (s *site) runs(node, name string, changes ...func(*corev1.Pod)) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}}}
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	for _, change := range changes {
		change(pod)
	}
	s.Seed(pod)
}

// comes lets the replacement new-0 have an instance and a node that is ready.
func (s *site) comes() {
	s.t.Helper()
	s.handle(s.message(settled("new", 1, "i-new")), "")
	s.join("new-0", "i-new")
}

func (s *site) nodeNamed(name string) *corev1.Node {
	s.t.Helper()
	node, err := cluster.Get[*corev1.Node](s.t.Context(), s.Server, cluster.Nodes, cluster.Key{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return node
}

// disrupted says what of a disruption is on the claim and its node.
func (s *site) disrupted(name string) string {
	s.t.Helper()
	c, out := s.claim(name), ""
	if c == nil {
		return "gone"
	}
	if c.DeletionTimestamp != nil {
		return "going"
	}
	if p := planning.ProposalOf(c); p != nil {
		out += "proposed "
		if !p.Confirmed.IsZero() {
			out += "confirmed "
		}
	}
	if c.Status.Conditions.True(karpenter.ConditionTypeDisruptionReason) {
		out += "condition "
	}
	if karpenter.HoldsTaint(s.nodeNamed(name).Spec.Taints, karpenter.DisruptedTaint()) {
		out += "taint "
	}
	return out
}

const (
	untouched = ""
	acting    = "proposed confirmed condition taint "
)

// each expects the same of every claim.
func (s *site) each(want string, claims ...string) {
	s.t.Helper()
	for _, name := range claims {
		if got := s.disrupted(name); got != want {
			s.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// heard lists the Events of a reason, as "kind name: message".
func (s *site) heard(reason string) []string {
	var out []string
	for _, e := range s.Events() {
		if e.Reason == reason {
			out = append(out, fmt.Sprintf("%s %s: %s", e.Kind.Kind, e.About.GetName(), e.Message))
		}
	}
	return out
}

// audit fails the test for what wrongs finds.
func (s *site) audit(budget, limit int) {
	s.t.Helper()
	if wrong := s.wrongs(budget, limit); wrong != "" {
		s.t.Fatal(wrong)
	}
}

// wrongs reads the log of all writes, and gives the first instant at which a proposal
// began beyond the budget, a limit was exceeded, or a proposal deleted a node whose
// replacements were not there.
func (s *site) wrongs(budget, limit int) string {
	claims := map[string]*karpenter.NodeClaim{}
	back := map[string]time.Time{}
	all, limited := s.countsAll(), false
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
		// Notices keep to no budget, so that it is looked at when something begins.
		begins := disruption.ActingProposal(claims[e.Key.Name]) != nil && (before == nil || disruption.ActingProposal(before) == nil)
		switch missing := missing(claims, claims[e.Key.Name]); {
		case begins && goingOf(claims) > budget:
			return fmt.Sprintf("version %d: %d nodes are going at a time, the budget is %d", e.Version, goingOf(claims), budget)
		case created && !all && staying(claims, back, e.At) > limit:
			return fmt.Sprintf("version %d: %d claims stay with %s, the limit is %d", e.Version, staying(claims, back, e.At), e.Key.Name, limit)
		case all && len(claims) > limit:
			return fmt.Sprintf("version %d: there are %d claims, the limit is %d", e.Version, len(claims), limit)
		case e.Verb == memcluster.VerbDelete && missing != "":
			return fmt.Sprintf("version %d: %s was deleted before %s was initialized", e.Version, e.Key.Name, missing)
		}
	}
	return ""
}

// countsAll reports whether all claims count against the pool's limit until they are gone.
func (s *site) countsAll() bool {
	pool, err := s.As("test").Get(s.t.Context(), cluster.NodePools, cluster.Key{Name: "default"})
	if err != nil {
		return false
	}
	annotations := pool.GetAnnotations()
	return annotations[policy.Limits] == "strict" || annotations[policy.PriceLimit] != ""
}

// staying counts the claims that are neither being deleted nor replaced. A replacement
// that was rolled back lately may have been counted as one before.
func staying(claims map[string]*karpenter.NodeClaim, back map[string]time.Time, now time.Time) int {
	n := 0
	for name, c := range claims {
		lately := !back[name].IsZero() && now.Sub(back[name]) < disruption.AdmissionTime
		if c.DeletionTimestamp == nil && disruption.ActingProposal(c) == nil && !lately {
			n++
		}
	}
	return n
}

// goingOf counts the nodes that are going, or are to go.
func goingOf(claims map[string]*karpenter.NodeClaim) int {
	going := 0
	for _, c := range claims {
		is := c.Status.Conditions.True
		if is(karpenter.ConditionTypeInitialized) && !is(karpenter.ConditionTypeInstanceTerminating) && (c.DeletionTimestamp != nil || disruption.ActingProposal(c) != nil) {
			going++
		}
	}
	return going
}

// missing names a replacement that is not there for a claim; "" for none, and for a
// claim that AWS takes away.
func missing(claims map[string]*karpenter.NodeClaim, c *karpenter.NodeClaim) string {
	p := disruption.ActingProposal(c)
	if p == nil || c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return ""
	}
	for _, name := range p.Replacements {
		if r := claims[name]; r == nil || !r.Status.Conditions.True(karpenter.ConditionTypeInitialized) || r.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// bounded gives the pool one budget, and a limit of so many claims.
func (s *site) bounded(budget string, limit int) {
	s.t.Helper()
	s.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		pool := o.(*karpenter.NodePool)
		pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: budget}}
		pool.Spec.Limits = karpenter.Limits{"cpu": *cpuOf(2 * limit)}
	})
}

// strict counts nodes against the limit until they are gone.
func (s *site) strict() {
	s.t.Helper()
	s.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{policy.Limits: "strict"})
	})
}

// frugal is bounded by what so many claims cost.
func (s *site) frugal(budget string, limit int) {
	s.t.Helper()
	s.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		pool := o.(*karpenter.NodePool)
		pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: budget}}
		pool.Annotations = map[string]string{policy.PriceLimit: fmt.Sprintf("%.4f", 0.0301*float64(limit))}
	})
}
