package deletioncost_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/deletioncost"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newPool returns a NodePool that consolidates at once.
func newPool(name string) *karpenter.NodePool {
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0)
	return pool
}

// newNode returns an initialized node of a pool with one pod of a ReplicaSet.
func newNode(name string, pool *karpenter.NodePool, edits ...func(*deletioncost.RankedNode)) deletioncost.RankedNode {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabelKey: pool.Name}}}
	c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, noon)
	n := deletioncost.RankedNode{Candidate: disruption.Candidate{Claim: c, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}, Pool: pool, Price: 1, Offered: true}
	n.Pods = []*corev1.Pod{newPod(name+"-0", "apps/v1", "ReplicaSet")}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func newPod(name, version, kind string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}}}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "owner", Controller: new(true)}}
	}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

func priced(price float64) func(*deletioncost.RankedNode) {
	return func(n *deletioncost.RankedNode) { n.Price = price }
}

func with(pods ...*corev1.Pod) func(*deletioncost.RankedNode) {
	return func(n *deletioncost.RankedNode) { n.Pods = append(n.Pods, pods...) }
}

func isDrifted(n *deletioncost.RankedNode) {
	n.Claim.Status.Conditions = n.Claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue}, noon)
}

// rankNames ranks the nodes and returns the groups as text, such as "leaving / ranked / unranked".
func rankNames(v deletioncost.RankingView) string {
	if v.Remaining == nil {
		v.Remaining = func(*karpenter.NodePool, karpenter.DisruptionReason) int { return 100 }
	}
	v.Now = noon
	r := deletioncost.RankNodes(v)
	var groups []string
	for _, nodes := range [][]deletioncost.RankedNode{r.Leaving, r.Ranked, r.Unranked} {
		var names []string
		for _, n := range nodes {
			names = append(names, n.Node.Name)
		}
		groups = append(groups, strings.Join(names, " "))
	}
	return strings.Join(groups, "/")
}

