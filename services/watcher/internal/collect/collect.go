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
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Inputs is what a snapshot holds beside what the cache shows.
type Inputs struct {
	Cluster     event.Cluster
	Catalogue   event.Ref
	Settings    planning.Settings
	Unavailable []planning.Unavailable
	Now         time.Time
}

// View is a snapshot, the pods that wait, and those that wait for somebody else.
type View struct {
	Snapshot planning.Snapshot
	Pending  []planning.PodClass
	Ignored  []planning.Ignored
	// Unplanned are the NodeClaims that a person created and that wait to be launched.
	Unplanned []karpenter.NodeClaim
	// Expires is when the view is out of date though nothing changes, because a pod's
	// protection ends or its node's deadline comes near; zero when it never is.
	Expires time.Time
}

// PendingKeys names everything that waits for a node: provisionable pods, pods
// that do not exist but have a buffer, places in static pools, and
// NodeClaims that a person created.
// A pod on a node that goes away is another key than the same pod waiting, so
// that its eviction is news.
func (v View) PendingKeys() []string {
	keys := PodKeys(v.Pending)
	for _, short := range planning.Shortfalls(v.Snapshot) {
		for i := range short.Count {
			keys = append(keys, fmt.Sprintf("static/%s/%d", short.NodePool, i))
		}
	}
	for i := range v.Unplanned {
		keys = append(keys, fmt.Sprintf("nodeclaim/%s", v.Unplanned[i].UID))
	}
	return keys
}

// PodKeys names the pods of the classes.
func PodKeys(classes []planning.PodClass) []string {
	var keys []string
	for _, class := range classes {
		for _, pod := range class.Pods {
			keys = append(keys, pod.UID+"@"+pod.Node)
		}
	}
	return keys
}

// IsLeaving reports whether a key is that of a pod whose node goes away.
func IsLeaving(key string) bool {
	_, node, _ := strings.Cut(key, "@")
	return node != ""
}

