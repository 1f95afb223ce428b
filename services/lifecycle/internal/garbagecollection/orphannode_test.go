package garbagecollection_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// node returns an orphan node with these changes.
func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	deleted := metav1.NewTime(noon.Add(-time.Minute))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, DeletionTimestamp: &deleted, Finalizers: []string{"other", karpenter.TerminationFinalizer},
		Labels:          map[string]string{karpenter.NodePoolLabelKey: "default", karpenter.LabelEC2NodeClass: "default"},
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID("claim-" + name)}},
	}}
	n.Spec.ProviderID = "aws:///eu-west-1a/i-" + name
	for _, change := range changes {
		change(n)
	}
	return n
}

func running(n *corev1.Node)   { n.DeletionTimestamp = nil }
func released(n *corev1.Node)  { n.Finalizers = []string{"other"} }
func unmanaged(n *corev1.Node) { n.Labels = nil }
func unpooled(n *corev1.Node)  { delete(n.Labels, karpenter.NodePoolLabelKey) }

func azure(n *corev1.Node) {
	n.Labels = map[string]string{karpenter.NodePoolLabelKey: "default", "karpenter.azure.com/aksnodeclass": "default"}
}

func of(uid, provider string) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	c.Status.ProviderID = provider
	return c
}

func TestFindOrphanNodes(t *testing.T) {
	for _, test := range []struct {
		name   string
		node   *corev1.Node
		claims []*karpenter.NodeClaim
		want   bool
	}{
		{"no claims", node("n"), nil, true},
		{"claims of other nodes", node("n"), []*karpenter.NodeClaim{of("claim-m", "aws:///eu-west-1a/i-m"), of("claim-l", "")}, true},
		{"a claim with its provider ID", node("n"), []*karpenter.NodeClaim{of("x", "aws:///eu-west-1a/i-n")}, false},
		{"a claim with its node name", node("n"), []*karpenter.NodeClaim{of("claim-n", "")}, false},
		{"it is not being deleted", node("n", running), nil, false},
		{"no finalizer of Joist", node("n", released), nil, false},
		{"no labels", node("n", unmanaged), nil, false},
		{"no NodePool", node("n", unpooled), nil, true},
		{"a node class of another provider", node("n", azure), nil, false},
	} {
		if got := len(garbagecollection.FindOrphanNodes([]*corev1.Node{test.node}, test.claims)) == 1; got != test.want {
			t.Errorf("%s: got orphan node %t", test.name, got)
		}
	}
}

func TestCheckOrphanNodes(t *testing.T) {
	fleet := func(orphans, others int) (all, found []*corev1.Node) {
		for i := range orphans {
			found = append(found, node(fmt.Sprintf("w%d", i)))
		}
		all = append(all, found...)
		for i := range others {
			all = append(all, node(fmt.Sprintf("n%d", i), running))
		}
		return all, found
	}
	for _, test := range []struct {
		orphans, others int
		want            fault.Kind
	}{{1, 0, ""}, {3, 0, ""}, {4, 0, fault.Denied}, {4, 36, ""}, {5, 44, fault.Denied}, {5, 45, ""}, {500, 0, fault.Denied}} {
		all, found := fleet(test.orphans, test.others)
		if err := garbagecollection.CheckOrphanNodes(found, all); fault.KindOf(err) != test.want {
			t.Errorf("%d of %d: %v", test.orphans, test.orphans+test.others, err)
		}
	}
}

func TestReleaseOrphanNode(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	web.Status.Phase = corev1.PodRunning
	tainted, _ := nodeclaim.TaintNode(node("n"), false)
	young := tainted.DeepCopy()
	now := metav1.NewTime(noon)
	young.DeletionTimestamp = &now
	yes, no := func(*corev1.Pod) bool { return true }, func(*corev1.Pod) bool { return false }
	for _, test := range []struct {
		name string
		node *corev1.Node
		pods []*corev1.Pod
		may  func(*corev1.Pod) bool
		want string
	}{
		{"taint first", node("n"), []*corev1.Pod{web}, yes, "update [other karpenter.sh/termination] 1"},
		{"evict its pods next", tainted, []*corev1.Pod{web}, yes, "evict web"},
		{"its pods were evicted recently", tainted, []*corev1.Pod{web}, no, ""},
		{"release the node when it has no pods", tainted, nil, yes, "update [other] 1"},
		{"a new node is not released yet", young, nil, yes, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.node.DeepCopy()
			got := ""
			for _, e := range garbagecollection.ReleaseOrphanNode(test.node, test.pods, test.may, noon) {
				switch e := e.(type) {
				case effect.Update:
					n := e.Object.(*corev1.Node)
					got += fmt.Sprintf("update %v %d", n.Finalizers, len(n.Spec.Taints))
				case effect.Evict:
					got += "evict " + e.Pod.Name
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(before, test.node); diff != "" {
				t.Errorf("the node of the cache was changed:\n%s", diff)
			}
		})
	}
}