func TestRankNodes(t *testing.T) {
	pool, static, never := newPool("default"), newPool("static"), newPool("never")
	static.Spec.Replicas = new(int64(1))
	never.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
	daemon, job, set, single := newPod("d", "apps/v1", "DaemonSet"), newPod("j", "batch/v1", "Job"), newPod("s", "apps/v1", "StatefulSet"), newPod("p", "", "")
	system := newPod("dns", "apps/v1", "StatefulSet")
	system.Namespace = "kube-system"
	owned := newPod("garbage", "", "")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "owner"}}
	kept := newPod("kept", "apps/v1", "ReplicaSet")
	kept.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	for _, tt := range []struct {
		name  string
		nodes []deletioncost.RankedNode
		want  string
	}{
		{"nothing", nil, "//"},
		{"equal nodes by name", []deletioncost.RankedNode{newNode("b", pool), newNode("a", pool)}, "/a b/"},
		{"the dearest first", []deletioncost.RankedNode{newNode("a", pool), newNode("b", pool, priced(3))}, "/b a/"},
		{"more pods cost more to move", []deletioncost.RankedNode{newNode("a", pool, with(newPod("x", "apps/v1", "ReplicaSet"))), newNode("b", pool)}, "/b a/"},
		{"pods of DaemonSets cost nothing", []deletioncost.RankedNode{newNode("a", pool, with(daemon)), newNode("b", pool)}, "/a b/"},
		{"drifted nodes first", []deletioncost.RankedNode{newNode("a", pool, priced(9)), newNode("b", pool, isDrifted)}, "/b a/"},
		{"a drifted node of a static pool", []deletioncost.RankedNode{newNode("a", static, priced(9)), newNode("b", static, isDrifted)}, "/a b/"},
		{"consolidateAfter Never", []deletioncost.RankedNode{newNode("a", never), newNode("b", never, isDrifted)}, "/b/a"},
		{"claim that is being deleted", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Claim.DeletionTimestamp = &metav1.Time{Time: noon} })}, "a//"},
		{"node that is being deleted", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Node.DeletionTimestamp = &metav1.Time{Time: noon} })}, "a//"},
		{"disrupted node", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Node.Spec.Taints = []corev1.Taint{karpenter.DisruptedTaint()} })}, "a//"},
		{"not initialized", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Claim.Status.Conditions = nil })}, "//a"},
		{"nominated", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Nominated = noon.Add(time.Second) })}, "//a"},
		{"protected pod", []deletioncost.RankedNode{newNode("a", pool, with(kept)), newNode("b", pool, isDrifted, with(kept))}, "//a b"},
		{"pods that are created again elsewhere", []deletioncost.RankedNode{newNode("a", pool, with(daemon, job, system))}, "/a/"},
		{"StatefulSet", []deletioncost.RankedNode{newNode("a", pool, with(set))}, "//a"},
		{"pod without a controller", []deletioncost.RankedNode{newNode("a", pool, with(single))}, "//a"},
		{"owner that is no controller", []deletioncost.RankedNode{newNode("a", pool, with(owned))}, "//a"},
		{"type that is not offered", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Offered = false })}, "//a"},
		{"NodePool that does not exist", []deletioncost.RankedNode{newNode("a", pool, func(n *deletioncost.RankedNode) { n.Pool = nil })}, "//a"},
		{"NodePool that does not exist, before one that does", []deletioncost.RankedNode{newNode("a", pool, isDrifted, func(n *deletioncost.RankedNode) { n.Pool = nil }), newNode("b", pool, isDrifted)}, "/b/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rankNames(deletioncost.RankingView{Nodes: tt.nodes}); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A PodDisruptionBudget that allows no eviction, and the budgets of NodePools, leave nodes unranked.
func TestRankNodesWithinBudgets(t *testing.T) {
	one, two := newPool("one"), newPool("two")
	nodes := []deletioncost.RankedNode{
		newNode("a", one, priced(5)), newNode("b", one, priced(4)), newNode("c", two, priced(3)), newNode("d", two, priced(2), isDrifted), newNode("e", two, priced(1), isDrifted),
	}
	remaining := func(pool *karpenter.NodePool, reason karpenter.DisruptionReason) int {
		return map[string]int{"one Underutilized": 1, "one Drifted": 9, "two Underutilized": -1, "two Drifted": 1}[fmt.Sprintf("%s %s", pool.Name, reason)]
	}
	if got := rankNames(deletioncost.RankingView{Nodes: nodes, Remaining: remaining}); got != "/d a/e b c" {
		t.Errorf("with budgets got %s", got)
	}
	blocking := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	blocking.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a-0"}}
	if got := rankNames(deletioncost.RankingView{Nodes: nodes[:2], Budgets: podspec.NewBudgets([]*policyv1.PodDisruptionBudget{blocking})}); got != "/b/a" {
		t.Errorf("with a blocking PodDisruptionBudget got %s", got)
	}
}

// karpenter.sh/disruption-cost decides the order, and pod-deletion-cost does not, because lifecycle
// writes it.
func TestRankNodesByDisruptionCost(t *testing.T) {
	pool := newPool("default")
	dear := func(key string) func(*deletioncost.RankedNode) {
		return func(n *deletioncost.RankedNode) { n.Pods[0].Annotations = map[string]string{key: "2147483647"} }
	}
	if got := rankNames(deletioncost.RankingView{Nodes: []deletioncost.RankedNode{newNode("a", pool, dear(karpenter.DisruptionCostAnnotationKey)), newNode("b", pool, dear(corev1.PodDeletionCost)), newNode("c", pool)}}); got != "/b c a/" {
		t.Errorf("got %s", got)
	}
}

func TestListCosts(t *testing.T) {
	pool := newPool("default")
	rank := func(value string) func(*deletioncost.RankedNode) {
		return func(n *deletioncost.RankedNode) {
			n.Pods[0].Annotations = map[string]string{corev1.PodDeletionCost: value}
		}
	}
	ended := newPod("ended", "apps/v1", "ReplicaSet")
	ended.Status.Phase = corev1.PodSucceeded
	job := newPod("job", "batch/v1", "Job")
	r := deletioncost.Ranking{
		Leaving:  []deletioncost.RankedNode{newNode("a", pool), newNode("b", pool, rank("-2147483648"))},
		Ranked:   []deletioncost.RankedNode{newNode("c", pool, rank("7")), newNode("d", pool, rank("-2"), with(job, ended)), newNode("e", newPool("other"))},
		Unranked: []deletioncost.RankedNode{newNode("f", pool, rank("-3")), newNode("g", pool)},
	}
	costs, nodes := r.ListCosts()
	var got []string
	for _, c := range costs {
		value := "none"
		if c.Value != nil {
			value = *c.Value
		}
		got = append(got, c.Node+" "+value)
	}
	if diff := cmp.Diff([]string{"a -2147483648", "c -3", "e -1", "f none"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"default": 3, "other": 1}, nodes); diff != "" {
		t.Error(diff)
	}
}

// A run changes at most MaxNodes nodes in addition to the nodes that are being removed.
func TestListCostsIsLimited(t *testing.T) {
	pool := newPool("default")
	var nodes []deletioncost.RankedNode
	for i := range deletioncost.MaxNodes + 1 {
		nodes = append(nodes, newNode(fmt.Sprintf("n%02d", i), pool))
	}
	marked := newNode("marked", pool, func(n *deletioncost.RankedNode) {
		n.Pods[0].Annotations = map[string]string{corev1.PodDeletionCost: "-1"}
	})
	for name, r := range map[string]deletioncost.Ranking{
		"ranked":                   {Leaving: nodes[:2], Ranked: nodes},
		"unranked after ranked":    {Leaving: nodes[:2], Ranked: nodes[:deletioncost.MaxNodes], Unranked: []deletioncost.RankedNode{marked}},
		"the last one is unranked": {Leaving: nodes[:2], Ranked: nodes[:deletioncost.MaxNodes-1], Unranked: []deletioncost.RankedNode{marked, marked}},
	} {
		if costs, _ := r.ListCosts(); len(costs) != 2+deletioncost.MaxNodes {
			t.Errorf("%s: %d nodes are changed, want 2 that are being removed and %d others", name, len(costs), deletioncost.MaxNodes)
		}
	}
}
