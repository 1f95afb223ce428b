package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/karpenter"
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

// Tale is a plain story, without any fault but one death.
type Tale struct {
	Name string
	full sizes
	// pods of each Deployment ask for so many thousandths of a core.
	pods map[string]int64
	tell func(*sim, context.Context) error
}

// TakenBack is a tale in which pods come, nodes come for them, AWS takes one node back, and the pods
// go again.
var TakenBack = Tale{
	Name: "taken back", full: sizes{"web": 6, "batch": 8}, pods: map[string]int64{"web": 900, "batch": 400}, tell: (*sim).takenBack,
}

// Replaced is a tale in which pods run on a node, which drifts and is replaced. Points are counted
// from the drift on: what is before is as in the other tale.
var Replaced = Tale{Name: "replaced", full: sizes{"web": 2}, pods: map[string]int64{"web": 900}, tell: (*sim).replaced}

// Story plays a tale and lets one service die at one point. A zero point lets
// everybody live.
func Story(tale Tale, point Point) (Death, error) {
	const seed = 1
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, full: tale.full}
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
	objects := []cluster.Object{nodeClass(world), pool}
	for _, name := range slices.Sorted(maps.Keys(tale.pods)) {
		objects = append(objects, deployment(name, tale.pods[name]))
	}
	if err := world.Apply(ctx, objects...); err != nil {
		return Death{}, err
	}
	err = tale.tell(s, ctx)
	death.Report = s.report(seed)
	return death, err
}

// once strikes at one write only.
func (s *sim) once(point Point, death *Death) func(embedded.Call, int, moment) blow {
	leases, number := map[string]int{}, map[int]int{}
	return func(call embedded.Call, serial int, m moment) blow {
		if m == before && call.Writes && s.counts && (!beat(call) || leases[call.Actor] < firstBeats) {
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

func (s *sim) takenBack(ctx context.Context) error {
	s.counts = true
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

func (s *sim) replaced(ctx context.Context) error {
	if err := s.settles(ctx, "every pod runs", s.full, s.allRunning); err != nil {
		return err
	}
	s.counts = true
	s.world.Kube.Change(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Template.Labels = map[string]string{"tier": "gold"}
	})
	return s.settles(ctx, "nodes that drifted are replaced", s.full, s.golden)
}

// golden reports whether every claim is as its pool wants it since it changed.
func (s *sim) golden() bool {
	claims, err := cluster.List[*karpenter.NodeClaim](context.Background(), s.world.Kube, cluster.NodeClaims)
	return err == nil && len(claims) > 0 && s.allRunning() &&
		!slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool { return c.Labels["tier"] != "gold" })
}
