package memcluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// CollectGarbage runs one round of background garbage collection. It deletes objects whose owners
// are all gone and the objects of deleted namespaces, and returns their number; 0 means
// that nothing is left to do. Owners of kinds that the model does not have count as
// existing.
func (s *Server) CollectGarbage() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acting = caller{"garbage-collector", VerbCollect}
	defer func() { s.acting = caller{} }()
	if !s.garbage {
		return 0
	}
	done := 0
	for _, kind := range cluster.Kinds {
		for _, key := range s.sortKeysOf(kind) {
			object := s.objects[kind][key]
			if object.GetDeletionTimestamp() == nil && (s.isOrphaned(object) || s.isInDeletedNamespace(object)) {
				// The object exists with this UID, so deletion cannot fail.
				_ = s.deleteObject(call{VerbCollect, kind, key}, object.GetUID(), nil)
				done++
			}
		}
	}
	done += s.finishNamespaces()
	// If this round found nothing, the next one finds nothing either.
	s.garbage = done > 0
	return done
}

// isOrphaned reports whether the object has owners and all of them are gone.
func (s *Server) isOrphaned(object cluster.Object) bool {
	owners := object.GetOwnerReferences()
	for _, owner := range owners {
		if s.ownerExists(object.GetNamespace(), owner) {
			return false
		}
	}
	return len(owners) > 0
}

func (s *Server) ownerExists(namespace string, owner metav1.OwnerReference) bool {
	kind, known := findKind(owner.APIVersion, owner.Kind)
	if !known {
		return true
	}
	key := cluster.Key{Name: owner.Name}
	if kind.Namespaced {
		key.Namespace = namespace
	}
	found, ok := s.objects[kind][key]
	return ok && found.GetUID() == owner.UID
}

// findKind returns the kind of an owner. ReplicaSets are not found, because memworkload
// uses their names without storing them, and their pods are not orphans.
func findKind(apiVersion, name string) (cluster.Kind, bool) {
	for _, kind := range cluster.Kinds {
		if kind != cluster.ReplicaSets && kind.Kind == name && kind.APIVersion() == apiVersion {
			return kind, true
		}
	}
	return cluster.Kind{}, false
}

// isInDeletedNamespace reports whether the object's namespace is deleted.
func (s *Server) isInDeletedNamespace(object cluster.Object) bool {
	if object.GetNamespace() == "" {
		return false
	}
	home, ok := s.objects[cluster.Namespaces][cluster.Key{Name: object.GetNamespace()}]
	return !ok || home.GetDeletionTimestamp() != nil
}

// finishNamespaces removes deleted namespaces that are empty.
func (s *Server) finishNamespaces() int {
	inhabited := map[string]bool{}
	for _, kind := range cluster.Kinds {
		for key := range s.objects[kind] {
			inhabited[key.Namespace] = true
		}
	}
	done := 0
	for _, key := range s.sortKeysOf(cluster.Namespaces) {
		home := s.objects[cluster.Namespaces][key]
		if home.GetDeletionTimestamp() != nil && !inhabited[key.Name] && len(home.GetFinalizers()) == 0 {
			s.removeObject(cluster.Namespaces, key)
			done++
		}
	}
	return done
}

// OwnerReference returns a controlling owner reference to a stored object.
func OwnerReference(object cluster.Object) metav1.OwnerReference {
	kind, _ := cluster.KindOf(object)
	return OwnerReferenceTo(kind.APIVersion(), kind.Kind, object.GetName(), object.GetUID())
}

// OwnerReferenceTo returns a controlling owner reference to an object that need not be stored,
// such as a ReplicaSet.
func OwnerReferenceTo(apiVersion, kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true),
	}
}