// SupplyKey says in one line what decides, beside pods and nodes, whether a pod can
// be placed at all. When it changes, pods that found no place may find one now.
func (v View) SupplyKey() string {
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

// collector is one gathering under way.
type collector struct {
	cache cluster.Cache
	pods  []*corev1.Pod
	// labelKeys are the keys by which some pod selects pods, and spaces those by which
	// it selects namespaces.
	labelKeys, namespaceKeys podspec.Named
	mounts                   podspec.Mounts
	storage                  *podspec.Storage
	// leaving holds the nodes that are going away, with their deadlines or zero.
	leaving map[string]time.Time
	// budgets are read when they are first asked for.
	budgets *podspec.Budgets
	now     time.Time
	// expires is the next moment at which time alone makes a pod wait.
	expires time.Time
}

// CollectAll collects the view. It looks at everything, and so it is what a State is
// measured by.
func CollectAll(cache cluster.Cache, given Inputs) View {
	c := collector{
		cache: cache, pods: cluster.Cached[*corev1.Pod](cache, cluster.Pods),
		labelKeys: podspec.Named{}, namespaceKeys: podspec.Named{}, leaving: map[string]time.Time{}, now: given.Now,
	}
	c.storage = newStorage(cache)
	c.mounts = podspec.NewMounts(c.pods, c.storage)
	for _, pod := range c.pods {
		c.labelKeys.Add(pod)
		c.namespaceKeys.AddNamespaces(pod)
	}
	bound := c.podsByNode()
	nodes := joinNodes(cluster.Cached[*corev1.Node](cache, cluster.Nodes), cluster.Cached[*karpenter.NodeClaim](cache, cluster.NodeClaims),
		func(node *corev1.Node, claim *karpenter.NodeClaim) planning.Node {
			return c.describeNode(node, claim, bound[node.Name])
		})
	inhabited := namespaceCounts{}
	for i := range nodes {
		inhabited.addNode(&nodes[i], 1)
	}
	return c.buildView(given, nodes, c.describeDaemonSets(newestByDaemonSet(c.pods)), inhabited)
}

// buildView puts together what was collected of nodes and daemons with all the rest.
func (c *collector) buildView(given Inputs, nodes []planning.Node, daemons []planning.PodSpec, inhabited namespaceCounts) View {
	s := planning.Snapshot{Nodes: c.reserveReplacements(nodes), DaemonSets: daemons}
	given.stampSnapshot(&s)
	for _, pool := range cluster.Cached[*karpenter.NodePool](c.cache, cluster.NodePools) {
		s.NodePools = append(s.NodePools, *stripMetadata(pool.DeepCopy()))
	}
	for _, class := range cluster.Cached[*karpenter.EC2NodeClass](c.cache, cluster.NodeClasses) {
		s.NodeClasses = append(s.NodeClasses, *stripMetadata(class.DeepCopy()))
	}
	c.addGatedKinds(&s)
	pending, ignored := c.pendingPods()
	pending = append(pending, planning.BufferPods(s.Buffers)...)
	s.Namespaces = c.describeNamespaces(inhabited, pending)
	return View{Snapshot: s, Pending: pending, Ignored: ignored, Unplanned: c.unplannedClaims(), Expires: c.expires}
}

// maxUnplanned is how many NodeClaims that a person created one batch launches; the others
// wait for the next.
const maxUnplanned = 50

// unplannedClaims are the NodeClaims that a person created and that wait to be launched, the
// oldest first.
func (c *collector) unplannedClaims() []karpenter.NodeClaim {
	var out []karpenter.NodeClaim
	for _, claim := range cluster.Cached[*karpenter.NodeClaim](c.cache, cluster.NodeClaims) {
		if launchspec.WaitsUnplanned(claim) {
			out = append(out, *stripMetadata(claim.DeepCopy()))
		}
	}
	slices.SortFunc(out, func(a, b karpenter.NodeClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxUnplanned)]
}

// stampSnapshot writes into a snapshot what the cache does not show.
func (g Inputs) stampSnapshot(s *planning.Snapshot) {
	s.Taken, s.Cluster, s.UID, s.Catalogue = g.Now, g.Cluster.Name, g.Cluster.UID, g.Catalogue
	s.Settings, s.Unavailable = g.Settings, g.Unavailable
}

// addGatedKinds adds the kinds that are behind gates.
func (c *collector) addGatedKinds(s *planning.Snapshot) {
	if s.Settings.Gates.NodeOverlay {
		for _, overlay := range cluster.Cached[*karpenter.NodeOverlay](c.cache, cluster.NodeOverlays) {
			s.NodeOverlays = append(s.NodeOverlays, *stripMetadata(overlay.DeepCopy()))
		}
	}
	if s.Settings.Gates.CapacityBuffer {
		for _, buffer := range cluster.Cached[*karpenter.CapacityBuffer](c.cache, cluster.CapacityBuffers) {
			s.Buffers = append(s.Buffers, podspec.Buffer(buffer, c.cache.Get))
		}
	}
}

// namespaceCounts are how many classes of pods on nodes each namespace has.
type namespaceCounts map[string]int

// addNode adds those of a node, so many times.
func (in namespaceCounts) addNode(node *planning.Node, times int) {
	for _, list := range [2][]planning.PodClass{node.Pods, node.DaemonPods} {
		for i := range list {
			name := list[i].Spec.Namespace
			if in[name] += times; in[name] == 0 {
				delete(in, name)
			}
		}
	}
}

// describeNamespaces describes the namespaces of all pods that are in the view.
func (c *collector) describeNamespaces(inhabited namespaceCounts, pending []planning.PodClass) map[string]map[string]string {
	waits := map[string]bool{}
	for i := range pending {
		waits[pending[i].Spec.Namespace] = true
	}
	return podspec.NamespacesIn(cluster.Cached[*corev1.Namespace](c.cache, cluster.Namespaces), c.namespaceKeys,
		func(name string) bool { return inhabited[name] > 0 || waits[name] })
}

// stripMetadata drops what no decision reads and what would make equal states differ.
func stripMetadata[T cluster.Object](o T) T {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o
}
