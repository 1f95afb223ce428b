package memcluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// update swaps everything but the status and what the server alone may set.
func (s *Server) update(what call, next cluster.Object) (cluster.Object, error) {
	old, err := s.swapped(what, next)
	if err != nil {
		return nil, err
	}
	keepIdentity(next, old)
	if err := validateChange(what, next, old); err != nil {
		return nil, err
	}
	if what.kind.Status {
		keep(next, old, "Status")
	}
	if old.GetDeletionTimestamp() != nil && !subset(next.GetFinalizers(), old.GetFinalizers()) {
		return nil, what.fail(fault.Invalid, "a finalizer is added to an object that is being deleted")
	}
	if what.kind == cluster.Pods && !sameSpec(next, old) {
		return nil, what.fail(fault.Invalid, "the spec of a pod cannot change")
	}
	if counted(what.kind) && !sameSpec(next, old) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	return s.settleOn(what.kind, old, next), nil
}

// updateStatus swaps the status alone.
func (s *Server) updateStatus(what call, next cluster.Object) (cluster.Object, error) {
	if !what.kind.Status {
		return nil, what.fail(fault.Missing, "the kind has no status subresource")
	}
	old, err := s.swapped(what, next)
	if err != nil {
		return nil, err
	}
	swapped := copyOf(old)
	keep(swapped, next, "Status")
	return s.settleOn(what.kind, old, swapped), nil
}

// swapped finds the object that a swap is about, if the swap is not lost.
func (s *Server) swapped(what call, next cluster.Object) (cluster.Object, error) {
	old, ok := s.objects[what.kind][what.key]
	switch {
	case !ok:
		return nil, what.fail(fault.Missing, "there is none")
	case next.GetResourceVersion() == "":
		return nil, what.fail(fault.Invalid, "the object has no resourceVersion").WithHint("change what was read, not a new object")
	case next.GetUID() != "" && next.GetUID() != old.GetUID():
		return nil, what.fail(fault.Conflict, "the UID is %s, not %s", old.GetUID(), next.GetUID())
	case next.GetResourceVersion() != old.GetResourceVersion():
		return nil, what.fail(fault.Conflict, "the version is %s, not %s", old.GetResourceVersion(), next.GetResourceVersion())
	}
	return old, nil
}

// settleOn stores a swap: not at all when nothing changed, and as a removal
// when the last finalizer of a dying object went.
func (s *Server) settleOn(kind cluster.Kind, old, next cluster.Object) cluster.Object {
	if equality.Semantic.DeepEqual(old, next) {
		return old
	}
	if mayGo(next) {
		s.drop(kind, cluster.KeyOf(next))
		return next
	}
	return s.put(kind, next)
}

// mayGo reports whether nothing holds a dying object back any more.
func mayGo(o cluster.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// keepIdentity undoes changes to what only the server may change.
func keepIdentity(next, old cluster.Object) {
	next.SetUID(old.GetUID())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	next.SetGeneration(old.GetGeneration())
	next.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
}

func subset(small, large []string) bool {
	for _, s := range small {
		if !slices.Contains(large, s) {
			return false
		}
	}
	return true
}

// Change changes an object past every rule, as only the world can: a node's
// conditions, a pod's phase. It reports whether there is such an object.
func (s *Server) Change(kind cluster.Kind, key cluster.Key, how func(cluster.Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[kind][key]
	if !ok {
		return false
	}
	next := copyOf(old)
	how(next)
	if counted(kind) && !sameSpec(next, old) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	s.acting = caller{"", verbSeed}
	s.settleOn(kind, old, copyOf(next))
	s.acting = caller{}
	return true
}
