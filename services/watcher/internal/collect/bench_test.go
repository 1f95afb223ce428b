package collect_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// The cluster size that the watcher is designed for.
const manyNodes, manyPods, manyApps = 5000, 100_000, 500

// shaped returns a pod of a Deployment; each turn creates another pod of that name.
func shaped(i, turn int) *corev1.Pod {
	p := pod(fmt.Sprint("p", i), fmt.Sprint("n", i%manyNodes))
	p.UID = types.UID(fmt.Sprint(i, "-", turn))
	app := fmt.Sprint("app-", i%manyApps)
	p.Labels = map[string]string{"app": app}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	return p
}

func largeState() (*fakeFeed, *collect.State, func(cluster.Object)) {
	feed, trims := newFakeFeed(), podspec.Trims()
	put := func(o cluster.Object) {
		kind, _ := cluster.KindOf(o)
		if trim := trims[kind].Clear; trim != nil {
			trim(o)
		}
		feed.put(o)
	}
	for i := range manyNodes {
		n := node(fmt.Sprint("n", i))
		n.Spec.ProviderID = fmt.Sprint("aws:///eu-west-1a/i-", i)
		put(n)
		put(claim(fmt.Sprint("c", i), registered, func(c *karpenter.NodeClaim) { c.Status.ProviderID = n.Spec.ProviderID }))
	}
	for i := range manyPods {
		put(shaped(i, 0))
	}
	state := collect.NewState(feed)
	state.View(collect.Inputs{Now: noon})
	return feed, state, put
}

// BenchmarkView builds the view after this many pods were replaced by others, each on another node;
// with 0 nothing has changed.
func BenchmarkView(b *testing.B) {
	for _, changed := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(changed, " pods"), func(b *testing.B) {
			_, state, put := largeState()
			turn, now := 0, noon
			for b.Loop() {
				turn++
				// Within a second, a change on nodes that are kept is not read.
				now = now.Add(time.Second)
				for i := range changed {
					put(shaped(i*37, turn))
				}
				state.View(collect.Inputs{Now: now})
			}
		})
	}
}

// BenchmarkAttachment builds the view after one of 20,000 volumes was moved to another node.
func BenchmarkAttachment(b *testing.B) {
	const volumes = 20_000
	_, state, put := largeState()
	for i := range volumes {
		name := fmt.Sprint("v", i)
		bound := volumeClaim(name)
		bound.Spec.VolumeName = "p" + name
		put(bound)
		put(volume("p"+name, name))
		put(attachment("a"+name, "p"+name, fmt.Sprint("n", i%manyNodes)))
	}
	state.View(collect.Inputs{Now: noon})
	turn := 0
	for b.Loop() {
		turn++
		put(attachment("av0", "pv0", fmt.Sprint("n", turn%manyNodes)))
		state.View(collect.Inputs{Now: noon})
	}
}

// BenchmarkCollectAll measures collecting everything instead.
func BenchmarkCollectAll(b *testing.B) {
	feed, _, _ := largeState()
	for b.Loop() {
		collect.CollectAll(feed, collect.Inputs{Now: noon})
	}
}

// BenchmarkDisruptionSnapshot determines which pods a budget for each app blocks.
func BenchmarkDisruptionSnapshot(b *testing.B) {
	_, state, put := largeState()
	for i := range manyApps {
		app := fmt.Sprint("app-", i)
		put(budget(app, func(pdb *policyv1.PodDisruptionBudget) {
			pdb.Spec.Selector.MatchLabels = map[string]string{"app": app}
			pdb.Status.DisruptionsAllowed = int32(i % 2)
		}))
	}
	view := state.View(collect.Inputs{Now: noon})
	for b.Loop() {
		state.DisruptionSnapshot(view, nil)
	}
}
