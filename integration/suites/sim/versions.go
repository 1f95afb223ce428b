package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/versions"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
)

// version is the version that an actor runs, relative to the code under test.
type version string

const (
	current version = "current"
	// next writes texts with fields that the current version does not know.
	next version = "next"
	// previous neither writes nor reads the fields that were added since the last release.
	previous version = "previous"
)

// versionPlan is which actor runs which version, and when that changes. Each seed upgrades the actors one by one, in
// random order, during the fault phase, and rolls some of them back. The mix at the end of that phase stays.
type versionPlan struct {
	running map[string]version
	changes []versionChange
	// released are the fields that the previous version knows.
	released versions.Fields
}

type versionChange struct {
	at    time.Duration
	actor int
	to    version
}

// RunVersions runs the simulator with actors of two versions: with an even seed the current and the next one, with an
// odd seed the previous one, which knows the released fields, and the current one.
func RunVersions(seed int64, released versions.Fields) (Report, error) {
	dice := rand.New(rand.NewPCG(uint64(seed), 0x76657273)) //nolint:gosec // a seeded source: a run must be repeatable
	old, upgraded := current, next
	if seed%2 == 1 {
		old, upgraded = previous, current
	}
	p := &versionPlan{running: map[string]version{"": old}, released: released}
	const actors = 14 // Seven services with two replicas each.
	for _, i := range dice.Perm(actors) {
		if dice.IntN(8) == 0 {
			continue // The actor keeps the old version.
		}
		at := time.Duration(dice.Int64N(int64(faultDuration)))
		p.changes = append(p.changes, versionChange{at, i, upgraded})
		if dice.IntN(4) == 0 {
			p.changes = append(p.changes, versionChange{at + time.Duration(dice.Int64N(int64(faultDuration-at))), i, old})
		}
	}
	return run(seed, p)
}

// wrapPorts returns the ports of an actor that starts with its present version.
func (s *sim) wrapPorts(actor string) embedded.PortWrapper {
	if s.versions == nil {
		return nil
	}
	v, known := s.versions.running[actor]
	if !known {
		v = s.versions.running[""]
	}
	if v == current {
		return nil
	}
	return newVersionPorts(s, v)
}

// changeVersions restarts the actors whose version changes now.
func (s *sim) changeVersions() {
	if s.versions == nil {
		return
	}
	for i := range s.versions.changes {
		change := &s.versions.changes[i]
		if change.to == "" || s.world.Now().Sub(s.world.Start) < change.at {
			continue
		}
		actor := s.world.Actors[change.actor]
		s.versions.running[actor.Name] = change.to
		s.faults[fmt.Sprintf("version %s", change.to)]++
		change.to = ""
		s.restartActor(actor)
	}
}
