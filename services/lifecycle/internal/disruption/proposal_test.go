package disruption_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func TestReplacementTimeout(t *testing.T) {
	for acting, want := range map[int]time.Duration{
		0: 10 * time.Minute, 1: 10 * time.Minute, 7500: 10 * time.Minute, 7501: 10*time.Minute + 80*time.Millisecond,
		45000: time.Hour, 45001: time.Hour, 1 << 30: time.Hour,
	} {
		if got := disruption.ReplacementTimeout(acting); got != want {
			t.Errorf("with %d proposals in execution the timeout is %s, want %s", acting, got, want)
		}
	}
}

// Each node may have as many pods as when it was confirmed. Repair does not depend on their number, nor do proposals of versions that
// recorded none. Pods that block the disruption count for all reasons, except if the drain has a limit.
func TestFindNewPods(t *testing.T) {
	one, none := 1, 0
	confirmed := func(name string, reason karpenter.DisruptionReason, moving *int, pods int) disruption.Candidate {
		c := disruption.Candidate{Claim: claim(name, true, false)}
		text, err := json.Marshal(planning.Proposal{ID: "p", Reason: string(reason), ConfirmedAt: noon, MovingPods: moving})
		if err != nil {
			t.Fatal(err)
		}
		c.Claim.Annotations = map[string]string{planning.ProposalAnnotation: string(text)}
		for range pods {
			c.Pods = append(c.Pods, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		}
		return c
	}
	budgets := podspec.NewBudgets([]*policyv1.PodDisruptionBudget{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "blocked"}}},
	}})
	withPod := func(c disruption.Candidate, meta metav1.ObjectMeta, changes ...func(*karpenter.NodeClaim)) disruption.Candidate {
		meta.Namespace, meta.Name = "default", "late"
		c.Pods = append(c.Pods, &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		for _, change := range changes {
			change(c.Claim)
		}
		return c
	}
	protected := metav1.ObjectMeta{Annotations: map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}}
	limited := func(c *karpenter.NodeClaim) { c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour} }
	limitedByPolicy := func(c *karpenter.NodeClaim) {
		p := planning.ReadProposal(c)
		p.GracePeriod = new(time.Hour)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		c.Annotations[planning.ProposalAnnotation] = string(text)
	}
	const whyProtected = `pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/late)`
	const drifted, unhealthy = karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnhealthy
	for name, c := range map[string]struct {
		candidates []disruption.Candidate
		want       disruption.Objection
	}{
		"as many":               {candidates: []disruption.Candidate{confirmed("a", drifted, &one, 1), confirmed("b", drifted, &none, 0)}},
		"fewer":                 {candidates: []disruption.Candidate{confirmed("a", drifted, &one, 0)}},
		"one more, on one node": {candidates: []disruption.Candidate{confirmed("a", drifted, &one, 0), confirmed("b", drifted, &one, 2)}, want: disruption.Objection{Claim: "b", Why: "new pods were scheduled before the node was tainted: 2 must move, 1 were planned"}},
		"the first pod":         {candidates: []disruption.Candidate{confirmed("a", drifted, &none, 1)}, want: disruption.Objection{Claim: "a", Why: "new pods were scheduled before the node was tainted: 1 must move, 0 were planned"}},
		"an old version":        {candidates: []disruption.Candidate{confirmed("a", drifted, nil, 2)}},
		"repair":                {candidates: []disruption.Candidate{confirmed("a", unhealthy, &one, 2)}},
		"a protected pod instead of another": {
			candidates: []disruption.Candidate{withPod(confirmed("a", drifted, &one, 0), protected)}, want: disruption.Objection{Claim: "a", Why: whyProtected},
		},
		"a protected pod, an old version": {
			candidates: []disruption.Candidate{withPod(confirmed("a", drifted, nil, 0), protected)}, want: disruption.Objection{Claim: "a", Why: whyProtected},
		},
		"a blocked pod instead of another": {
			candidates: []disruption.Candidate{withPod(confirmed("a", drifted, &one, 0), metav1.ObjectMeta{Labels: map[string]string{"app": "blocked"}})},
			want:       disruption.Objection{Claim: "a", Why: "pdb prevents pod evictions (PodDisruptionBudget=default/none, Pod=default/late)"},
		},
		"a protected pod, drift with a limit": {candidates: []disruption.Candidate{withPod(confirmed("a", drifted, &one, 0), protected, limited)}},
		"a protected pod, empty with a limit": {
			candidates: []disruption.Candidate{withPod(confirmed("a", karpenter.DisruptionReasonEmpty, &one, 0), protected, limited)},
			want:       disruption.Objection{Claim: "a", Why: whyProtected},
		},
		"a protected pod, repair without a limit": {
			candidates: []disruption.Candidate{withPod(confirmed("a", unhealthy, &one, 0), protected)},
			want:       disruption.Objection{Claim: "a", Why: "repair requires a termination grace period to bypass blocking pods"},
		},
		"a protected pod, repair with a limit":          {candidates: []disruption.Candidate{withPod(confirmed("a", unhealthy, &one, 0), protected, limited)}},
		"a protected pod, repair with a policy's limit": {candidates: []disruption.Candidate{withPod(confirmed("a", unhealthy, &one, 0), protected, limitedByPolicy)}},
		"not confirmed": {candidates: []disruption.Candidate{{Claim: claim("a", true, false)}}},
	} {
		reason := karpenter.DisruptionReason("")
		if p := disruption.ActingProposal(c.candidates[0].Claim); p != nil {
			reason = karpenter.DisruptionReason(p.Reason)
		}
		got, found := disruption.LiveProposal{Reason: reason, Candidates: c.candidates, Budgets: budgets, Now: noon}.FindNewPods()
		if got != c.want || found != (c.want != disruption.Objection{}) {
			t.Errorf("%s: %+v, %t, want %+v", name, got, found, c.want)
		}
	}
}

