package collect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// defaultSpreadFeed is a feed whose pods have the cluster's default topology spread constraints. A change of a
// selector from which constraints are deduced counts as a change of the pods.
type defaultSpreadFeed struct {
	cluster.Feed
	defaults podspec.DefaultSpread
	// pods are the results by pod, and shared the constraints by namespace, owner and labels.
	pods   map[cluster.Key]spreadPod
	shared map[spreadKey][]corev1.TopologySpreadConstraint
	// services are those of each namespace; nil if they have to be listed.
	services map[string][]*corev1.Service
	// selectors are those of the objects as last seen.
	selectors map[cluster.Kind]map[cluster.Key]any
	// forReader and unseen are changes that the reader and this feed have not taken yet.
	forReader, unseen map[cluster.Kind]cluster.Changed
}

// spreadPod is a pod of the cache and the pod with constraints, which is the same without any.
type spreadPod struct{ source, result *corev1.Pod }

// spreadKey determines a pod's default constraints.
type spreadKey struct {
	namespace, owner, labels string
	kind                     cluster.Kind
}

// maxSharedSpreads bounds the constraints that are kept for pods that no longer exist.
const maxSharedSpreads = 16384

// spreadSources are the kinds from whose selectors constraints are deduced.
var spreadSources = append([]cluster.Kind{cluster.Services}, podspec.SpreadOwners...)

// AddDefaultSpread returns a feed whose pods have these constraints unless they have constraints of their own.
func AddDefaultSpread(feed cluster.Feed, constraints []corev1.TopologySpreadConstraint) cluster.Feed {
	f := &defaultSpreadFeed{
		Feed: feed, pods: map[cluster.Key]spreadPod{}, shared: map[spreadKey][]corev1.TopologySpreadConstraint{}, selectors: map[cluster.Kind]map[cluster.Key]any{},
		forReader: map[cluster.Kind]cluster.Changed{}, unseen: map[cluster.Kind]cluster.Changed{},
	}
	f.defaults = podspec.DefaultSpread{Constraints: constraints, Services: f.listServices, Find: feed.Get}
	for _, kind := range spreadSources {
		f.selectors[kind] = map[cluster.Key]any{}
	}
	return f
}

func (f *defaultSpreadFeed) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	object, ok := f.Feed.Get(kind, key)
	pod, isPod := object.(*corev1.Pod)
	if kind != cluster.Pods || !ok || !isPod {
		if kind == cluster.Pods {
			delete(f.pods, key)
		}
		return object, ok
	}
	return f.convert(key, pod), true
}

func (f *defaultSpreadFeed) List(kind cluster.Kind) []cluster.Object {
	return f.convertAll(kind, f.Feed.List(kind))
}

func (f *defaultSpreadFeed) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	return f.convertAll(kind, f.Feed.ListBy(kind, index, value))
}

func (f *defaultSpreadFeed) convertAll(kind cluster.Kind, list []cluster.Object) []cluster.Object {
	if kind == cluster.Pods {
		for i, o := range list {
			list[i] = f.convert(cluster.KeyOf(o), o.(*corev1.Pod))
		}
	}
	return list
}

// convert returns the pod with its constraints. It returns the same pod again until the source or the
// constraints change.
func (f *defaultSpreadFeed) convert(key cluster.Key, pod *corev1.Pod) *corev1.Pod {
	if known, ok := f.pods[key]; ok && known.source == pod {
		return known.result
	}
	result := f.addConstraints(pod)
	f.pods[key] = spreadPod{pod, result}
	return result
}

// addConstraints returns the pod with its constraints, or the same pod if it gets none.
func (f *defaultSpreadFeed) addConstraints(pod *corev1.Pod) *corev1.Pod {
	if f.defaults.Applies(pod) {
		if list := f.listShared(pod); list != nil {
			return podspec.WithDefaultSpread(pod, list)
		}
	}
	return pod
}

// listShared returns the constraints of the pod. Pods with equal inputs share them.
func (f *defaultSpreadFeed) listShared(pod *corev1.Pod) []corev1.TopologySpreadConstraint {
	kind, owner, _ := podspec.SpreadOwner(pod)
	key := spreadKey{pod.Namespace, owner.Name, labels.Set(pod.Labels).String(), kind}
	list, known := f.shared[key]
	if !known {
		list = f.defaults.ListConstraints(pod)
		if len(f.shared) >= maxSharedSpreads {
			clear(f.shared)
		}
		f.shared[key] = list
	}
	return list
}

