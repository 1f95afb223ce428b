package memcluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Fault is an error that is injected into calls. Empty fields match all calls.
type Fault struct {
	Actor string
	Verb  Verb
	Kind  cluster.Kind
	// Name is the name of the call's object.
	Name string
	// As is the kind of error that the caller gets, such as fault.Conflict,
	// fault.Throttled for a 429, or fault.Unknown (the default) for a lost answer.
	As fault.Kind
	// Done is true if the call takes effect although it returns an error.
	Done bool
	// Chance is the probability of the fault for each call, from 0 to 1; 0 means always.
	Chance float64
	// Times is how often the fault occurs at most; 0 means until ClearFaults.
	Times int
}

// InjectFaults adds faults. If several match a call, the first one that occurs is used.
func (s *Server) InjectFaults(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// ClearFaults removes all faults. It does not change the delays of caches.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// InjectedFaults returns the number of injected faults so far by "verb kind: error".
func (s *Server) InjectedFaults() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.injected)
}

// pickFault returns the fault of a call, if any, and counts it.
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
		told += ", but executed"
	}
	return fmt.Sprintf("%s %s: %s", what.verb, what.kind.Kind, told)
}

func (f *Fault) faultKind() fault.Kind {
	if f.As == "" {
		return fault.Unknown
	}
	return f.As
}

// newError returns the error that the caller gets.
func (f *Fault) newError(what call) error { return what.newError(f.faultKind(), "injected fault") }
