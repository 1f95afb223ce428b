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

// replicas is how far the Deployment inflates.
const replicas = 5

// play is the story, chapter by chapter. Each waits for the world to come to
// agree, and says so when it does not.
func (w *watch) play(ctx context.Context) error {
	w.title("A cluster without nodes: a NodePool and an EC2NodeClass are applied, and the catalog resolves them")
	if err := w.wait(ctx, 5*time.Minute, "the EC2NodeClass to be ready", w.classReady); err != nil {
		return err
	}
	w.title(fmt.Sprintf("kubectl scale deployment inflate --replicas %d", replicas))
	w.scale(replicas)
	if err := w.wait(ctx, 10*time.Minute, "the pods to run", func() bool { return w.running() == replicas }); err != nil {
		return err
	}
	w.nodes()
	w.trail()
	if err := w.interrupt(ctx); err != nil {
		return err
	}
	w.title("kubectl scale deployment inflate --replicas 0")
	w.scale(0)
	if err := w.wait(ctx, 40*time.Minute, "the nodes to be removed", w.empty); err != nil {
		return err
	}
	w.summary()
	return nil
}

// interrupt lets AWS take the first node back, and waits for another.
func (w *watch) interrupt(ctx context.Context) error {
	victim, ok := w.spot()
	if !ok {
		return nil
	}
	w.title(fmt.Sprintf("AWS reclaims %s (%s): EC2 Spot Instance Interruption Warning, 120 s", victim.ID, victim.Type))
	w.world.Cloud.InterruptSpot(victim.ID)
	w.warned = w.world.Now()
	gone := func() bool {
		r, known := w.world.Cloud.Record(victim.ID)
		return known && !r.Gone.IsZero() && w.running() == replicas && !w.hasNode(victim.PrivateDNS)
	}
	if err := w.wait(ctx, 15*time.Minute, "the node to be replaced", gone); err != nil {
		return err
	}
	w.warning(victim)
	w.nodes()
	return nil
}

func (w *watch) spot() (memcloud.Record, bool) {
	for _, r := range w.world.Cloud.Records() {
		if r.Ended.IsZero() && r.CapacityType == "spot" {
			return r, true
		}
	}
	return memcloud.Record{}, false
}

// wait lets time pass until the condition holds.
func (w *watch) wait(ctx context.Context, limit time.Duration, what string, done func() bool) error {
	held, err := w.world.Run(ctx, limit, func() bool {
		// Only what changes can make a condition true.
		return w.look() && done()
	})
	if err != nil {
		return err
	}
	if !held {
		return fmt.Errorf("timed out after %s of simulated time waiting for %s; run joist demo -v for details", limit, what)
	}
	return nil
}

func (w *watch) scale(n int32) {
	w.world.Kube.Change(cluster.Deployments, cluster.Key{Namespace: "default", Name: "inflate"}, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = &n
	})
}

func (w *watch) classReady() bool {
	for _, class := range all[*karpenter.EC2NodeClass](w.world, cluster.NodeClasses) {
		if class.Status.Conditions.True(karpenter.ConditionTypeReady) {
			return true
		}
	}
	return false
}

func (w *watch) running() int {
	n := 0
	for _, pod := range all[*corev1.Pod](w.world, cluster.Pods) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (w *watch) hasNode(name string) bool {
	for _, node := range all[*corev1.Node](w.world, cluster.Nodes) {
		if node.Name == name {
			return true
		}
	}
	return false
}

func (w *watch) empty() bool {
	for _, r := range w.world.Cloud.Records() {
		if r.Gone.IsZero() {
			return false
		}
	}
	return len(all[*corev1.Node](w.world, cluster.Nodes)) == 0 && len(all[*karpenter.NodeClaim](w.world, cluster.NodeClaims)) == 0
}

// all lists a kind as the world's own hand, which no fault touches.
func all[T cluster.Object](world *embedded.World, kind cluster.Kind) []T {
	objects, err := world.Kube.World("demo").List(context.Background(), kind, "")
	if err != nil {
		return nil
	}
	return cluster.Cast[T](objects)
}
