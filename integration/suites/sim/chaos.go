package sim

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

type message = queue.Message

// chaos injects faults, chosen by the seed.
type chaos struct {
	*sim
	isStopped  bool
	nextAction time.Time
	// crash and pause are drawn once per seed, so that seeds differ in kind: some have long pauses, some have many
	// crashes.
	crash, pause float64
	// aimed draws faults at moments that others rarely reach: a crash between the bindings of one launch result, whose chance is
	// bindCrash, and another account that fills the reservations just before a launch.
	aimed     *rand.Rand
	bindCrash float64
	// apiServerFails is whether a fault of the API server lasts, and watchesHang whether all watches are stopped.
	apiServerFails, watchesHang bool
	endings                     []ending
	// hasChanged is whether a ClusterChange was made. Nodes may then be replaced that would stay otherwise.
	hasChanged bool
}

func newChaos(s *sim, seed int64) *chaos {
	c := &chaos{sim: s, crash: s.random.Float64() * 0.004, pause: s.random.Float64() * 0.004}
	c.aimed = rand.New(rand.NewPCG(uint64(seed), 0x62696e64)) //nolint:gosec // a seeded source: a run must be repeatable
	c.bindCrash = c.aimed.Float64() * 0.5
	world := s.world
	world.Broker.SetFaults(memqueue.Faults{
		FailSend: c.drawRate(0.02), LoseSendAnswer: c.drawRate(0.02), FailReceive: c.drawRate(0.02), FailDelete: c.drawRate(0.02),
		FailHide: c.drawRate(0.02), LoseReceiveAnswer: c.drawRate(0.01), Duplicate: c.drawRate(0.1), LateDuplicate: c.drawRate(0.5), Reorder: c.drawRate(0.5),
		Delay: c.drawRate(0.1), MaxDelay: 40 * time.Second, RouteTwice: c.drawRate(0.05), DelayEvent: c.drawRate(0.03), LoseEvent: c.drawRate(0.2),
		StaleWorks: c.drawRate(1), StaleIgnored: c.drawRate(1),
	})
	world.Blobs.SetFaults(memblob.Faults{
		FailPut: c.drawRate(0.02), FailGet: c.drawRate(0.02), FailWritten: c.drawRate(0.02), LosePutAnswer: c.drawRate(0.02), Missing: c.drawRate(0.01), SlowDown: c.drawRate(0.005),
	})
	world.Cloud.SetFaults(memcloud.Faults{
		Lag: 30 * time.Second, LongLag: c.drawRate(0.3), SlowBoot: c.drawRate(0.1), LostAnswer: c.drawRate(0.1), LostCall: c.drawRate(0.05), Throttle: c.drawRate(0.1),
		ReuseAddresses: c.random.IntN(2) == 0, QuietEvents: c.drawRate(0.2),
	})
	return c
}

// drawRate draws a probability up to most. A third of the kinds of faults get 0 in each seed.
func (c *chaos) drawRate(most float64) float64 {
	if c.random.IntN(3) == 0 {
		return 0
	}
	return c.random.Float64() * most
}

// drawCallFault draws the fault of a task at a call.
func (c *chaos) drawCallFault(call embedded.Call, _ int, m callPhase) callFault {
	if m == beforeCall && call.Verb == "create-fleet" && c.features.reservation {
		c.fillBeforeLaunch(call.About)
	}
	roll := c.random.Float64()
	switch {
	case m == afterCall && c.isHalfBound(call) && c.aimed.Float64() < c.bindCrash:
		c.faults["bindings interrupted"]++
		return callFault{crash: true}
	case roll < c.crash:
		c.faults["crash "+call.Actor+" "+string(m)+" "+call.Verb]++
		return callFault{crash: true}
	case roll < c.crash+c.pause:
		c.faults["pause"]++
		return callFault{pause: time.Duration(c.random.Int64N(int64(100 * time.Second)))}
	default:
		return callFault{}
	}
}

// isHalfBound reports whether a call has just bound a NodeClaim while another one of its intent has no instance.
func (c *chaos) isHalfBound(call embedded.Call) bool {
	name, isClaim := strings.CutPrefix(call.About, cluster.NodeClaims.Kind+" ")
	if !isClaim || call.Verb != "update-status" {
		return false
	}
	object, err := c.world.Kube.AsKubernetes("checker").Get(context.Background(), cluster.NodeClaims, cluster.Key{Name: name})
	if err != nil {
		return false
	}
	bound := object.(*karpenter.NodeClaim)
	if bound.Status.ProviderID == "" || c.checker.bindings[string(bound.UID)] != "" {
		return false
	}
	return slices.ContainsFunc(c.listObjects(cluster.NodeClaims), func(o cluster.Object) bool {
		other := o.(*karpenter.NodeClaim)
		return other.Annotations[intentTag] == bound.Annotations[intentTag] && other.Status.ProviderID == ""
	})
}

// namedAction is a change of the cluster or of AWS.
type namedAction struct {
	name string
	do   func()
}

