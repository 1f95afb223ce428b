package sim_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// unevictableDeployment returns a Deployment of one pod that fills a node and must not be disrupted.
func unevictableDeployment() *appsv1.Deployment {
	one, labels := int32(1), map[string]string{"app": "rigid"}
	out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rigid"}}
	out.Spec.Replicas, out.Spec.Selector, out.Spec.Template.Labels = &one, &metav1.LabelSelector{MatchLabels: labels}, labels
	out.Spec.Template.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	out.Spec.Template.Spec.Containers = []corev1.Container{{Name: "pause", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")},
	}}}
	return out
}

// Nodes of one age are replaced before they expire, within the budget and after their replacements are
// initialized. A node whose pod must not be disrupted is deleted when it expires, not before.
func TestNodesAreReplacedBeforeTheyExpireThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "m6g", "c7g", "r6i"}})
	if err != nil {
		t.Fatal(err)
	}
	const life = 25 * time.Minute
	class, web, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Annotations = map[string]string{policy.Expiration: "graceful", policy.ExpirationWindow: "20m"}
	pool.Spec.Template.Spec.ExpireAfter = karpenter.DurationOf(life)
	pool.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 2 * time.Minute}
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "1"}}
	if err := w.Apply(ctx, class, pool, web, unevictableDeployment()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(ctx, 5*time.Minute, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	first, err := cluster.List[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims)
	if err != nil || len(first) < 3 {
		t.Fatalf("%d nodes came: %v", len(first), err)
	}
	if _, err := w.Run(ctx, life, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	ended := deletionMethods(t, w, life)
	forced := 0
	for _, c := range first {
		method, gone := ended[c.Name]
		if !gone {
			t.Errorf("%s is there still", c.Name)
		}
		if method == "" {
			forced++
		}
	}
	if forced != 1 {
		t.Errorf("%d of %d nodes ended by force, and one alone has a pod that may not be moved", forced, len(first))
	}
}

// deletionMethods reads the log of writes and returns the disruption method of each deleted node. It requires that
// one node is disrupted at a time, that no node is forced before it expires, and that replacements come first.
func deletionMethods(t *testing.T, w *embedded.EmbeddedCluster, life time.Duration) map[string]string {
	t.Helper()
	claims, ended := map[string]*karpenter.NodeClaim{}, map[string]string{}
	for _, e := range w.Kube.Effects() {
		if e.Kind != cluster.NodeClaims {
			continue
		}
		if delete(claims, e.Key.Name); e.After == nil {
			continue
		}
		claim := e.After.(*karpenter.NodeClaim)
		claims[claim.Name] = claim
		acting := 0
		for _, c := range claims {
			if p := planning.ReadProposal(c); p != nil && !p.ConfirmedAt.IsZero() && !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) {
				acting++
			}
		}
		if acting > 1 {
			t.Fatalf("%s: %d nodes are going at a time", e.At, acting)
		}
		if _, known := ended[claim.Name]; known || claim.DeletionTimestamp == nil {
			continue
		}
		end, p := claim.CreationTimestamp.Add(life), planning.ReadProposal(claim)
		if p == nil || p.ConfirmedAt.IsZero() {
			if ended[claim.Name] = ""; e.At.Before(end) {
				t.Errorf("%s: %s ends by force %s before its end", e.At, claim.Name, end.Sub(e.At))
			}
			continue
		}
		ended[claim.Name] = p.Method
		if p.Method != "Expiration" || !e.At.Before(end) {
			t.Errorf("%s: %s went by %s, its end is %s", e.At, claim.Name, p.Method, end)
		}
		for _, name := range p.Replacements {
			if c := claims[name]; c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
				t.Errorf("%s: %s went before %s was there", e.At, claim.Name, name)
			}
		}
	}
	return ended
}
