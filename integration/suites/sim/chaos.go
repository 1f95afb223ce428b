package sim

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

type message = queue.Message

// chaos is everything that goes wrong from outside, by the seed.
type chaos struct {
	*sim
	healed bool
	next   time.Time
	// rates are drawn once for a seed, so that seeds differ in kind and not only
	// in detail: some are calm with long pauses, some are storms.
	crash, pause float64
	// ails says that the API server has a trouble of some length, hung that no
	// watch tells anything, and endings are when such things are over.
	ails, hung bool
	endings    []ending
}

func newChaos(s *sim) *chaos {
	c := &chaos{sim: s, crash: s.dice.Float64() * 0.004, pause: s.dice.Float64() * 0.004}
	world := s.world
	world.Broker.SetFaults(memqueue.Faults{
		FailSend: c.rate(0.02), LoseSendAnswer: c.rate(0.02), FailReceive: c.rate(0.02), FailDelete: c.rate(0.02),
		FailHide: c.rate(0.02), LoseReceiveAnswer: c.rate(0.01), Duplicate: c.rate(0.05), Reorder: c.rate(0.5),
		Delay: c.rate(0.1), MaxDelay: 40 * time.Second, RouteTwice: c.rate(0.05), LoseEvent: c.rate(0.2),
	})
	world.Blobs.SetFaults(memblob.Faults{
		FailPut: c.rate(0.02), FailGet: c.rate(0.02), FailWritten: c.rate(0.02), LosePutAnswer: c.rate(0.02), Missing: c.rate(0.01),
	})
	world.Cloud.SetFaults(memcloud.Faults{
		Lag: 30 * time.Second, LostAnswer: c.rate(0.1), LostCall: c.rate(0.05), Throttle: c.rate(0.1),
		ReuseAddresses: c.dice.IntN(2) == 0, QuietEvents: c.rate(0.2),
	})
	return c
}

// rate draws a chance up to most; a third of the kinds stay quiet in each seed.
func (c *chaos) rate(most float64) float64 {
	if c.dice.IntN(3) == 0 {
		return 0
	}
	return c.dice.Float64() * most
}

// strike decides what befalls a task at a call.
func (c *chaos) strike(call embedded.Call, _ int, m moment) blow {
	roll := c.dice.Float64()
	switch {
	case roll < c.crash:
		c.faults["crash "+call.Actor+" "+string(m)+" "+call.Verb]++
		return blow{crash: true}
	case roll < c.crash+c.pause:
		c.faults["pause"]++
		return blow{pause: time.Duration(c.dice.Int64N(int64(100 * time.Second)))}
	default:
		return blow{}
	}
}

// strikeWorld changes the world every few seconds.
func (c *chaos) strikeWorld(now time.Time) {
	c.end(now)
	if c.healed || now.Before(c.next) {
		return
	}
	c.next = now.Add(time.Duration(1+c.dice.IntN(20)) * time.Second)
	deeds := []struct {
		name string
		do   func()
	}{
		{"scale", c.scaleSome}, {"scale", c.scaleSome}, {"interrupt", c.interrupt}, {"fail", c.fail}, {"shortage", c.shortage},
		{"lag", c.lag}, {"redrive", c.redrive}, {"replay", c.replay}, {"conflict", c.conflict}, {"delete-claim", c.deleteClaim},
		{"silence", c.silence}, {"burst", c.burst}, {"expire", c.expire}, {"roll", c.roll}, {"delete-claim", c.deleteClaim},
		{"creation", c.refuseCreation},
	}
	deed := deeds[c.dice.IntN(len(deeds))]
	c.faults["deed "+deed.name]++
	deed.do()
}

func (c *chaos) scaleSome() {
	names := slices.Sorted(maps.Keys(c.full))
	name := names[c.dice.IntN(len(names))]
	if err := scale(c.world, name, int32(c.dice.IntN(int(c.full[name])+3))); err != nil {
		c.checker.violate("models work", "%v", err)
	}
}

// running picks an instance that lives.
func (c *chaos) running() (memcloud.Record, bool) {
	var alive []memcloud.Record
	for _, r := range c.world.Cloud.Records() {
		if r.Ended.IsZero() {
			alive = append(alive, r)
		}
	}
	if len(alive) == 0 {
		return memcloud.Record{}, false
	}
	return alive[c.dice.IntN(len(alive))], true
}