func claim(name string, initialized, going bool) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if initialized {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, noon)
	}
	if going {
		c.DeletionTimestamp = &metav1.Time{Time: noon}
	}
	return c
}

func TestAssessProgress(t *testing.T) {
	up, slow, going, lost := claim("up", true, false), claim("slow", false, false), claim("going", true, true), (*karpenter.NodeClaim)(nil)
	for _, c := range []struct {
		name         string
		replacements map[string]*karpenter.NodeClaim
		coming       bool
		after        time.Duration
		want         disruption.Progress
		why          string
	}{
		{name: "none", want: disruption.Ready},
		{name: "no replacements, after two hours", after: 2 * time.Hour, want: disruption.Ready},
		{name: "up", replacements: map[string]*karpenter.NodeClaim{"a": up}, want: disruption.Ready},
		{name: "initialized, after two hours", replacements: map[string]*karpenter.NodeClaim{"a": up}, after: 2 * time.Hour, want: disruption.Ready},
		{name: "one of two initialized", replacements: map[string]*karpenter.NodeClaim{"a": up, "b": slow}, want: disruption.Waiting, why: "replacement NodeClaim b is not initialized"},
		{name: "at the end of the timeout", replacements: map[string]*karpenter.NodeClaim{"b": slow}, after: 10 * time.Minute, want: disruption.Waiting, why: "replacement NodeClaim b is not initialized"},
		{name: "after the timeout", replacements: map[string]*karpenter.NodeClaim{"b": slow}, after: 10*time.Minute + 1, want: disruption.Failed, why: "replacement NodeClaim b is not initialized after 10m0s"},
		{name: "the clock was set back", replacements: map[string]*karpenter.NodeClaim{"b": slow}, after: -time.Hour, want: disruption.Waiting, why: "replacement NodeClaim b is not initialized"},
		{name: "initialized, then being deleted", replacements: map[string]*karpenter.NodeClaim{"a": up, "b": going}, want: disruption.Failed, why: "replacement NodeClaim b is being deleted"},
		{name: "gone", replacements: map[string]*karpenter.NodeClaim{"a": lost}, want: disruption.Failed, why: "replacement NodeClaim a is gone"},
		{name: "in creation", replacements: map[string]*karpenter.NodeClaim{"a": lost}, coming: true, want: disruption.Waiting, why: "replacement NodeClaim a is not initialized"},
		{name: "never created", replacements: map[string]*karpenter.NodeClaim{"a": lost}, coming: true, after: 11 * time.Minute, want: disruption.Failed, why: "replacement NodeClaim a is not initialized after 10m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planning.Proposal{ID: "p", ConfirmedAt: noon}
			for _, name := range []string{"a", "b"} {
				if _, ok := c.replacements[name]; ok {
					p.Replacements = append(p.Replacements, name)
				}
			}
			got, why := disruption.AssessProgress(disruption.ProposalView{
				Proposal: p, Acting: 1, Now: noon.Add(c.after),
				Replacement:  func(name string) *karpenter.NodeClaim { return c.replacements[name] },
				MayBeCreated: func(string) bool { return c.coming },
			})
			if got != c.want || why != c.why {
				t.Errorf("got %q %q, want %q %q", got, why, c.want, c.why)
			}
		})
	}
}

