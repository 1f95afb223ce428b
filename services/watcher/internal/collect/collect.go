// Package collect turns what the cache shows into the documents that decisions
// are made from. It reads the cache and nothing else, so it is as pure as the
// cache is still.
//
// The invariant: every input of a decision is in the view. Nothing is left out
// because it seems not to matter; only pods' private fields never enter.
package collect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// Given is what a snapshot holds beside what the cache shows.
type Given struct {
	Cluster     event.Cluster
	Catalogue   event.Ref
	Settings    scheduling.Settings
	Unavailable []scheduling.Unavailable
	Now         time.Time
}

// View is a snapshot, the pods that wait, and those that wait for somebody else.
type View struct {
	Snapshot scheduling.Snapshot
	Pending  []scheduling.PodClass
	Ignored  []scheduling.Ignored
	// Unplanned are the NodeClaims that a person created and that wait to be launched.
	Unplanned []karpenter.NodeClaim
	// Until is when the view is out of date though nothing changes, because a pod's
	// protection ends or its node's deadline comes near; zero when it never is.
	Until time.Time
}

// PendingKeys names everything that waits for a node: provisionable pods, pods
// that do not exist but have a buffer, places in static pools, and
// NodeClaims that a person created.
// A pod on a node that goes away is another key than the same pod waiting, so
// that its eviction is news.
func (v View) PendingKeys() []string {
	keys := Keys(v.Pending)
	for _, short := range scheduling.Shortfalls(v.Snapshot) {
		for i := range short.Count {
			keys = append(keys, fmt.Sprintf("static/%s/%d", short.NodePool, i))
		}
	}
	for i := range v.Unplanned {
		keys = append(keys, fmt.Sprintf("nodeclaim/%s", v.Unplanned[i].UID))
	}
	return keys
}

// Keys names the pods of the classes.
func Keys(classes []scheduling.PodClass) []string {
	var keys []string
	for _, class := range classes {
		for _, pod := range class.Pods {
			keys = append(keys, pod.UID+"@"+pod.Node)
		}
	}
	return keys
}

// Leaving reports whether a key is that of a pod whose node goes away.
func Leaving(key string) bool {
	_, node, _ := strings.Cut(key, "@")
	return node != ""
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
	for _, overlay := range v.Snapshot.NodeOverlays {
		fmt.Fprintf(&b, " %s %d", overlay.UID, overlay.Generation)
	}
	for _, u := range v.Snapshot.Unavailable {
		fmt.Fprintf(&b, " %v %s", u.Offering, u.Subnet)
	}
	for _, class := range v.Pending {
		for _, volume := range class.Spec.Volumes {
			fmt.Fprintf(&b, " %s", volume.Problem)
		}
	}
	return b.String()
}

// collection is one gathering under way.
type collection struct {
	cache cluster.Cache
	pods  []*corev1.Pod
	// named are the keys by which some pod selects pods, and spaces those by which
	// it selects namespaces.
	named, spaces podspec.Named
	mounts        podspec.Mounts
	storage       *podspec.Storage
	// going holds the nodes that are going away, with their deadlines or zero.
	going map[string]time.Time
	// budgets are read when they are first asked for.
	budgets *podspec.Budgets
	now     time.Time
	// until is the next moment at which time alone makes a pod wait.
	until time.Time
}

// From collects the view. It looks at everything, and so it is what a State is
// measured by.
func From(cache cluster.Cache, given Given) View {
	c := collection{
		cache: cache, pods: cluster.Cached[*corev1.Pod](cache, cluster.Pods),
		named: podspec.Named{}, spaces: podspec.Named{}, going: map[string]time.Time{}, now: given.Now,
	}
	c.storage = storageOf(cache)
	c.mounts = podspec.NewMounts(c.pods, c.storage)
	for _, pod := range c.pods {
		c.named.Add(pod)
		c.spaces.AddNamespaces(pod)
	}
	bound := c.byNode()
	nodes := join(cluster.Cached[*corev1.Node](cache, cluster.Nodes), cluster.Cached[*karpenter.NodeClaim](cache, cluster.NodeClaims),
		func(node *corev1.Node, claim *karpenter.NodeClaim) scheduling.Node {
			return c.node(node, claim, bound[node.Name])
		})
	inhabited := inhabitants{}
	for i := range nodes {
		inhabited.count(&nodes[i], 1)
	}
	return c.view(given, nodes, c.daemons(newest(c.pods)), inhabited)
}

