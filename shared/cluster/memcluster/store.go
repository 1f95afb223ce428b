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

// storeObject stores an object with the next version and publishes the change. The object
// must not be changed afterwards.
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

// removeObject removes an object. The removal has its own version, as in etcd.
func (s *Server) removeObject(kind cluster.Kind, key cluster.Key) {
	before := s.objects[kind][key]
	s.revision++
	delete(s.objects[kind], key)
	s.publishChange(kind, key, before, nil)
}

// publishChange adds a change to the effect log and the watches, and marks budgets and
// garbage that it concerns.
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

// fieldOf returns a field of the object's struct; it is invalid if the type has no such
// field.
func fieldOf(o cluster.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// copyField sets a field of dst to that of src. Versions may share it, because stored
// objects do not change.
func copyField(dst, src cluster.Object, name string) {
	if field := fieldOf(dst, name); field.IsValid() {
		field.Set(fieldOf(src, name))
	}
}

// clearField sets a field to its zero value.
func clearField(o cluster.Object, name string) {
	if field := fieldOf(o, name); field.IsValid() {
		field.SetZero()
	}
}

// hasSameSpec reports whether two objects have the same spec.
func hasSameSpec(a, b cluster.Object) bool {
	spec := fieldOf(a, "Spec")
	return !spec.IsValid() || equality.Semantic.DeepEqual(spec.Interface(), fieldOf(b, "Spec").Interface())
}

// hasGeneration reports whether the API sets a generation for the kind.
func hasGeneration(kind cluster.Kind) bool {
	switch kind {
	case cluster.Pods, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets, cluster.DaemonSets, cluster.DisruptionBudgets,
		cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses, cluster.NodeOverlays, cluster.CapacityBuffers:
		return true
	default:
		return false
	}
}
