package memcluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Fault is something that goes wrong with some calls of some actors. Empty
// fields match everything.
type Fault struct {
	Actor string
	Verb  Verb
	Kind  cluster.Kind
	// Name is the name of the one object that the call is about.
	Name string
	// As is what the caller is told: fault.Conflict for a storm of conflicts,
	// fault.Throttled for a 429, fault.Unknown for an answer that is lost.
	As fault.Kind
	// Done says that the call takes effect all the same.
	Done bool
	// Chance is how likely it strikes, from 0 to 1; 0 is always.
	Chance float64
	// Times is how often it strikes at most; 0 is until Heal.
	Times int
}

// Inject adds faults. Of several that match a call the first that strikes counts.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// Heal removes all faults. Watches that lag are healed at their caches.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Struck counts the faults that happened so far by "verb kind: what was told".
func (s *Server) Struck() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.injected)
}

// pickFault picks the fault that hits a call, if any, and uses it up.
func (s *Server) pickFault(c *Client, what call) *Fault {
	if c.exempt {
		return nil
	}
	for i, f := range s.faults {
		if !f.matches(c.actor, what) || f.Chance > 0 && s.random.Float64() >= f.Chance {
			continue
		}
		if f.Times > 0 {
			f.Times--
			if f.Times == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		s.injected[f.describe(what)]++
		return f
	}
	return nil
}

func (f *Fault) matches(actor string, what call) bool {
	return (f.Actor == "" || f.Actor == actor) &&
		(f.Verb == "" || f.Verb == what.verb) &&
		(f.Kind == cluster.Kind{} || f.Kind == what.kind) &&
		(f.Name == "" || f.Name == what.key.Name)
}

func (f *Fault) describe(what call) string {
	told := string(f.faultKind())
	if f.Done {
		told += ", but done"
	}
	return fmt.Sprintf("%s %s: %s", what.verb, what.kind.Kind, told)
}

func (f *Fault) faultKind() fault.Kind {
	if f.As == "" {
		return fault.Unknown
	}
	return f.As
}

// newError is what the caller is told.
func (f *Fault) newError(what call) error { return what.newError(f.faultKind(), "injected fault") }