func (c *chaos) interrupt() {
	if r, ok := c.running(); ok {
		c.world.Cloud.InterruptSpot(r.ID)
	}
}

func (c *chaos) fail() {
	if r, ok := c.running(); ok {
		c.world.Cloud.Fail(r.ID)
	}
}

// shortage takes a capacity type, or a type, away for a while.
func (c *chaos) shortage() {
	until := c.world.Now().Add(time.Duration(c.dice.IntN(180)) * time.Second)
	types := []string{"t4g.medium", "t4g.large", "t4g.xlarge", "m6g.large", "c6g.large", ""}
	pattern := memcloud.Offering{Type: types[c.dice.IntN(len(types))], CapacityType: []string{"spot", ""}[c.dice.IntN(2)]}
	c.world.Cloud.Shortage(pattern, until)
}

// lag makes one actor's watch of one kind late.
func (c *chaos) lag() {
	if c.hung {
		return
	}
	actor := c.world.Actors[c.dice.IntN(len(c.world.Actors))]
	kinds := []cluster.Kind{cluster.Pods, cluster.Nodes, cluster.NodeClaims, cluster.ConfigMaps}
	actor.Lag(kinds[c.dice.IntN(len(kinds))], time.Duration(c.dice.IntN(20))*time.Second)
}

// redrive moves dead letters back, with new message ids.
func (c *chaos) redrive() {
	for _, name := range c.world.Broker.Queues() {
		if source, ok := c.world.DeadOf(name); ok {
			_, _ = c.world.Broker.Move(name, source)
		}
	}
}

// replay plays everything since the beginning to every rule again.
func (c *chaos) replay() {
	if c.dice.IntN(4) == 0 {
		_, _ = c.world.Bus.Replay("archive", time.Time{}, c.world.Now())
	}
}

// conflict lets the API server refuse some writes.
func (c *chaos) conflict() { c.world.Kube.Inject(apiFaults(c.dice)...) }

// deleteClaim is a person with kubectl.
func (c *chaos) deleteClaim() {
	claims := c.list(cluster.NodeClaims)
	if len(claims) == 0 || c.dice.IntN(3) > 0 {
		return
	}
	claim := claims[c.dice.IntN(len(claims))]
	_ = c.world.Kube.World("person").Delete(context.Background(), cluster.NodeClaims, cluster.KeyOf(claim), claim.GetUID())
}

// deleteKept is a person who deletes the claims of nodes that cannot be drained yet:
// a pod must not be disrupted, for ever or for a while.
func (c *chaos) deleteKept() {
	for _, pod := range c.pods() {
		if app := pod.Labels["app"]; app != "kept" && app != "timed" || pod.Spec.NodeName == "" {
			continue
		}
		for _, o := range c.list(cluster.NodeClaims) {
			if claim := o.(*karpenter.NodeClaim); claim.Status.NodeName == pod.Spec.NodeName {
				_ = c.world.Kube.World("person").Delete(context.Background(), cluster.NodeClaims, cluster.KeyOf(claim), claim.UID)
			}
		}
	}
}

// heal stops all faults. What they did stays done.
func (c *chaos) heal() {
	c.healed = true
	c.end(c.world.Now().Add(time.Hour))
	c.engine.strike = nil
	c.world.Broker.SetFaults(memqueue.Faults{})
	c.world.Blobs.SetFaults(memblob.Faults{})
	c.world.Cloud.SetFaults(memcloud.Faults{Lag: 30 * time.Second})
	c.world.Cloud.Unblock()
	c.world.Kube.Heal()
	for _, a := range c.world.Actors {
		for _, kind := range cluster.Kinds {
			a.Lag(kind, 0)
		}
	}
}

// apiFaults are what an API server under load does to a few calls.
func apiFaults(dice *rand.Rand) []memcluster.Fault {
	kinds := []memcluster.Fault{
		{As: fault.Conflict}, {As: fault.Throttled}, {As: fault.Unknown, Done: true}, {As: fault.Unknown},
	}
	var out []memcluster.Fault
	for _, f := range kinds {
		f.Chance, f.Times = 0.3, 1+dice.IntN(5)
		out = append(out, f)
	}
	return out
}
