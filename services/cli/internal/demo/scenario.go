package demo

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// replicas is the number of replicas to which the Deployment is scaled.
const replicas = 5

// runScenario runs the steps of the demo. Each step waits for its result and fails if that
// does not occur in time.
func (w *runner) runScenario(ctx context.Context) error {
	w.printTitle("A cluster without nodes: a NodePool and an EC2NodeClass are applied, and the catalog resolves them")
	if err := w.waitUntil(ctx, 5*time.Minute, "the EC2NodeClass to be ready", w.isClassReady); err != nil {
		return err
	}
	w.printTitle(fmt.Sprintf("kubectl scale deployment inflate --replicas %d", replicas))
	w.scaleDeployment(replicas)
	if err := w.waitUntil(ctx, 10*time.Minute, "the pods to run", func() bool { return w.countRunning() == replicas }); err != nil {
		return err
	}
	w.printNodes()
	w.printTrace()
	if err := w.interruptSpotNode(ctx); err != nil {
		return err
	}
	w.printTitle("kubectl scale deployment inflate --replicas 0")
	w.scaleDeployment(0)
	if err := w.waitUntil(ctx, 40*time.Minute, "the nodes to be removed", w.isEmpty); err != nil {
		return err
	}
	w.printSummary()
	return nil
}

// interruptSpotNode interrupts the first spot node, and waits for its replacement.
func (w *runner) interruptSpotNode(ctx context.Context) error {
	victim, ok := w.findSpotInstance()
	if !ok {
		return nil
	}
	w.printTitle(fmt.Sprintf("AWS reclaims %s (%s): EC2 Spot Instance Interruption Warning, 120 s", victim.ID, victim.Type))
	w.env.Cloud.InterruptSpot(victim.ID)
	w.warnedAt = w.env.Now()
	gone := func() bool {
		r, known := w.env.Cloud.Record(victim.ID)
		return known && !r.Gone.IsZero() && w.countRunning() == replicas && !w.hasNode(victim.PrivateDNS)
	}
	if err := w.waitUntil(ctx, 15*time.Minute, "the node to be replaced", gone); err != nil {
		return err
	}
	w.printWarning(victim)
	w.printNodes()
	return nil
}

func (w *runner) findSpotInstance() (memcloud.Record, bool) {
	for _, r := range w.env.Cloud.Records() {
		if r.Ended.IsZero() && r.CapacityType == "spot" {
			return r, true
		}
	}
	return memcloud.Record{}, false
}

// waitUntil runs the simulation until the condition is true.
func (w *runner) waitUntil(ctx context.Context, limit time.Duration, what string, done func() bool) error {
	isDone, err := w.env.Run(ctx, limit, func() bool {
		// The condition can only become true after a change.
		return w.printChanges() && done()
	})
	if err != nil {
		return err
	}
	if !isDone {
		return fmt.Errorf("timed out after %s of simulated time waiting for %s; run joist demo -v for details", limit, what)
	}
	return nil
}

func (w *runner) scaleDeployment(n int32) {
	w.env.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: "inflate"}, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = &n
	})
}

func (w *runner) isClassReady() bool {
	for _, class := range listObjects[*karpenter.EC2NodeClass](w.env, cluster.NodeClasses) {
		if class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
			return true
		}
	}
	return false
}

func (w *runner) countRunning() int {
	n := 0
	for _, pod := range listObjects[*corev1.Pod](w.env, cluster.Pods) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (w *runner) hasNode(name string) bool {
	for _, node := range listObjects[*corev1.Node](w.env, cluster.Nodes) {
		if node.Name == name {
			return true
		}
	}
	return false
}

func (w *runner) isEmpty() bool {
	for _, r := range w.env.Cloud.Records() {
		if r.Gone.IsZero() {
			return false
		}
	}
	return len(listObjects[*corev1.Node](w.env, cluster.Nodes)) == 0 && len(listObjects[*karpenter.NodeClaim](w.env, cluster.NodeClaims)) == 0
}

// listObjects lists the objects of a kind, without simulated faults.
func listObjects[T cluster.Object](env *embedded.EmbeddedCluster, kind cluster.Kind) []T {
	objects, err := env.Kube.AsKubernetes("demo").List(context.Background(), kind, "")
	if err != nil {
		return nil
	}
	return cluster.CastAll[T](objects)
}
