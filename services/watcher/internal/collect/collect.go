// Package collect turns what the cache shows into the documents that decisions
// are made from. It reads the cache and nothing else, so it is as pure as the
// cache is still.
//
// The invariant: every input of a decision is in the view. Nothing is left out
// because it seems not to matter; only pods' private fields never enter.
package collect

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Given is what a snapshot holds beside what the cache shows.
type Given struct {
	Cluster     event.Cluster
	Catalogue   event.Ref
	Settings    scheduling.Settings
	Unavailable []scheduling.Unavailable
	Now         time.Time
}

// View is a snapshot and the pods that wait.
type View struct {
	Snapshot scheduling.Snapshot
	Pending  []scheduling.PodClass
}

// PendingKeys names every provisionable pod. A pod on a node that goes away is
// another key than the same pod waiting, so that its eviction is news.
func (v View) PendingKeys() []string {
	var keys []string
	for _, class := range v.Pending {
		for _, pod := range class.Pods {
			keys = append(keys, pod.UID+"@"+pod.Node)
		}
	}
	return keys
}

// Offer says in one line what decides, beside pods and nodes, whether a pod can
// be placed at all. When it changes, pods that found no place may find one now.
func (v View) Offer() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", v.Snapshot.Catalogue.Digest)
	for _, pool := range v.Snapshot.NodePools {
		fmt.Fprintf(&b, " %s %d %v", pool.UID, pool.Generation, pool.Status.Conditions.True(karpenter.ConditionTypeReady))
	}
	for _, class := range v.Snapshot.NodeClasses {
		fmt.Fprintf(&b, " %s %d %v", class.UID, class.Generation, class.Status.Conditions.True(karpenter.ConditionTypeReady))
	}
	for _, u := range v.Snapshot.Unavailable {
		fmt.Fprintf(&b, " %v", u.Offering)
	}
	return b.String()
}

// From collects the view.
func From(cache cluster.Cache, given Given) View {
	c := collection{
		given: given,
		pods:  cluster.Cached[*corev1.Pod](cache, cluster.Pods),
		named: podspec.Named{},
	}
	for _, pod := range c.pods {
		c.named.Add(pod)
	}
	s := scheduling.Snapshot{
		Taken: given.Now, Cluster: given.Cluster.Name, UID: given.Cluster.UID, Catalogue: given.Catalogue,
		Settings: given.Settings, Unavailable: given.Unavailable,
		Nodes: c.nodes(cache), DaemonSets: daemons(cache),
	}
	for _, pool := range cluster.Cached[*karpenter.NodePool](cache, cluster.NodePools) {
		s.NodePools = append(s.NodePools, *tidy(pool.DeepCopy()))
	}
	for _, class := range cluster.Cached[*karpenter.EC2NodeClass](cache, cluster.NodeClasses) {
		s.NodeClasses = append(s.NodeClasses, *tidy(class.DeepCopy()))
	}
	return View{Snapshot: s, Pending: c.pending()}
}

// tidy drops what no decision reads and what would make equal states differ.
func tidy[T cluster.Object](o T) T {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o
}

// collection is one gathering under way.
type collection struct {
	given Given
	pods  []*corev1.Pod
	named podspec.Named
	// going holds the nodes that are going away, with their deadlines or zero.
	going map[string]time.Time
}

// pending groups the pods that wait for a node, and those that soon will
// because their node goes away (B083, and at once rather than when they are
// Pending).
func (c *collection) pending() []scheduling.PodClass {
	var classes podspec.Classes
	for _, pod := range c.pods {
		waits := podspec.Provisionable(pod).Provisionable
		if waits || c.soon(pod) {
			c.add(&classes, pod)
		}
	}
	return classes.List()
}

// soon reports whether the pod will leave a node that goes. One that must not be
// disrupted stays until the node's deadline (B083): a place for it would be
// empty for as long, be removed, and be planned again.
func (c *collection) soon(pod *corev1.Pod) bool {
	deadline, going := c.going[pod.Spec.NodeName]
	if pod.Spec.NodeName == "" || !going || !podspec.Reschedulable(pod) {
		return false
	}
	return pod.Annotations[karpenter.DoNotDisruptAnnotationKey] != "true" || !deadline.IsZero()
}

func (c *collection) add(classes *podspec.Classes, pod *corev1.Pod) {
	// A spec that cannot be written as JSON cannot have been read as JSON.
	_ = classes.Add(podspec.Convert(pod, c.named, nil), podspec.Ref(pod))
}
