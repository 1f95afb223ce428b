package memcluster

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// put stores an object under the next version and tells everybody. From here
// on the object must not change.
func (s *Server) put(kind cluster.Kind, object cluster.Object) cluster.Object {
	s.version++
	object.SetResourceVersion(strconv.FormatInt(s.version, 10))
	// A decoded answer of a typed client carries no kind either.
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	key := cluster.KeyOf(object)
	before := s.objects[kind][key]
	s.objects[kind][key] = object
	s.tell(kind, key, before, object)
	return object
}

// drop removes an object. The removal is a version of its own, as in etcd.
func (s *Server) drop(kind cluster.Kind, key cluster.Key) {
	before := s.objects[kind][key]
	s.version++
	delete(s.objects[kind], key)
	s.tell(kind, key, before, nil)
}

// tell spreads one change: to the effect log, the watches and the budgets.
func (s *Server) tell(kind cluster.Kind, key cluster.Key, before, after cluster.Object) {
	s.record(kind, key, before, after)
	for _, cache := range s.caches {
		cache.feed(kind, notice{at: s.now(), key: key, object: after})
	}
	if after == nil || kind == cluster.Namespaces || s.orphaned(after) {
		s.litter = true
	}
	switch kind {
	case cluster.Pods, cluster.DisruptionBudgets, cluster.Deployments:
		s.stale[key.Namespace] = true
	}
}

// keys lists the keys of a kind, ordered by namespace and name.
func (s *Server) keys(kind cluster.Kind) []cluster.Key {
	return sortedKeys(s.objects[kind])
}

func sortedKeys[V any](m map[cluster.Key]V) []cluster.Key {
	keys := make([]cluster.Key, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b cluster.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// part is a field of an object's struct; invalid when the type has none.
func part(o cluster.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// keep makes dst's field the same as src's. Stored parts may be shared between
// versions, because nobody changes them.
func keep(dst, src cluster.Object, name string) {
	if field := part(dst, name); field.IsValid() {
		field.Set(part(src, name))
	}
}

// clear empties a field.
func clearPart(o cluster.Object, name string) {
	if field := part(o, name); field.IsValid() {
		field.SetZero()
	}
}

// sameSpec compares what a generation counts.
func sameSpec(a, b cluster.Object) bool {
	spec := part(a, "Spec")
	return !spec.IsValid() || equality.Semantic.DeepEqual(spec.Interface(), part(b, "Spec").Interface())
}

// counted reports whether the API counts generations of the kind.
func counted(kind cluster.Kind) bool {
	switch kind {
	case cluster.Pods, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets, cluster.DaemonSets, cluster.DisruptionBudgets,
		cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses, cluster.NodeOverlays, cluster.CapacityBuffers:
		return true
	default:
		return false
	}
}
