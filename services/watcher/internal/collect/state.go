package collect

import (
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

// State keeps what was collected and works out anew only what a change touches.
// Its view is what From would collect at the same moment; a test holds the one to
// the other. It is not safe for concurrent use, and the only reader of its feed.
//
// Views share memory with each other: nobody changes them, and one holds until the
// next is asked for.
type State struct {
	feed cluster.Feed

	// pods are those that the feed has told of, and bound the same by node; those on
	// none are under the empty name.
	pods       map[cluster.Key]*corev1.Pod
	podsByNode map[string]map[cluster.Key]*corev1.Pod
	// labelKeys and spaces count what pods select pods and namespaces by.
	labelKeys, namespaceKeys podspec.Tally
	volumeUsers              podspec.Users
	// daemonPods are the living pods of each DaemonSet, and newest the youngest of each.
	daemonPods      map[types.UID]map[cluster.Key]*corev1.Pod
	newest          map[types.UID]*corev1.Pod
	staleDaemonSets map[types.UID]bool

	storage *podspec.Storage
	// attachments is what is attached to nodes, as it was last seen.
	attachments map[cluster.Key]*storagev1.VolumeAttachment

	nodes  nodeList
	starts podStarts
	// dirtyNodes are the nodes that have to be described anew, and every says that all do.
	dirtyNodes map[string]bool
	allDirty   bool
	// changedKeys are the label keys that some pod selects by since the last view and did
	// not before, or the other way round.
	changedKeys map[string]bool

	// hasRead says that the feed was read at all. Who read it before is another.
	hasRead bool
	view    View
	// isCurrent says that nothing has changed since the view was put together, which
	// was at that time, and turn counts how often it was.
	isCurrent bool
	builtAt   time.Time
	revision  uint64
	// isUrgent says that what changed may make something wait, and waits that something
	// does.
	isUrgent, hasPending bool
}

// idleMaxAge is how often the view is put together while all that changes is which
// pods run on nodes that stay: a large cluster is never still, and while nothing
// waits nobody needs to know by the instant.
const idleMaxAge = time.Second

// NewState makes a state that knows nothing yet.
func NewState(feed cluster.Feed) *State {
	return &State{
		feed: feed, pods: map[cluster.Key]*corev1.Pod{}, podsByNode: map[string]map[cluster.Key]*corev1.Pod{}, volumeUsers: podspec.Users{},
		daemonPods: map[types.UID]map[cluster.Key]*corev1.Pod{}, newest: map[types.UID]*corev1.Pod{}, staleDaemonSets: map[types.UID]bool{},
		attachments: map[cluster.Key]*storagev1.VolumeAttachment{}, nodes: newNodeList(), dirtyNodes: map[string]bool{}, allDirty: true, changedKeys: map[string]bool{},
	}
}

// otherKinds are the kinds that From reads beside pods, nodes and volumes.
var otherKinds = []cluster.Kind{
	cluster.Namespaces, cluster.DaemonSets, cluster.DisruptionBudgets,
	cluster.NodePools, cluster.NodeClasses, cluster.NodeOverlays, cluster.CapacityBuffers,
	cluster.PodTemplates, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets,
}

// View is the view as of now, or of a second ago when nothing waits and nothing
// has changed that could make something wait. It costs what has changed.
func (s *State) View(given Inputs) View {
	s.updatePods()
	s.updateVolumes()
	s.updateNodes()
	for _, kind := range otherKinds {
		if !s.feed.Drain(kind).Empty() {
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

// isViewDue reports whether the view has to be put together anew.
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

// Revision is another number whenever the last View showed another cluster than the
// one before.
func (s *State) Revision() uint64 { return s.revision }

// updatePods looks again at the pods that changed.
func (s *State) updatePods() {
	changed := s.feed.Drain(cluster.Pods)
	keys := changed.Keys
	if changed.All || !s.hasRead {
		s.hasRead = true
		keys = slices.Collect(maps.Keys(s.pods))
		for _, o := range s.feed.List(cluster.Pods) {
			keys = append(keys, cluster.KeyOf(o))
		}
	}
	for _, key := range keys {
		object, _ := s.feed.Get(cluster.Pods, key)
		pod, _ := object.(*corev1.Pod)
		s.replacePod(key, pod)
	}
}

// replacePod puts one pod in the place of another; either may be nil.
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

// mayBePending reports whether a pod may wait: it is on no node, or on one that goes.
func (s *State) mayBePending(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	_, going := s.nodes.leaving[pod.Spec.NodeName]
	return pod.Spec.NodeName == "" || going
}

func putPod[K comparable](in map[K]map[cluster.Key]*corev1.Pod, under K, key cluster.Key, pod *corev1.Pod) {
	if in[under] == nil {
		in[under] = map[cluster.Key]*corev1.Pod{}
	}
	in[under][key] = pod
}

// countPod counts a pod in or out, and notes what that touches.
func (s *State) countPod(pod *corev1.Pod, named, spaces func(podspec.Named) []string, users func(*corev1.Pod) []cluster.Key) {
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
	keys := podspec.Named{}
	keys.Add(pod)
	for _, key := range named(keys) {
		s.toggleKey(key)
	}
	keys = podspec.Named{}
	keys.AddNamespaces(pod)
	spaces(keys)
}

// toggleKey notes that a key came into use or went out of it. Who does both, as a pod
// does that another replaces, has changed nothing.
func (s *State) toggleKey(key string) {
	if s.changedKeys[key] {
		delete(s.changedKeys, key)
	} else {
		s.changedKeys[key] = true
	}
}

// markRelabelled finds the nodes of the pods that have a label that came into use or went
// out of it. It looks at all pods, which is less than to describe all nodes.
func (s *State) markRelabelled() {
	// A selector of everything makes every daemon count, whatever its labels.
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

// daemonSetOf is the DaemonSet that a living pod tells of.
func daemonSetOf(pod *corev1.Pod) (types.UID, bool) {
	if !isDaemon(pod) || pod.DeletionTimestamp != nil || isFinished(pod) {
		return "", false
	}
	return metav1.GetControllerOfNoCopy(pod).UID, true
}

// rebuildView puts the view together from what is known and what has to be looked at
// again.
func (s *State) rebuildView(given Inputs) View {
	c := &collector{
		cache: s.feed, labelKeys: s.labelKeys.Named(), namespaceKeys: s.namespaceKeys.Named(), mounts: s.volumeUsers.Mounts(s.storage),
		storage: s.storage, leaving: s.nodes.leaving, now: given.Now,
	}
	s.markRelabelled()
	s.refreshNodes(c)
	clear(s.dirtyNodes)
	s.allDirty = false
	c.pods = s.candidatePods(c.leaving)
	return c.buildView(given, slices.Clip(s.nodes.list), c.describeDaemonSets(s.newestDaemons()), s.nodes.namespaces)
}

// candidatePods are the pods that may wait for a node: those on none, and those on
// nodes that go.
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

// newestDaemons are the youngest pods of all DaemonSets.
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

// sortedPods are the pods by namespace and name.
func sortedPods(pods map[cluster.Key]*corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(pods))
	for _, key := range slices.SortedFunc(maps.Keys(pods), cluster.Key.Compare) {
		out = append(out, pods[key])
	}
	return out
}
