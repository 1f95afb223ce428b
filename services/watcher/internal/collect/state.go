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
	pods  map[cluster.Key]*corev1.Pod
	bound map[string]map[cluster.Key]*corev1.Pod
	// named and spaces count what pods select pods and namespaces by.
	named, spaces podspec.Tally
	users         podspec.Users
	// sets are the living pods of each DaemonSet, and newest the youngest of each.
	sets   map[types.UID]map[cluster.Key]*corev1.Pod
	newest map[types.UID]*corev1.Pod
	stale  map[types.UID]bool

	storage *podspec.Storage
	// attached is what is attached to nodes, as it was last seen.
	attached map[cluster.Key]*storagev1.VolumeAttachment

	places places
	starts starts
	// dirty are the nodes that have to be described anew, and every says that all do.
	dirty map[string]bool
	every bool
	// rekeyed are the label keys that some pod selects by since the last view and did
	// not before, or the other way round.
	rekeyed map[string]bool

	// begun says that the feed was read at all. Who read it before is another.
	begun bool
	view  View
	// current says that nothing has changed since the view was put together, which
	// was at that time, and turn counts how often it was.
	current bool
	at      time.Time
	turn    uint64
	// news says that what changed may make something wait, and waits that something
	// does.
	news, waits bool
}

// restEvery is how often the view is put together while all that changes is which
// pods run on nodes that stay: a large cluster is never still, and while nothing
// waits nobody needs to know by the instant.
const restEvery = time.Second

// NewState makes a state that knows nothing yet.
func NewState(feed cluster.Feed) *State {
	return &State{
		feed: feed, pods: map[cluster.Key]*corev1.Pod{}, bound: map[string]map[cluster.Key]*corev1.Pod{}, users: podspec.Users{},
		sets: map[types.UID]map[cluster.Key]*corev1.Pod{}, newest: map[types.UID]*corev1.Pod{}, stale: map[types.UID]bool{},
		attached: map[cluster.Key]*storagev1.VolumeAttachment{}, places: newPlaces(), dirty: map[string]bool{}, every: true, rekeyed: map[string]bool{},
	}
}

// read are the kinds that From reads beside pods, nodes and volumes.
var read = []cluster.Kind{
	cluster.Namespaces, cluster.DaemonSets, cluster.DisruptionBudgets,
	cluster.NodePools, cluster.NodeClasses, cluster.NodeOverlays, cluster.CapacityBuffers,
	cluster.PodTemplates, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets,
}

// View is the view as of now, or of a second ago when nothing waits and nothing
// has changed that could make something wait. It costs what has changed.
func (s *State) View(given Given) View {
	s.learnPods()
	s.learnVolumes()
	s.learnNodes()
	for _, kind := range read {
		if !s.feed.Drain(kind).Empty() {
			s.current, s.news = false, true
		}
	}
	if s.due(given) {
		s.view = s.collect(given)
		s.current, s.news, s.at, s.waits = true, false, given.Now, len(s.view.PendingKeys()) > 0
		s.turn++
	}
	view := s.view
	given.stamp(&view.Snapshot)
	return view
}

// due reports whether the view has to be put together anew.
func (s *State) due(given Given) bool {
	switch {
	case given.Settings != s.view.Snapshot.Settings, !s.view.Until.IsZero() && !given.Now.Before(s.view.Until):
		return true
	case s.current:
		return false
	default:
		return s.news || s.waits || given.Now.Sub(s.at) >= restEvery
	}
}

// Turn is another number whenever the last View showed another cluster than the
// one before.
func (s *State) Turn() uint64 { return s.turn }

// learnPods looks again at the pods that changed.
func (s *State) learnPods() {
	changed := s.feed.Drain(cluster.Pods)
	keys := changed.Keys
	if changed.All || !s.begun {
		s.begun = true
		keys = slices.Collect(maps.Keys(s.pods))
		for _, o := range s.feed.List(cluster.Pods) {
			keys = append(keys, cluster.KeyOf(o))
		}
	}
	for _, key := range keys {
		object, _ := s.feed.Get(cluster.Pods, key)
		pod, _ := object.(*corev1.Pod)
		s.replace(key, pod)
	}
}

// replace puts one pod in the place of another; either may be nil.
func (s *State) replace(key cluster.Key, pod *corev1.Pod) {
	old := s.pods[key]
	if old == pod {
		return
	}
	s.current = false
	s.starts.see(old, pod)
	s.news = s.news || s.matters(old) || s.matters(pod)
	if old != nil {
		s.count(old, s.named.Remove, s.spaces.Remove, s.users.Remove)
		delete(s.pods, key)
		delete(s.bound[old.Spec.NodeName], key)
		if len(s.bound[old.Spec.NodeName]) == 0 {
			delete(s.bound, old.Spec.NodeName)
		}
		if set, ok := setOf(old); ok {
			delete(s.sets[set], key)
		}
	}
	if pod != nil {
		s.count(pod, s.named.Add, s.spaces.Add, s.users.Add)
		s.pods[key] = pod
		put(s.bound, pod.Spec.NodeName, key, pod)
		if set, ok := setOf(pod); ok {
			put(s.sets, set, key, pod)
		}
	}
}

