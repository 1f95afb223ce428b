// Package collect builds the documents that decisions are made from: the inputs of batches and
// snapshots. It reads the cache only.
//
// The invariant: a view contains every input of a decision. Only private fields of pods are left
// out.
package collect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Inputs are the parts of a snapshot that do not come from the cache.
type Inputs struct {
	Cluster     event.Cluster
	Catalogue   event.Ref
	Settings    planning.Settings
	Unavailable []planning.Unavailable
	Now         time.Time
}

// View is a snapshot, the pending pods, and the pending pods that Joist does not plan.
type View struct {
	Snapshot planning.Snapshot
	Pending  []planning.PodClass
	Ignored  []planning.IgnoredPods
	// Unplanned are the NodeClaims that a user created and that wait to be launched.
	Unplanned []karpenter.NodeClaim
	// Expires is when the view becomes outdated although no object changes, because a pod's
	// protection ends or its node's deadline is near; zero means never.
	Expires time.Time
}

// PendingKeys returns a key for everything that waits for a node: provisionable pods, placeholder
// pods of buffers, missing nodes of static NodePools, and NodeClaims that a user created. A pod on
// a node that is being removed has another key than the same pod when it is pending, so that its
// eviction counts as new.
func (v View) PendingKeys() []string {
	keys := PodKeys(v.Pending)
	for _, short := range planning.FindShortfalls(v.Snapshot) {
		for i := range short.Count {
			keys = append(keys, fmt.Sprintf("static/%s/%d", short.NodePool, i))
		}
	}
	for i := range v.Unplanned {
		keys = append(keys, fmt.Sprintf("nodeclaim/%s", v.Unplanned[i].UID))
	}
	return keys
}

// PodKeys returns the keys of the pods of the classes.
func PodKeys(classes []planning.PodClass) []string {
	var keys []string
	for _, class := range classes {
		for _, pod := range class.Pods {
			keys = append(keys, pod.UID+"@"+pod.Node)
		}
	}
	return keys
}

// IsLeaving reports whether a key belongs to a pod whose node is being removed.
func IsLeaving(key string) bool {
	_, node, _ := strings.Cut(key, "@")
	return node != ""
}

// SupplyKey returns one line that identifies all inputs, except pods and nodes, that determine
// whether a pod can be placed. When it changes, pods that could not be placed may find a node.
func (v View) SupplyKey() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", v.Snapshot.Catalogue.Digest)
	for _, pool := range v.Snapshot.NodePools {
		fmt.Fprintf(&b, " %s %d %v", pool.UID, pool.Generation, pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady))
	}
	for _, class := range v.Snapshot.NodeClasses {
		fmt.Fprintf(&b, " %s %d %v", class.UID, class.Generation, class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady))
	}
	for _, overlay := range v.Snapshot.NodeOverlays {
		fmt.Fprintf(&b, " %s %d", overlay.UID, overlay.Generation)
	}
	for i := range v.Snapshot.Buffers {
		// A buffer's pods keep their names when its pod template changes.
		buffer := &v.Snapshot.Buffers[i]
		text, _ := json.Marshal(buffer.Spec) // JSON can encode every PodSpec.
		fmt.Fprintf(&b, " %s %d %s", buffer.UID, buffer.PodCount(), event.DigestOf(text))
	}
	for _, u := range v.Snapshot.Unavailable {
		fmt.Fprintf(&b, " %v %s %s", u.Offering, u.Subnet, u.NodePool)
	}
	for _, class := range v.Pending {
		for _, volume := range class.Spec.Volumes {
			fmt.Fprintf(&b, " %s", volume.Problem)
		}
	}
	v.writeDeviceSupply(&b)
	return b.String()
}

// collector builds one view.
type collector struct {
	cache cluster.Cache
	pods  []*corev1.Pod
	// labelKeys are the label keys by which some pod, or the pod of a buffer, selects pods, and
	// namespaceKeys the keys by which it selects namespaces.
	labelKeys, namespaceKeys podspec.SelectorKeys
	mounts                   podspec.Mounts
	storage                  *podspec.Storage
	// claims looks up ResourceClaims; nil if devices are not planned.
	claims *podspec.Claims
	// leaving maps the nodes that are being removed to their deadlines, or to zero.
	leaving map[string]time.Time
	// budgets are loaded when they are first used.
	budgets *podspec.Budgets
	now     time.Time
	// expires is the next time at which a pod becomes pending although no object changes.
	expires time.Time
}

// CollectAll builds the view from all objects in the cache. Tests compare a State's views with it.
func CollectAll(cache cluster.Cache, given Inputs) View {
	c := collector{
		cache: cache, pods: cluster.ListCached[*corev1.Pod](cache, cluster.Pods),
		labelKeys: podspec.SelectorKeys{}, namespaceKeys: podspec.SelectorKeys{}, leaving: map[string]time.Time{}, now: given.Now,
	}
	c.storage, c.claims = newStorage(cache), given.lookUpClaims(cache)
	c.mounts = podspec.NewMounts(c.pods, c.storage)
	for _, pod := range c.pods {
		c.labelKeys.Add(pod)
		c.namespaceKeys.AddNamespaces(pod)
	}
	c.addBufferKeys(given, c.labelKeys, c.namespaceKeys)
	bound := c.podsByNode()
	nodes := joinNodes(cluster.ListCached[*corev1.Node](cache, cluster.Nodes), cluster.ListCached[*karpenter.NodeClaim](cache, cluster.NodeClaims),
		func(node *corev1.Node, claim *karpenter.NodeClaim) planning.Node {
			return c.describeNode(node, claim, bound[node.Name])
		})
	counts := namespaceCounts{}
	for i := range nodes {
		counts.addNode(&nodes[i], 1)
	}
	return c.buildView(given, nodes, c.describeDaemonSets(newestByDaemonSet(c.pods)), counts)
}

