package sim

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/memcloud"
	"github.com/joist-autoscaler/joist/shared/memworkload"
)

// Point is one place in the story at which a service may die: before or after
// the n-th write that any service makes. After the write that deletes a message
// is after the ack.
type Point struct {
	Write int
	After bool
}

// Death is what happened at a point.
type Death struct {
	Report
	// Actor and Verb say who died at what.
	Actor, Verb string
	Struck      bool
	// Writes is how many writes the whole story had.
	Writes int
}

// Story plays one plain story, without any other fault, and lets one service
// die at one point: five pods come, nodes come for them, AWS takes one node
// back, and the pods go again. A zero point lets everybody live.
func Story(point Point) (Death, error) {
	const seed = 1
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, full: sizes{"web": 6, "batch": 8}}
	workload := memworkload.Typical("", nil)
	workload.ForgetAfter = time.Minute
	world, err := embedded.New(embedded.Options{
		Seed: seed, Region: "us-west-2", Families: families, Tap: s.tap, CacheDelay: 50 * time.Millisecond, Workload: &workload,
		Observe: func(actor string, m message, began time.Time, err error) { s.checker.handled(actor, m, began, err) },
	})
	if err != nil {
		return Death{}, err
	}
	s.world = world
	pool := nodePool("default", 16, 8)
	s.checker = newChecker(world, map[string]corev1.ResourceList{"default": corev1.ResourceList(pool.Spec.Limits)})
	s.observe = s.checker.called
	s.chaos = &chaos{sim: s, healed: true}
	defer s.close()
	var death Death
	s.strike = s.once(point, &death)
	if err := world.Apply(ctx, nodeClass(world), pool, deployment("web", 900), deployment("batch", 400)); err != nil {
		return Death{}, err
	}
	err = s.tell(ctx)
	death.Report = s.report(seed)
	return death, err
}

// once strikes at one write only.
func (s *sim) once(point Point, death *Death) func(embedded.Call, int, moment) blow {
	leases, number := map[string]int{}, map[int]int{}
	return func(call embedded.Call, serial int, m moment) blow {
		if m == before && call.Writes && (!beat(call) || leases[call.Actor] < firstBeats) {
			death.Writes++
			number[serial] = death.Writes
			if beat(call) {
				leases[call.Actor]++
			}
		}
		if n, counted := number[serial]; death.Struck || !counted || point.Write != n || point.After != (m == after) {
			return blow{}
		}
		death.Struck, death.Actor, death.Verb = true, call.Actor, call.Port+"."+call.Verb
		return blow{crash: true}
	}
}

// firstBeats is how many renewals of each actor's leases count as points: one
// heartbeat is like another.
const firstBeats = 3

func beat(call embedded.Call) bool {
	return call.Port == "cluster" && call.Verb == "update" && strings.HasPrefix(call.About, "Lease ")
}

// tell plays the story.
func (s *sim) tell(ctx context.Context) error {
	if err := s.settles(ctx, "every pod runs", s.full, s.allRunning); err != nil {
		return err
	}
	var warned memcloud.Record
	for _, r := range s.world.Cloud.Records() {
		if r.Ended.IsZero() && s.world.Cloud.InterruptSpot(r.ID) {
			warned = r
			break
		}
	}
	replaced := func() bool {
		r, ok := s.world.Cloud.Record(warned.ID)
		return ok && !r.Gone.IsZero() && s.allRunning()
	}
	if err := s.settles(ctx, "a node that AWS takes is replaced", s.full, replaced); err != nil {
		return err
	}
	return s.settles(ctx, "nothing is left", s.full.none(), s.empty)
}
