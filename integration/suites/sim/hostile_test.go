package sim_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A pod with text that is not allowed in a NodeClaim blocks no other pod. It runs if the text is only a
// preference.
func TestHostilePodBlocksNoOtherPod(t *testing.T) {
	term := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
		}}
	}
	for _, hostile := range []corev1.PreferredSchedulingTerm{
		term("example.com/team", "In", "no label, --v=9"), term("example.com/team", "Gt", "-5"), term("karpenter.sh/initialized", "NotIn", "true"),
	} {
		ctx := context.Background()
		w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g"}})
		if err != nil {
			t.Fatal(err)
		}
		class, web, _ := nodeClassAndDeployment(w)
		*web.Spec.Replicas = 3
		bad := web.DeepCopy()
		bad.Name, *bad.Spec.Replicas = "bad", 1
		bad.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{hostile},
		}}
		bad.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bad"}}
		bad.Spec.Template.Labels = map[string]string{"app": "bad"}
		pool := strictNodePool()
		pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements,
			karpenter.NodeSelectorRequirementWithMinValues{Key: "example.com/team", Operator: corev1.NodeSelectorOpExists})
		if err := w.Apply(ctx, class, pool, bad, web); err != nil {
			t.Fatal(err)
		}
		if all, err := w.Run(ctx, 3*time.Minute, func() bool { return countRunning(t, w, "web") == 3 && countRunning(t, w, "bad") == 1 }); err != nil || !all {
			t.Errorf("%v: after 3 min %d of 3 pods run, and the hostile one: %d (%v)", hostile.Preference, countRunning(t, w, "web"), countRunning(t, w, "bad"), err)
		}
	}
}

// countRunning returns the number of running pods of an app.
func countRunning(t *testing.T, w *embedded.EmbeddedCluster, app string) int {
	t.Helper()
	pods, err := cluster.List[*corev1.Pod](context.Background(), w.Kube, cluster.Pods)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range pods {
		if p.Labels["app"] == app && p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

// The API server rejects some NodeClaims as invalid: the others are launched. Once it accepts all, all pods run.
func TestRejectedNodeClaimsBlockNoOthers(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g"}})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	var more []*appsv1.Deployment
	for _, zone := range []string{"us-west-2a", "us-west-2b", "us-west-2c"} {
		one := web.DeepCopy()
		one.Name, *one.Spec.Replicas = "web-"+zone, 1
		one.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
		more = append(more, one)
	}
	w.Kube.InjectFaults(memcluster.Fault{As: fault.Invalid, Verb: memcluster.VerbCreate, Kind: cluster.NodeClaims, Times: 1})
	if err := w.Apply(ctx, class, strictNodePool(), more[0], more[1], more[2]); err != nil {
		t.Fatal(err)
	}
	if most, err := w.Run(ctx, 75*time.Second, func() bool { return countRunning(t, w, "web") == 2 }); err != nil || !most {
		t.Errorf("after 75 s %d of the 2 pods run whose NodeClaims were accepted (%v)", countRunning(t, w, "web"), err)
	}
	if all, err := w.Run(ctx, 3*time.Minute, func() bool { return countRunning(t, w, "web") == 3 }); err != nil || !all {
		t.Errorf("%d of 3 pods run (%v)", countRunning(t, w, "web"), err)
	}
}