// In any combination of proposals, no pool has more nodes being removed or not ready than its
// budget allows, and a proposal within the budgets is admitted.
func TestBudgetsAreNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pools []*karpenter.NodePool
		var claims []*karpenter.NodeClaim
		budgets, ready, going := map[string]int{}, map[string]bool{}, map[string]bool{}
		for _, name := range []string{"a", "b"} {
			budgets[name] = rapid.IntRange(0, 4).Draw(t, "budget of "+name)
			pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
			pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: strconv.Itoa(budgets[name])}}
			pools = append(pools, pool)
		}
		proposals := make([][]disruption.Candidate, 4)
		for i := range rapid.IntRange(0, 12).Draw(t, "nodes") {
			c := claim(fmt.Sprintf("c-%d", i), rapid.IntRange(0, 5).Draw(t, "initialized") > 0, rapid.IntRange(0, 5).Draw(t, "going") == 0)
			c.Labels = map[string]string{karpenter.NodePoolLabelKey: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool")}
			marks := rapid.SampledFrom([]struct {
				proposal, reservation string
				counts                bool
			}{
				{}, {}, {}, {proposal: `{"id":"q"}`}, {`{"id":"q","confirmed":"2026-11-20T11:59:00Z"}`, "", true},
				{`{"id":"q"}`, "pod-1/2", true}, {`{"id":"q"}`, "pod-1/3", false}, {"", "pod-1/2", false},
			}).Draw(t, "marks")
			c.Annotations = map[string]string{planning.ProposalAnnotation: marks.proposal, planning.ReservationAnnotation: marks.reservation}
			ready[c.Name] = rapid.IntRange(0, 5).Draw(t, "ready") > 0
			going[c.Name] = marks.counts || c.DeletionTimestamp != nil || !ready[c.Name]
			claims = append(claims, c)
			if which := rapid.IntRange(0, len(proposals)).Draw(t, "proposal"); which > 0 && c.DeletionTimestamp == nil && !marks.counts {
				proposals[which-1] = append(proposals[which-1], disruption.Candidate{Claim: c})
			}
		}
		// within counts the nodes being removed from each pool of the candidates, including them.
		within := func(candidates []disruption.Candidate) bool {
			count, touched := map[string]int{}, map[string]bool{}
			for _, c := range claims {
				among := slices.ContainsFunc(candidates, func(x disruption.Candidate) bool { return x.Claim == c })
				pool := c.Labels[karpenter.NodePoolLabelKey]
				touched[pool] = touched[pool] || among
				if c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) && (among || going[c.Name]) {
					count[pool]++
				}
			}
			return (!touched["a"] || count["a"] <= budgets["a"]) && (!touched["b"] || count["b"] <= budgets["b"])
		}
		room := disruption.CountBudgets(pools, claims, func(c *karpenter.NodeClaim) bool { return c.Annotations[planning.ReservationAnnotation] == "pod-1/3" }, func(c *karpenter.NodeClaim) bool { return ready[c.Name] })
		for i, candidates := range proposals {
			objection, found := room.TakeBudget(karpenter.DisruptionReasonUnderutilized, candidates, noon)
			if found == within(candidates) {
				t.Fatalf("proposal %d of %d nodes: got objection %+v, although the proposal is within the budgets: %t", i, len(candidates), objection, within(candidates))
			}
			for _, c := range candidates {
				going[c.Claim.Name] = going[c.Claim.Name] || !found
			}
		}
	})
}

func TestAddAndRemoveTaint(t *testing.T) {
	taint := karpenter.DisruptedTaint()
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoExecute}, {Key: taint.Key, Effect: corev1.TaintEffectPreferNoSchedule}}}}
	tainted, changed := disruption.WithTaint(node)
	if !changed || len(tainted.Spec.Taints) != 2 || tainted.Spec.Taints[1] != taint || len(node.Spec.Taints) != 2 || node.Spec.Taints[1] == taint {
		t.Fatalf("taints %v became %v", node.Spec.Taints, tainted.Spec.Taints)
	}
	if _, again := disruption.WithTaint(tainted); again {
		t.Error("WithTaint changed a tainted node")
	}
	free, changed := disruption.WithoutTaint(tainted)
	if !changed || len(free.Spec.Taints) != 1 || free.Spec.Taints[0].Key != "mine" {
		t.Errorf("after WithoutTaint the node has %v", free.Spec.Taints)
	}
	if _, again := disruption.WithoutTaint(free); again {
		t.Error("WithoutTaint changed an untainted node")
	}
}
