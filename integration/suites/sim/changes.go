package sim

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ClusterChange is what users, controllers or AWS do while a service pauses.
type ClusterChange struct {
	Name string
	// begin makes the change, and end takes it back after changeDuration. Either may be nil.
	begin, end func(*chaos)
}

// changeDuration is long enough for both replicas to act on a change.
const changeDuration = 4 * time.Minute

// guestWorkload is the Deployment whose pods must not be disrupted. They fit on any node that has a free place.
const guestWorkload = "guest"

// ClusterChanges are all changes.
var ClusterChanges = []ClusterChange{
	{Name: "nothing changes"},
	{Name: "protected pods come", begin: func(c *chaos) { c.scaleBy(guestWorkload, 2) }, end: func(c *chaos) { c.scaleBy(guestWorkload, -2) }},
	{Name: "pods come", begin: func(c *chaos) { c.scaleBy("web", 3) }, end: func(c *chaos) { c.scaleBy("web", -3) }},
	{Name: "pods are protected", begin: func(c *chaos) { c.protect(cluster.Pods, "true") }, end: func(c *chaos) { c.protect(cluster.Pods, "") }},
	{Name: "nodes are protected", begin: func(c *chaos) { c.protect(cluster.Nodes, "true") }, end: func(c *chaos) { c.protect(cluster.Nodes, "") }},
	{Name: "budgets are closed", begin: func(c *chaos) { c.setBudgets("0") }, end: func(c *chaos) { c.setBudgets("100%") }},
	{Name: "NodeClaims are deleted", begin: func(c *chaos) { c.deleteAll(cluster.NodeClaims) }},
	{Name: "nodes are deleted", begin: func(c *chaos) { c.deleteAll(cluster.Nodes) }},
	{Name: "an instance is interrupted", begin: (*chaos).interruptInstance},
	{Name: "an instance fails", begin: (*chaos).failInstance},
}

// makeChange begins the change, and schedules its end.
func (c *chaos) makeChange(change ClusterChange) {
	if change.begin != nil {
		c.hasChanged = true
		change.begin(c)
	}
	if change.end != nil {
		c.scheduleEnd(changeDuration, func() { change.end(c) })
	}
}

func (c *chaos) scaleBy(deployment string, pods int32) {
	c.world.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: deployment}, func(o cluster.Object) {
		spec := &o.(*appsv1.Deployment).Spec
		spec.Replicas = new(*spec.Replicas + pods)
	})
}

// protect annotates all objects of a kind.
func (c *chaos) protect(kind cluster.Kind, value string) {
	for _, o := range c.listObjects(kind) {
		c.world.Kube.ChangeObject(kind, cluster.KeyOf(o), func(o cluster.Object) {
			annotations := map[string]string{karpenter.DoNotDisruptAnnotationKey: value}
			for key, other := range o.GetAnnotations() {
				if key != karpenter.DoNotDisruptAnnotationKey {
					annotations[key] = other
				}
			}
			o.SetAnnotations(annotations)
		})
	}
}

func (c *chaos) setBudgets(nodes string) {
	c.world.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: nodes}}
	})
}

// deleteAll deletes all objects of a kind as a user with kubectl does.
func (c *chaos) deleteAll(kind cluster.Kind) {
	for _, o := range c.listObjects(kind) {
		_ = c.world.Kube.AsKubernetes("person").Delete(context.Background(), kind, cluster.KeyOf(o), o.GetUID())
	}
}