// injectFaults changes the cluster or AWS every few seconds.
func (c *chaos) injectFaults(now time.Time) {
	c.runDueEnds(now)
	if c.isStopped || now.Before(c.nextAction) {
		return
	}
	c.nextAction = now.Add(time.Duration(1+c.random.IntN(20)) * time.Second)
	actions := []namedAction{
		{"scale", c.scaleRandomly}, {"scale", c.scaleRandomly}, {"interrupt", c.interruptInstance}, {"fail", c.failInstance}, {"shortage", c.causeShortage},
		{"lag", c.delayWatch}, {"redrive", c.redriveMessages}, {"replay", c.replayArchive}, {"conflict", c.rejectWrites}, {"delete-claim", c.deleteClaim},
		{"silence", c.silenceAPIServer}, {"burst", c.failManyCalls}, {"expire", c.expireWatches}, {"roll", c.restartStatefulSet}, {"delete-claim", c.deleteClaim},
		{"creation", c.rejectNodeClaims},
	}
	if c.features.reservation {
		actions = append(actions, namedAction{"fill-reservation", c.fillReservation}, namedAction{"reclaim", c.reclaimInstance}, namedAction{"reclaim", c.reclaimReservation})
	}
	if c.features.repairs {
		actions = append(actions, namedAction{"sicken", c.sickenNode}, namedAction{"sicken", c.sickenNode}, namedAction{"sicken", c.sickenNode})
	}
	action := actions[c.random.IntN(len(actions))]
	c.faults["action "+action.name]++
	action.do()
}

func (c *chaos) scaleRandomly() {
	names := slices.Sorted(maps.Keys(c.finalSizes))
	name := names[c.random.IntN(len(names))]
	if err := scaleDeployment(c.world, name, int32(c.random.IntN(int(c.finalSizes[name])+3))); err != nil {
		c.checker.reportViolation("models return no errors", "%v", err)
	}
}

// pickInstance returns a random running instance.
func (c *chaos) pickInstance() (memcloud.Record, bool) {
	var alive []memcloud.Record
	for _, r := range c.world.Cloud.Records() {
		if r.Ended.IsZero() {
			alive = append(alive, r)
		}
	}
	if len(alive) == 0 {
		return memcloud.Record{}, false
	}
	return alive[c.random.IntN(len(alive))], true
}

func (c *chaos) interruptInstance() {
	if r, ok := c.pickInstance(); ok {
		c.world.Cloud.InterruptSpot(r.ID)
	}
}

func (c *chaos) failInstance() {
	if r, ok := c.pickInstance(); ok {
		c.world.Cloud.Fail(r.ID)
	}
}

// causeShortage makes a capacity type or an instance type unavailable for a while.
func (c *chaos) causeShortage() {
	until := c.world.Now().Add(time.Duration(c.random.IntN(180)) * time.Second)
	types := []string{"t4g.medium", "t4g.large", "t4g.xlarge", "m6g.large", "c6g.large", ""}
	pattern := event.Offering{InstanceType: types[c.random.IntN(len(types))], CapacityType: []string{"spot", ""}[c.random.IntN(2)]}
	c.world.Cloud.Shortage(pattern, until)
}

// delayWatch delays one actor's watch of one kind.
func (c *chaos) delayWatch() {
	if c.watchesHang {
		return
	}
	actor := c.world.Actors[c.random.IntN(len(c.world.Actors))]
	kinds := []cluster.Kind{cluster.Pods, cluster.Nodes, cluster.NodeClaims, cluster.ConfigMaps}
	actor.DelayWatch(kinds[c.random.IntN(len(kinds))], time.Duration(c.random.IntN(20))*time.Second)
}

// redriveMessages moves the messages of DLQs back, with new message ids.
func (c *chaos) redriveMessages() {
	for _, name := range c.world.Broker.Queues() {
		if source, ok := c.world.SourceQueue(name); ok {
			_, _ = c.world.Broker.MoveMessages(name, source)
		}
	}
}

// replayArchive sends all events since the beginning to every rule again.
func (c *chaos) replayArchive() {
	if c.random.IntN(4) == 0 {
		_, _ = c.world.Bus.Replay("archive", time.Time{}, c.world.Now())
	}
}

// rejectWrites makes the API server reject some writes.
func (c *chaos) rejectWrites() { c.world.Kube.InjectFaults(apiFaults(c.random)...) }

// deleteClaim deletes a NodeClaim as a user with kubectl does.
func (c *chaos) deleteClaim() {
	claims := c.listObjects(cluster.NodeClaims)
	if len(claims) == 0 || c.random.IntN(3) > 0 {
		return
	}
	claim := claims[c.random.IntN(len(claims))]
	_ = c.world.Kube.AsKubernetes("person").Delete(context.Background(), cluster.NodeClaims, cluster.KeyOf(claim), claim.GetUID())
}

// deleteProtectedClaims deletes the NodeClaims of nodes whose pods must not be disrupted, for now or for ever.
func (c *chaos) deleteProtectedClaims() {
	for _, pod := range c.listPods() {
		if app := pod.Labels["app"]; app != "kept" && app != "timed" || pod.Spec.NodeName == "" {
			continue
		}
		for _, o := range c.listObjects(cluster.NodeClaims) {
			if claim := o.(*karpenter.NodeClaim); claim.Status.NodeName == pod.Spec.NodeName {
				_ = c.world.Kube.AsKubernetes("person").Delete(context.Background(), cluster.NodeClaims, cluster.KeyOf(claim), claim.UID)
			}
		}
	}
}

// stopFaults stops all faults; their effects remain.
func (c *chaos) stopFaults() {
	c.isStopped = true
	c.runDueEnds(c.world.Now().Add(time.Hour))
	c.chooseFault = nil
	c.world.Broker.SetFaults(memqueue.Faults{})
	c.world.Blobs.SetFaults(memblob.Faults{})
	c.world.Cloud.SetFaults(memcloud.Faults{Lag: 30 * time.Second, LongLag: 0.02})
	c.world.Cloud.Unblock()
	c.world.Kube.ClearFaults()
	for _, a := range c.world.Actors {
		for _, kind := range cluster.Kinds {
			a.DelayWatch(kind, 0)
		}
	}
}

// apiFaults returns errors of an overloaded API server for a few calls.
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
