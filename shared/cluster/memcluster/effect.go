package memcluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// Verb is a request of cluster.Client.
type Verb string

// The verbs, as faults and effects name them.
const (
	VerbGet          Verb = "get"
	VerbList         Verb = "list"
	VerbCreate       Verb = "create"
	VerbUpdate       Verb = "update"
	VerbUpdateStatus Verb = "update status of"
	VerbPatch        Verb = "patch"
	VerbDelete       Verb = "delete"
	VerbDeletePod    Verb = "delete with grace"
	VerbEvict        Verb = "evict"
	VerbBind         Verb = "bind"
	VerbReport       Verb = "report on"
	// VerbCollect is used by the garbage collector and VerbSettle by the disruption
	// controller. No actor sends them.
	VerbCollect Verb = "collect"
	VerbSettle  Verb = "settle"

	verbSeed Verb = "seed"
)

// Effect is one change of the store. Before is nil for a new object, and After for a
// removed one. Both belong to the store and must not be changed.
type Effect struct {
	At      time.Time
	Version int64
	Actor   string
	Verb    Verb
	Kind    cluster.Kind
	Key     cluster.Key
	UID     types.UID
	Before  cluster.Object
	After   cluster.Object
}

// Effects returns all changes so far, in order.
func (s *Server) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

// ClearEffects clears the effect log, for long runs that use Options.Observe.
func (s *Server) ClearEffects() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects = nil
}

func (s *Server) recordEffect(kind cluster.Kind, key cluster.Key, before, after cluster.Object) {
	one := after
	if one == nil {
		one = before
	}
	effect := Effect{
		At: s.now(), Version: s.revision, Actor: s.acting.actor, Verb: s.acting.verb,
		Kind: kind, Key: key, UID: one.GetUID(), Before: before, After: after,
	}
	s.effects = append(s.effects, effect)
	if s.observe != nil {
		s.observe(effect)
	}
}
