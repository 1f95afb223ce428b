package memcluster

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// updateObject replaces an object except its status and the fields that only the server
// sets.
func (s *Server) updateObject(what call, next cluster.Object) (cluster.Object, error) {
	old, err := s.findForUpdate(what, next)
	if err != nil {
		return nil, err
	}
	keepIdentity(next, old)
	if err := validateChange(what, next, old); err != nil {
		return nil, err
	}
	if what.kind.Status {
		copyField(next, old, "Status")
	}
	if old.GetDeletionTimestamp() != nil && !isSubset(next.GetFinalizers(), old.GetFinalizers()) {
		return nil, what.newError(fault.Invalid, "a finalizer cannot be added to an object that is being deleted")
	}
	if what.kind == cluster.Pods && !hasSameSpec(next, old) {
		return nil, what.newError(fault.Invalid, "the spec of a pod cannot change")
	}
	if hasGeneration(what.kind) && !hasSameSpec(next, old) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	return s.storeUpdate(what.kind, old, next), nil
}

// updateStatus replaces the status.
func (s *Server) updateStatus(what call, next cluster.Object) (cluster.Object, error) {
	if !what.kind.Status {
		return nil, what.newError(fault.Missing, "the kind has no status subresource")
	}
	old, err := s.findForUpdate(what, next)
	if err != nil {
		return nil, err
	}
	if err := validateStatus(what, next); err != nil {
		return nil, err
	}
	swapped := copyObject(old)
	copyField(swapped, next, "Status")
	return s.storeUpdate(what.kind, old, swapped), nil
}

// patchAnnotation sets or removes one annotation of the stored object.
func (s *Server) patchAnnotation(what call, object cluster.Object, key string, value *string) error {
	old, err := s.findForUpdate(what, object)
	if err != nil {
		return err
	}
	next := copyObject(old)
	annotations := maps.Clone(next.GetAnnotations())
	if value == nil {
		delete(annotations, key)
	} else {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = *value
	}
	next.SetAnnotations(annotations)
	if err := validateChange(what, next, old); err != nil {
		return err
	}
	s.storeUpdate(what.kind, old, next)
	return nil
}

// findForUpdate returns the stored object if the update has its version and UID.
func (s *Server) findForUpdate(what call, next cluster.Object) (cluster.Object, error) {
	old, ok := s.objects[what.kind][what.key]
	switch {
	case !ok:
		return nil, what.newError(fault.Missing, "the object does not exist")
	case next.GetResourceVersion() == "":
		return nil, what.newError(fault.Invalid, "the object has no resourceVersion").WithHint("read the object and change that copy")
	case next.GetUID() != "" && next.GetUID() != old.GetUID():
		return nil, what.newError(fault.Conflict, "the object has UID %s, not %s", old.GetUID(), next.GetUID())
	case next.GetResourceVersion() != old.GetResourceVersion():
		return nil, what.newError(fault.Conflict, "the object has resourceVersion %s, not %s", old.GetResourceVersion(), next.GetResourceVersion())
	}
	return old, nil
}

// storeUpdate stores an updated object. It stores nothing if nothing changed, and removes
// a deleted object that has lost its last finalizer.
func (s *Server) storeUpdate(kind cluster.Kind, old, next cluster.Object) cluster.Object {
	if equality.Semantic.DeepEqual(old, next) {
		return old
	}
	if canBeRemoved(next) {
		s.removeObject(kind, cluster.KeyOf(next))
		return next
	}
	return s.storeObject(kind, next)
}

// canBeRemoved reports whether a deleted object has neither finalizers nor a grace period.
func canBeRemoved(o cluster.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// keepIdentity restores the fields that only the server sets.
func keepIdentity(next, old cluster.Object) {
	next.SetUID(old.GetUID())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	next.SetGeneration(old.GetGeneration())
	next.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
}

func isSubset(small, large []string) bool {
	for _, s := range small {
		if !slices.Contains(large, s) {
			return false
		}
	}
	return true
}

// ChangeObject changes an object without any checks, such as a node's conditions or a pod's
// phase. It reports whether the object exists.
func (s *Server) ChangeObject(kind cluster.Kind, key cluster.Key, how func(cluster.Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[kind][key]
	if !ok {
		return false
	}
	next := copyObject(old)
	how(next)
	if hasGeneration(kind) && !hasSameSpec(next, old) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	s.acting = caller{"", verbSeed}
	s.storeUpdate(kind, old, copyObject(next))
	s.acting = caller{}
	return true
}