// buildView adds everything except nodes and DaemonSets to a view.
func (c *collector) buildView(given Inputs, nodes []planning.Node, daemons []planning.PodSpec, counts namespaceCounts) View {
	s := planning.Snapshot{Nodes: c.reserveReplacements(nodes), DaemonSets: daemons}
	s.PodsUseNodeSubnets = slices.ContainsFunc(cluster.ListCached[*appsv1.DaemonSet](c.cache, cluster.DaemonSets), podspec.UsesNodeSubnets)
	given.stampSnapshot(&s)
	for _, pool := range cluster.ListCached[*karpenter.NodePool](c.cache, cluster.NodePools) {
		if pool.IsManaged() {
			s.NodePools = append(s.NodePools, *stripMetadata(pool.DeepCopy()))
		}
	}
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](c.cache, cluster.NodeClasses) {
		s.NodeClasses = append(s.NodeClasses, *stripMetadata(class.DeepCopy()))
	}
	c.addGatedKinds(&s)
	if s.Settings.PlanDRARequests {
		s.Devices = podspec.DeviceState(c.cache.List)
	}
	pending, ignored := c.pendingPods()
	pending = append(pending, planning.NewBufferPods(s.Buffers)...)
	s.Namespaces = c.describeNamespaces(counts, pending)
	return View{Snapshot: s, Pending: pending, Ignored: ignored, Unplanned: c.unplannedClaims(), Expires: c.expires}
}

// maxUnplanned is how many user-created NodeClaims one batch launches. The others wait for the next
// batch.
const maxUnplanned = 50

// unplannedClaims returns the user-created NodeClaims that wait to be launched, the oldest first.
func (c *collector) unplannedClaims() []karpenter.NodeClaim {
	var out []karpenter.NodeClaim
	for _, claim := range cluster.ListCached[*karpenter.NodeClaim](c.cache, cluster.NodeClaims) {
		if launchspec.WaitsUnplanned(claim) {
			out = append(out, *stripMetadata(claim.DeepCopy()))
		}
	}
	slices.SortFunc(out, func(a, b karpenter.NodeClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxUnplanned)]
}

// stampSnapshot writes the inputs into a snapshot.
func (g Inputs) stampSnapshot(s *planning.Snapshot) {
	s.TakenAt, s.Cluster, s.UID, s.Catalogue = g.Now, g.Cluster.Name, g.Cluster.UID, g.Catalogue
	s.Settings, s.Unavailable = g.Settings, g.Unavailable
}

// addGatedKinds adds the kinds that are behind feature gates.
func (c *collector) addGatedKinds(s *planning.Snapshot) {
	if s.Settings.Gates.NodeOverlay {
		for _, overlay := range cluster.ListCached[*karpenter.NodeOverlay](c.cache, cluster.NodeOverlays) {
			s.NodeOverlays = append(s.NodeOverlays, *stripMetadata(overlay.DeepCopy()))
		}
	}
	if s.Settings.Gates.CapacityBuffer {
		for _, buffer := range cluster.ListCached[*karpenter.CapacityBuffer](c.cache, cluster.CapacityBuffers) {
			s.Buffers = append(s.Buffers, podspec.ConvertBuffer(buffer, c.labelKeys, c.cache.Get, c.addSpread()))
		}
	}
}

// addSpread returns the function that adds default spread constraints to a buffer's pod, or nil.
func (c *collector) addSpread() func(*corev1.Pod) *corev1.Pod {
	if feed, has := c.cache.(*defaultSpreadFeed); has {
		return feed.addConstraints
	}
	return nil
}

// addBufferKeys adds the keys by which the pods of buffers select pods and namespaces. Their
// workloads may have no pods of their own.
func (c *collector) addBufferKeys(given Inputs, labels, namespaces podspec.SelectorKeys) {
	if !given.Settings.Gates.CapacityBuffer {
		return
	}
	for _, buffer := range cluster.ListCached[*karpenter.CapacityBuffer](c.cache, cluster.CapacityBuffers) {
		if pod, _, problem := podspec.BufferPod(buffer, c.cache.Get, c.addSpread()); problem == "" {
			labels.Add(pod)
			namespaces.AddNamespaces(pod)
		}
	}
}

// namespaceCounts counts for each namespace the classes of pods on nodes.
type namespaceCounts map[string]int

// addNode adds the classes of a node, times 1 or -1.
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

// describeNamespaces returns the selected labels of the namespaces of all pods in the view.
func (c *collector) describeNamespaces(counts namespaceCounts, pending []planning.PodClass) map[string]map[string]string {
	isPending := map[string]bool{}
	for i := range pending {
		isPending[pending[i].Spec.Namespace] = true
	}
	return podspec.NamespacesIn(cluster.ListCached[*corev1.Namespace](c.cache, cluster.Namespaces), c.namespaceKeys,
		func(name string) bool { return counts[name] > 0 || isPending[name] })
}

// stripMetadata removes metadata that no decision reads and that would make equal states differ.
func stripMetadata[T cluster.Object](o T) T {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o
}
