package collect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const instance = "aws:///eu-west-1a/i-1"

func at(providerID string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.ProviderID = providerID }
}

func owns(providerID string, age time.Duration, pool string) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) {
		registered(c)
		c.Status.ProviderID, c.CreationTimestamp = providerID, metav1.NewTime(noon.Add(-age))
		c.Labels = map[string]string{karpenter.NodePoolLabelKey: pool}
	}
}

// everybody adds a selector that matches all pods.
func everybody(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: "host", LabelSelector: &metav1.LabelSelector{},
	}}}}
}

// A node is described again whenever it must be, including cases that random histories seldom
// contain.
func TestChangedNodesAreDescribedAgain(t *testing.T) {
	bound := volumeClaim("v")
	bound.Spec.VolumeName, bound.Annotations = "pv", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	for _, c := range []struct {
		name          string
		first, change []cluster.Object
	}{
		{"a claim that two nodes refer to",
			[]cluster.Object{node("a", at(instance)), node("b", at(instance)), claim("c", owns(instance, time.Hour, "x"))},
			[]cluster.Object{claim("c", owns(instance, time.Hour, "y"))}},
		{"a claim without a node",
			[]cluster.Object{node("a", at("")), claim("c", owns(instance, time.Hour, "x"))},
			[]cluster.Object{claim("c", owns(instance, time.Hour, "y"))}},
		{"a claim whose creation time changed",
			[]cluster.Object{node("a", at(instance)), claim("c", owns(instance, 2*time.Hour, "x")), claim("d", owns(instance, time.Hour, "y"))},
			[]cluster.Object{claim("c", owns(instance, time.Minute, "x"))}},
		{"a node whose claim is of another provider now",
			[]cluster.Object{node("a", at(instance)), claim("c", owns(instance, time.Hour, "x"))},
			[]cluster.Object{claim("c", owns(instance, time.Hour, "x"), ofAutoMode)}},
		{"a claim without a node that is of another provider now",
			[]cluster.Object{node("a", at("")), claim("c", owns(instance, time.Hour, "x"))},
			[]cluster.Object{claim("c", owns(instance, time.Hour, "x"), ofAutoMode)}},
		{"a node whose provider ID changed",
			[]cluster.Object{node("a", at(instance)), claim("c", owns(instance, time.Hour, "x"))},
			[]cluster.Object{node("a", at(""))}},
		{"a claim that gets its provider ID",
			[]cluster.Object{node("a", at(instance)), claim("c", owns("", time.Hour, "x"))},
			[]cluster.Object{claim("c", owns(instance, time.Hour, "x"))}},
		{"an attached volume that is bound to another claim",
			[]cluster.Object{node("a"), storageClass(), bound, pod("p", "a", claims("v")), attachment("at", "other", "a"), volume("pv", "v"), volume("other", "v")},
			[]cluster.Object{volume("other", "w")}},
		{"a DaemonSet pod without labels, once another pod avoids all pods",
			[]cluster.Object{node("a"), pod("d", "a", owner("DaemonSet"))},
			[]cluster.Object{pod("p", "", everybody)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			feed := newFakeFeed()
			for _, o := range c.first {
				feed.put(o)
			}
			state := collect.NewState(feed)
			before := text(t, state.View(collect.Inputs{Now: noon}))
			for _, o := range c.change {
				feed.put(o)
			}
			what := collect.Inputs{Now: noon}
			want, got := collect.CollectAll(feed, what), state.View(what)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the state differs from what there is (-want +got):\n%s", diff)
			}
			if text(t, got) == before {
				t.Error("the change does not change the document")
			}
		})
	}
}