// matters reports whether a pod may wait: it is on no node, or on one that goes.
func (s *State) matters(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	_, going := s.places.going[pod.Spec.NodeName]
	return pod.Spec.NodeName == "" || going
}

func put[K comparable](in map[K]map[cluster.Key]*corev1.Pod, under K, key cluster.Key, pod *corev1.Pod) {
	if in[under] == nil {
		in[under] = map[cluster.Key]*corev1.Pod{}
	}
	in[under][key] = pod
}

// count counts a pod in or out, and notes what that touches.
func (s *State) count(pod *corev1.Pod, named, spaces func(podspec.Named) []string, users func(*corev1.Pod) []cluster.Key) {
	s.dirty[pod.Spec.NodeName] = true
	if set, ok := setOf(pod); ok {
		s.stale[set] = true
	}
	for _, other := range users(pod) {
		if sharer := s.pods[other]; sharer != nil {
			s.dirty[sharer.Spec.NodeName] = true
		}
	}
	if pod.Spec.Affinity == nil && len(pod.Spec.TopologySpreadConstraints) == 0 {
		return
	}
	keys := podspec.Named{}
	keys.Add(pod)
	for _, key := range named(keys) {
		s.rekey(key)
	}
	keys = podspec.Named{}
	keys.AddNamespaces(pod)
	spaces(keys)
}

// rekey notes that a key came into use or went out of it. Who does both, as a pod
// does that another replaces, has changed nothing.
func (s *State) rekey(key string) {
	if s.rekeyed[key] {
		delete(s.rekeyed, key)
	} else {
		s.rekeyed[key] = true
	}
}

// relabel finds the nodes of the pods that have a label that came into use or went
// out of it. It looks at all pods, which is less than to describe all nodes.
func (s *State) relabel() {
	// A selector of everything makes every daemon count, whatever its labels.
	s.every = s.every || s.rekeyed[""]
	if len(s.rekeyed) > 0 && !s.every {
		for _, pod := range s.pods {
			if hasAny(pod.Labels, s.rekeyed) {
				s.dirty[pod.Spec.NodeName] = true
			}
		}
	}
	clear(s.rekeyed)
}

func hasAny(labels map[string]string, keys map[string]bool) bool {
	for key := range keys {
		if _, has := labels[key]; has {
			return true
		}
	}
	return false
}

// setOf is the DaemonSet that a living pod tells of.
func setOf(pod *corev1.Pod) (types.UID, bool) {
	if !daemon(pod) || pod.DeletionTimestamp != nil || ended(pod) {
		return "", false
	}
	return metav1.GetControllerOfNoCopy(pod).UID, true
}

// collect puts the view together from what is known and what has to be looked at
// again.
func (s *State) collect(given Given) View {
	c := &collection{
		cache: s.feed, named: s.named.Named(), spaces: s.spaces.Named(), mounts: s.users.Mounts(s.storage),
		storage: s.storage, going: s.places.going, now: given.Now,
	}
	s.relabel()
	s.describe(c)
	clear(s.dirty)
	s.every = false
	c.pods = s.candidates(c.going)
	return c.view(given, slices.Clip(s.places.list), c.daemons(s.daemons()), s.places.inhabited)
}

// candidates are the pods that may wait for a node: those on none, and those on
// nodes that go.
func (s *State) candidates(going map[string]time.Time) []*corev1.Pod {
	all := maps.Clone(s.bound[""])
	for node := range going {
		if all == nil {
			all = map[cluster.Key]*corev1.Pod{}
		}
		maps.Copy(all, s.bound[node])
	}
	return ordered(all)
}

// daemons are the youngest pods of all DaemonSets.
func (s *State) daemons() map[types.UID]*corev1.Pod {
	for set := range s.stale {
		delete(s.newest, set)
		if len(s.sets[set]) == 0 {
			delete(s.sets, set)
		}
		maps.Copy(s.newest, newest(ordered(s.sets[set])))
	}
	clear(s.stale)
	return s.newest
}

// ordered are the pods by namespace and name.
func ordered(pods map[cluster.Key]*corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(pods))
	for _, key := range slices.SortedFunc(maps.Keys(pods), cluster.Key.Compare) {
		out = append(out, pods[key])
	}
	return out
}
