package collect

import (
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// State keeps the collected objects and recomputes only the parts that a change affects. Its view
// equals the result of CollectAll at the same moment; a test compares them. It is not safe for
// concurrent use, and must be the only reader of its feed.
//
// Views share memory: callers must not change them, and each is valid until the next call.
type State struct {
	feed cluster.Feed

	// pods are the pods in the feed, and podsByNode the same by node; pods without a node are under
	// the empty name.
	pods       map[cluster.Key]*corev1.Pod
	podsByNode map[string]map[cluster.Key]*corev1.Pod
	// labelKeys and namespaceKeys count the keys by which pods select pods and namespaces. The pods
	// of all buffers count as one, with bufferLabelKeys and bufferNamespaceKeys.
	labelKeys, namespaceKeys             podspec.SelectorKeyCount
	bufferLabelKeys, bufferNamespaceKeys podspec.SelectorKeys
	volumeUsers                          podspec.Users
	// daemonPods are the pods of each DaemonSet that are neither terminating nor finished, and
	// newest is the newest of each.
	daemonPods      map[types.UID]map[cluster.Key]*corev1.Pod
	newest          map[types.UID]*corev1.Pod
	staleDaemonSets map[types.UID]bool

	storage *podspec.Storage
	// attachments are the VolumeAttachments as last read.
	attachments map[cluster.Key]*storagev1.VolumeAttachment

	nodes  nodeList
	starts podStarts
	// dirtyNodes are the nodes that have to be described again; allDirty means all of them.
	dirtyNodes map[string]bool
	allDirty   bool
	// changedKeys are the label keys that pods have started or stopped selecting by since the last
	// view.
	changedKeys map[string]bool

	// hasRead reports that the feed was read at least once. Before that, another reader may have
	// consumed its changes.
	hasRead bool
	view    View
	// isCurrent reports that nothing has changed since the view was built at builtAt. revision
	// counts how often it was built.
	isCurrent bool
	builtAt   time.Time
	revision  uint64
	// isUrgent reports that a change may have made a pod pending; hasPending reports that some pod,
	// buffer or NodePool waits for a node.
	isUrgent, hasPending bool
}

// idleMaxAge is how old the view may be while nothing is pending and only running pods on nodes
// that are kept change. A large cluster changes all the time.
const idleMaxAge = time.Second

// NewState returns a state that has not read its feed.
func NewState(feed cluster.Feed) *State {
	return &State{
		feed: feed, pods: map[cluster.Key]*corev1.Pod{}, podsByNode: map[string]map[cluster.Key]*corev1.Pod{}, volumeUsers: podspec.Users{},
		daemonPods: map[types.UID]map[cluster.Key]*corev1.Pod{}, newest: map[types.UID]*corev1.Pod{}, staleDaemonSets: map[types.UID]bool{},
		attachments: map[cluster.Key]*storagev1.VolumeAttachment{}, nodes: newNodeList(), dirtyNodes: map[string]bool{}, allDirty: true, changedKeys: map[string]bool{},
	}
}

// otherKinds are the kinds that CollectAll reads in addition to pods, nodes and volumes.
var otherKinds = []cluster.Kind{
	cluster.Namespaces, cluster.DaemonSets, cluster.DisruptionBudgets,
	cluster.NodePools, cluster.NodeClasses, cluster.NodeOverlays, cluster.CapacityBuffers,
	cluster.PodTemplates, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets, cluster.Services,
}

// View returns the current view, or one of up to a second ago if nothing is pending and no change
// could have made a pod pending. Its cost depends on the number of changes.
func (s *State) View(given Inputs) View {
	s.updatePods()
	s.updateVolumes()
	s.updateDevices()
	s.updateNodes()
	for _, kind := range otherKinds {
		if !s.feed.TakeChanges(kind).Empty() {
			s.isCurrent, s.isUrgent = false, true
		}
	}
	if s.isViewDue(given) {
		s.view = s.rebuildView(given)
		s.isCurrent, s.isUrgent, s.builtAt, s.hasPending = true, false, given.Now, len(s.view.PendingKeys()) > 0
		s.revision++
	}
	view := s.view
	given.stampSnapshot(&view.Snapshot)
	return view
}

// isViewDue reports whether the view has to be built again.
func (s *State) isViewDue(given Inputs) bool {
	switch {
	case given.Settings != s.view.Snapshot.Settings, !s.view.Expires.IsZero() && !given.Now.Before(s.view.Expires):
		return true
	case s.isCurrent:
		return false
	default:
		return s.isUrgent || s.hasPending || given.Now.Sub(s.builtAt) >= idleMaxAge
	}
}

// Revision returns a number that changes whenever View builds the view again.
func (s *State) Revision() uint64 { return s.revision }

// updatePods reads the changed pods.
func (s *State) updatePods() {
	changed := s.feed.TakeChanges(cluster.Pods)
	keys := changed.Keys
	if changed.All || !s.hasRead {
		s.hasRead = true
		keys = s.listKeys(cluster.Pods, maps.Keys(s.pods))
	}
	for _, key := range keys {
		object, _ := s.feed.Get(cluster.Pods, key)
		pod, _ := object.(*corev1.Pod)
		s.replacePod(key, pod)
	}
}

// listKeys returns the known keys and those of the feed's objects.
func (s *State) listKeys(kind cluster.Kind, known iter.Seq[cluster.Key]) []cluster.Key {
	keys := slices.Collect(known)
	for _, o := range s.feed.List(kind) {
		keys = append(keys, cluster.KeyOf(o))
	}
	return keys
}

// replacePod replaces the pod with that key; pod is nil if it was deleted.
func (s *State) replacePod(key cluster.Key, pod *corev1.Pod) {
	old := s.pods[key]
	if old == pod {
		return
	}
	s.isCurrent = false
	s.starts.trackPod(old, pod)
	s.isUrgent = s.isUrgent || s.mayBePending(old) || s.mayBePending(pod)
	if old != nil {
		s.countPod(old, s.labelKeys.Remove, s.namespaceKeys.Remove, s.volumeUsers.Remove)
		delete(s.pods, key)
		delete(s.podsByNode[old.Spec.NodeName], key)
		if len(s.podsByNode[old.Spec.NodeName]) == 0 {
			delete(s.podsByNode, old.Spec.NodeName)
		}
		if set, ok := daemonSetOf(old); ok {
			delete(s.daemonPods[set], key)
		}
	}
	if pod != nil {
		s.countPod(pod, s.labelKeys.Add, s.namespaceKeys.Add, s.volumeUsers.Add)
		s.pods[key] = pod
		putPod(s.podsByNode, pod.Spec.NodeName, key, pod)
		if set, ok := daemonSetOf(pod); ok {
			putPod(s.daemonPods, set, key, pod)
		}
	}
}

// mayBePending reports whether a pod may be pending: it is on no node, or on one that is being
// removed.
func (s *State) mayBePending(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	_, leaving := s.nodes.leaving[pod.Spec.NodeName]
	return pod.Spec.NodeName == "" || leaving
}

func putPod[K comparable](in map[K]map[cluster.Key]*corev1.Pod, under K, key cluster.Key, pod *corev1.Pod) {
	if in[under] == nil {
		in[under] = map[cluster.Key]*corev1.Pod{}
	}
	in[under][key] = pod
}

// countPod adds or removes a pod's counts, and marks the affected objects.
func (s *State) countPod(pod *corev1.Pod, named, spaces func(podspec.SelectorKeys) []string, users func(*corev1.Pod) []cluster.Key) {
	s.dirtyNodes[pod.Spec.NodeName] = true
	if set, ok := daemonSetOf(pod); ok {
		s.staleDaemonSets[set] = true
	}
	for _, other := range users(pod) {
		if sharer := s.pods[other]; sharer != nil {
			s.dirtyNodes[sharer.Spec.NodeName] = true
		}
	}
	if pod.Spec.Affinity == nil && len(pod.Spec.TopologySpreadConstraints) == 0 {
		return
	}
	keys := podspec.SelectorKeys{}
	keys.Add(pod)
	for _, key := range named(keys) {
		s.toggleKey(key)
	}
	keys = podspec.SelectorKeys{}
	keys.AddNamespaces(pod)
	spaces(keys)
}

// countBuffers replaces the counted keys of buffers by the current ones.
func (s *State) countBuffers(c *collector, given Inputs) {
	labels, namespaces := podspec.SelectorKeys{}, podspec.SelectorKeys{}
	c.addBufferKeys(given, labels, namespaces)
	for _, key := range slices.Concat(s.labelKeys.Add(labels), s.labelKeys.Remove(s.bufferLabelKeys)) {
		s.toggleKey(key)
	}
	s.namespaceKeys.Add(namespaces)
	s.namespaceKeys.Remove(s.bufferNamespaceKeys)
	s.bufferLabelKeys, s.bufferNamespaceKeys = labels, namespaces
}

// toggleKey records that pods have started or stopped selecting by a key. Doing both, as when a pod
// replaces another, cancels out.
func (s *State) toggleKey(key string) {
	if s.changedKeys[key] {
		delete(s.changedKeys, key)
	} else {
		s.changedKeys[key] = true
	}
}

// markRelabelled marks the nodes of the pods that have a changed key. It checks all pods, which is
// cheaper than describing all nodes.
func (s *State) markRelabelled() {
	// A selector that matches everything makes every daemon count, with any labels.
	s.allDirty = s.allDirty || s.changedKeys[""]
	if len(s.changedKeys) > 0 && !s.allDirty {
		for _, pod := range s.pods {
			if hasAnyKey(pod.Labels, s.changedKeys) {
				s.dirtyNodes[pod.Spec.NodeName] = true
			}
		}
	}
	clear(s.changedKeys)
}

func hasAnyKey(labels map[string]string, keys map[string]bool) bool {
	for key := range keys {
		if _, has := labels[key]; has {
			return true
		}
	}
	return false
}

// daemonSetOf returns the UID of the DaemonSet of a living pod.
func daemonSetOf(pod *corev1.Pod) (types.UID, bool) {
	if !isDaemon(pod) || pod.DeletionTimestamp != nil || isFinished(pod) {
		return "", false
	}
	return metav1.GetControllerOfNoCopy(pod).UID, true
}

// rebuildView builds the view from the kept objects and the objects that have to be read again.
func (s *State) rebuildView(given Inputs) View {
	c := &collector{
		cache: s.feed, labelKeys: s.labelKeys.Keys(), namespaceKeys: s.namespaceKeys.Keys(), mounts: s.volumeUsers.Mounts(s.storage),
		storage: s.storage, claims: given.lookUpClaims(s.feed), leaving: s.nodes.leaving, now: given.Now,
	}
	s.countBuffers(c, given)
	s.markRelabelled()
	s.refreshNodes(c)
	clear(s.dirtyNodes)
	s.allDirty = false
	c.pods = s.candidatePods(c.leaving)
	return c.buildView(given, slices.Clip(s.nodes.list), c.describeDaemonSets(s.newestDaemons()), s.nodes.namespaces)
}

// candidatePods returns the pods that may be pending: pods without a node, and pods on nodes that
// are being removed.
func (s *State) candidatePods(going map[string]time.Time) []*corev1.Pod {
	all := maps.Clone(s.podsByNode[""])
	for node := range going {
		if all == nil {
			all = map[cluster.Key]*corev1.Pod{}
		}
		maps.Copy(all, s.podsByNode[node])
	}
	return sortedPods(all)
}

// newestDaemons returns the newest pod of each DaemonSet.
func (s *State) newestDaemons() map[types.UID]*corev1.Pod {
	for set := range s.staleDaemonSets {
		delete(s.newest, set)
		if len(s.daemonPods[set]) == 0 {
			delete(s.daemonPods, set)
		}
		maps.Copy(s.newest, newestByDaemonSet(sortedPods(s.daemonPods[set])))
	}
	clear(s.staleDaemonSets)
	return s.newest
}

// sortedPods returns the pods sorted by namespace and name.
func sortedPods(pods map[cluster.Key]*corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(pods))
	for _, key := range slices.SortedFunc(maps.Keys(pods), cluster.Key.Compare) {
		out = append(out, pods[key])
	}
	return out
}
