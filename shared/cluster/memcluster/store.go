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

// storeObject stores an object under the next version and tells everybody. From here
// on the object must not change.
func (s *Server) storeObject(kind cluster.Kind, object cluster.Object) cluster.Object {
	s.revision++
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	// A decoded answer of a typed client carries no kind either.
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	key := cluster.KeyOf(object)
	before := s.objects[kind][key]
	s.objects[kind][key] = object
	s.publishChange(kind, key, before, object)
	return object
}

// removeObject removes an object. The removal is a version of its own, as in etcd.
func (s *Server) removeObject(kind cluster.Kind, key cluster.Key) {
	before := s.objects[kind][key]
	s.revision++
	delete(s.objects[kind], key)
	s.publishChange(kind, key, before, nil)
}

// publishChange spreads one change: to the effect log, the watches and the budgets.
func (s *Server) publishChange(kind cluster.Kind, key cluster.Key, before, after cluster.Object) {
	s.recordEffect(kind, key, before, after)
	for _, cache := range s.caches {
		cache.enqueue(kind, change{at: s.now(), key: key, object: after})
	}
	if after == nil || kind == cluster.Namespaces || s.isOrphaned(after) {
		s.garbage = true
	}
	switch kind {
	case cluster.Pods, cluster.DisruptionBudgets, cluster.Deployments:
		s.staleBudgets[key.Namespace] = true
	}
}

// sortKeysOf lists the keys of a kind, ordered by namespace and name.
func (s *Server) sortKeysOf(kind cluster.Kind) []cluster.Key {
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

// fieldOf is a field of an object's struct; invalid when the type has none.
func fieldOf(o cluster.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// copyField makes dst's field the same as src's. Stored parts may be shared between
// versions, because nobody changes them.
func copyField(dst, src cluster.Object, name string) {
	if field := fieldOf(dst, name); field.IsValid() {
		field.Set(fieldOf(src, name))
	}
}

// clear empties a field.
func clearField(o cluster.Object, name string) {
	if field := fieldOf(o, name); field.IsValid() {
		field.SetZero()
	}
}

// hasSameSpec compares what a generation counts.
func hasSameSpec(a, b cluster.Object) bool {
	spec := fieldOf(a, "Spec")
	return !spec.IsValid() || equality.Semantic.DeepEqual(spec.Interface(), fieldOf(b, "Spec").Interface())
}

// hasGeneration reports whether the API counts generations of the kind.
func hasGeneration(kind cluster.Kind) bool {
	switch kind {
	case cluster.Pods, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets, cluster.DaemonSets, cluster.DisruptionBudgets,
		cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses, cluster.NodeOverlays, cluster.CapacityBuffers:
		return true
	default:
		return false
	}
}