// view puts together what was collected of nodes and daemons with all the rest.
func (c *collection) view(given Given, nodes []scheduling.Node, daemons []scheduling.PodSpec, inhabited inhabitants) View {
	s := scheduling.Snapshot{Nodes: c.held(nodes), DaemonSets: daemons}
	given.stamp(&s)
	for _, pool := range cluster.Cached[*karpenter.NodePool](c.cache, cluster.NodePools) {
		s.NodePools = append(s.NodePools, *tidy(pool.DeepCopy()))
	}
	for _, class := range cluster.Cached[*karpenter.EC2NodeClass](c.cache, cluster.NodeClasses) {
		s.NodeClasses = append(s.NodeClasses, *tidy(class.DeepCopy()))
	}
	c.alpha(&s)
	pending, ignored := c.waiting()
	pending = append(pending, scheduling.BufferPods(s.Buffers)...)
	s.Namespaces = c.namespaces(inhabited, pending)
	return View{Snapshot: s, Pending: pending, Ignored: ignored, Unplanned: c.unplanned(), Until: c.until}
}

// unplannedMax is how many NodeClaims that a person created one batch launches; the others
// wait for the next.
const unplannedMax = 50

// unplanned are the NodeClaims that a person created and that wait to be launched, the
// oldest first.
func (c *collection) unplanned() []karpenter.NodeClaim {
	var out []karpenter.NodeClaim
	for _, claim := range cluster.Cached[*karpenter.NodeClaim](c.cache, cluster.NodeClaims) {
		if launchspec.WaitsUnplanned(claim) {
			out = append(out, *tidy(claim.DeepCopy()))
		}
	}
	slices.SortFunc(out, func(a, b karpenter.NodeClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), unplannedMax)]
}

// stamp writes into a snapshot what the cache does not show.
func (g Given) stamp(s *scheduling.Snapshot) {
	s.Taken, s.Cluster, s.UID, s.Catalogue = g.Now, g.Cluster.Name, g.Cluster.UID, g.Catalogue
	s.Settings, s.Unavailable = g.Settings, g.Unavailable
}

// alpha adds the kinds that are behind gates.
func (c *collection) alpha(s *scheduling.Snapshot) {
	if s.Settings.Gates.NodeOverlay {
		for _, overlay := range cluster.Cached[*karpenter.NodeOverlay](c.cache, cluster.NodeOverlays) {
			s.NodeOverlays = append(s.NodeOverlays, *tidy(overlay.DeepCopy()))
		}
	}
	if s.Settings.Gates.CapacityBuffer {
		for _, buffer := range cluster.Cached[*karpenter.CapacityBuffer](c.cache, cluster.CapacityBuffers) {
			s.Buffers = append(s.Buffers, podspec.Buffer(buffer, c.cache.Get))
		}
	}
}

// inhabitants are how many classes of pods on nodes each namespace has.
type inhabitants map[string]int

// count adds those of a node, so many times.
func (in inhabitants) count(node *scheduling.Node, times int) {
	for _, list := range [2][]scheduling.PodClass{node.Pods, node.DaemonPods} {
		for i := range list {
			name := list[i].Spec.Namespace
			if in[name] += times; in[name] == 0 {
				delete(in, name)
			}
		}
	}
}

// namespaces describes the namespaces of all pods that are in the view.
func (c *collection) namespaces(inhabited inhabitants, pending []scheduling.PodClass) map[string]map[string]string {
	waits := map[string]bool{}
	for i := range pending {
		waits[pending[i].Spec.Namespace] = true
	}
	return podspec.NamespacesIn(cluster.Cached[*corev1.Namespace](c.cache, cluster.Namespaces), c.spaces,
		func(name string) bool { return inhabited[name] > 0 || waits[name] })
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