// listServices returns the Services of a namespace.
func (f *defaultSpreadFeed) listServices(namespace string) []*corev1.Service {
	if f.services == nil {
		f.services = map[string][]*corev1.Service{}
		for _, service := range cluster.ListCached[*corev1.Service](f.Feed, cluster.Services) {
			f.services[service.Namespace] = append(f.services[service.Namespace], service)
		}
	}
	return f.services[namespace]
}

// TakeChanges adds to the changed pods those whose constraints changed.
func (f *defaultSpreadFeed) TakeChanges(kind cluster.Kind) cluster.Changed {
	if kind != cluster.Pods {
		f.collectChanges(kind)
		changed := f.forReader[kind]
		delete(f.forReader, kind)
		return changed
	}
	changed := f.Feed.TakeChanges(kind)
	affected := f.takeAffected()
	if changed.All {
		clear(f.pods)
	}
	if changed.All || affected == nil {
		return changed
	}
	for key, known := range f.pods {
		if !affected(known.source) {
			continue
		}
		delete(f.pods, key)
		source, ok := f.Feed.Get(cluster.Pods, key)
		if !ok || source != cluster.Object(known.source) {
			continue // It is among the changed pods.
		}
		if next := f.convert(key, known.source); equality.Semantic.DeepEqual(next.Spec.TopologySpreadConstraints, known.result.Spec.TopologySpreadConstraints) {
			f.pods[key] = known
		} else {
			changed.Keys = append(changed.Keys, key)
		}
	}
	slices.SortFunc(changed.Keys, cluster.Key.Compare)
	changed.Keys = slices.Compact(changed.Keys)
	return changed
}

// collectChanges takes the changes of a kind, for the reader and for this feed.
func (f *defaultSpreadFeed) collectChanges(kind cluster.Kind) {
	changed := f.Feed.TakeChanges(kind)
	f.forReader[kind] = joinChanges(f.forReader[kind], changed)
	if slices.Contains(spreadSources, kind) {
		f.unseen[kind] = joinChanges(f.unseen[kind], changed)
	}
}

func joinChanges(a, b cluster.Changed) cluster.Changed {
	if a.All || b.All {
		return cluster.Changed{All: true}
	}
	keys, values := slices.Concat(a.Keys, b.Keys), slices.Concat(a.Values, b.Values)
	slices.SortFunc(keys, cluster.Key.Compare)
	slices.Sort(values)
	return cluster.Changed{Keys: slices.Compact(keys), Values: slices.Compact(values)}
}

// takeAffected returns which pods a change of selectors affects, or nil if no selector changed.
func (f *defaultSpreadFeed) takeAffected() func(pod *corev1.Pod) bool {
	all, namespaces, owners := false, map[string]bool{}, map[cluster.Kind]map[cluster.Key]bool{}
	for _, kind := range spreadSources {
		f.collectChanges(kind)
		changed := f.unseen[kind]
		delete(f.unseen, kind)
		owners[kind] = map[cluster.Key]bool{}
		if changed.All {
			all = true
			f.relistSelectors(kind)
		}
		for _, key := range changed.Keys {
			if !f.updateSelector(kind, key) {
				continue
			}
			if kind == cluster.Services {
				namespaces[key.Namespace] = true
			} else {
				owners[kind][key] = true
			}
		}
	}
	if all || len(namespaces) > 0 {
		f.services = nil
	}
	if all || len(namespaces)+len(owners[cluster.ReplicationControllers])+len(owners[cluster.ReplicaSets])+len(owners[cluster.StatefulSets]) > 0 {
		clear(f.shared)
	} else {
		return nil
	}
	return func(pod *corev1.Pod) bool {
		kind, key, owned := podspec.SpreadOwner(pod)
		return all || namespaces[pod.Namespace] || owned && owners[kind][key]
	}
}

// updateSelector reads an object's selector again, and reports whether it changed.
func (f *defaultSpreadFeed) updateSelector(kind cluster.Kind, key cluster.Key) bool {
	before, had := f.selectors[kind][key]
	object, has := f.Feed.Get(kind, key)
	if !has {
		delete(f.selectors[kind], key)
		return had
	}
	after := podspec.SpreadSelector(object)
	f.selectors[kind][key] = after
	return !had || !equality.Semantic.DeepEqual(before, after)
}

func (f *defaultSpreadFeed) relistSelectors(kind cluster.Kind) {
	clear(f.selectors[kind])
	for _, object := range f.Feed.List(kind) {
		f.selectors[kind][cluster.KeyOf(object)] = podspec.SpreadSelector(object)
	}
}
