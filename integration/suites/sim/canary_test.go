package sim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// AWS publishes an image whose instances never become nodes: drift stops after one node. The next image works, and
// all nodes get it in waves.
func TestBadImageStopsAfterCanaryThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}, Broken: map[string]bool{}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Annotations = map[string]string{policy.DriftCanary: "1", policy.DriftBake: "5m"}
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
	pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{}
	if err := w.Apply(ctx, class, pool, web); err != nil {
		t.Fatal(err)
	}
	run := func(length time.Duration) {
		t.Helper()
		if _, err := w.Run(ctx, length, func() bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	run(5 * time.Minute)
	nodes := sumCounts(countImages(t, w))
	if nodes < 3 {
		t.Fatalf("there are %d nodes, which is too few to tell waves apart", nodes)
	}

	bad := publishImage(w, "bad")
	w.Broken[bad] = true
	run(90 * time.Minute)
	if launched := launchTimes(w, bad); len(launched) != 1 {
		t.Errorf("of the bad image %d instances were launched", len(launched))
	}
	if have := countImages(t, w); have[bad] > 0 || countRunningPods(t, w) != 5 {
		t.Errorf("%d claims of the bad image are left, and %d of 5 pods run", have[bad], countRunningPods(t, w))
	}

	requireRolloutCondition(t, w, metav1.ConditionFalse, "Halted", "a launch failed at")
	if !slices.ContainsFunc(w.Kube.Events(), func(e cluster.Event) bool { return e.Reason == "DriftHalted" && e.About.GetName() == pool.Name }) {
		t.Error("no Event tells of it")
	}

	good := publishImage(w, "good")
	run(4 * time.Minute)
	requireRolloutCondition(t, w, metav1.ConditionUnknown, "RollingOut", "ready for 5m")
	run(56 * time.Minute)
	requireRolloutCondition(t, w, metav1.ConditionTrue, "DriftRolledOut", "")
	if have := countImages(t, w); len(have) != 1 || have[good] == 0 || countRunningPods(t, w) != 5 {
		t.Errorf("in the end there are %v, and %d of 5 pods run; all should have %s", have, countRunningPods(t, w), good)
	}
	launched := launchTimes(w, good)
	if len(launched) < 2 || launched[1].Sub(launched[0]) < 5*time.Minute {
		t.Errorf("of the good image instances were launched at %v: the first is not waited for", launched)
	}
}

// requireRolloutCondition requires a condition DriftRolledOut of the NodePool.
func requireRolloutCondition(t *testing.T, w *embedded.EmbeddedCluster, want metav1.ConditionStatus, reason, says string) {
	t.Helper()
	pools, err := cluster.List[*karpenter.NodePool](t.Context(), w.Kube, cluster.NodePools)
	if err != nil || len(pools) != 1 {
		t.Fatal(len(pools), err)
	}
	if got, _ := pools[0].Status.Conditions.Get("DriftRolledOut"); got.Status != want || got.Reason != reason || !strings.Contains(got.Message, says) {
		t.Errorf("DriftRolledOut is %s, %s: %s; want %s, %s: %s", got.Status, got.Reason, got.Message, want, reason, says)
	}
}

// publishImage makes AWS recommend another image.
func publishImage(w *embedded.EmbeddedCluster, name string) string {
	id := w.Cloud.AddImage(cloud.Image{Name: name, Arch: "amd64", Owner: "amazon"}).ID
	w.Cloud.SetParameter("/aws/service/eks/optimized-ami/"+w.AWS.Cluster.Version+"/amazon-linux-2023/x86_64/standard/recommended/image_id", id)
	return id
}

// launchTimes returns when instances of the image were launched.
func launchTimes(w *embedded.EmbeddedCluster, image string) []time.Time {
	var out []time.Time
	for _, r := range w.Cloud.Records() {
		if r.ImageID == image {
			out = append(out, r.Launched)
		}
	}
	return out
}

// countImages returns the number of NodeClaims of each image.
func countImages(t *testing.T, w *embedded.EmbeddedCluster) map[string]int {
	t.Helper()
	claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), w.Kube, cluster.NodeClaims)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, c := range claims {
		out[c.Status.ImageID]++
	}
	return out
}

func countRunningPods(t *testing.T, w *embedded.EmbeddedCluster) int {
	t.Helper()
	pods, err := cluster.List[*corev1.Pod](t.Context(), w.Kube, cluster.Pods)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func sumCounts(images map[string]int) int {
	n := 0
	for _, of := range images {
		n += of
	}
	return n
}
