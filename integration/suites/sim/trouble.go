package sim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ending is when a trouble of some length is over, and what ends it.
type ending struct {
	at time.Time
	do func()
}

// between draws a number of seconds.
func (c *chaos) between(least, most int) time.Duration {
	return time.Duration(least+c.dice.IntN(most-least+1)) * time.Second
}

// later has something done that much later, or when the faults stop.
func (c *chaos) later(after time.Duration, do func()) {
	c.endings = append(c.endings, ending{c.world.Now().Add(after), do})
}

// end does what is due by now.
func (c *chaos) end(now time.Time) {
	waiting := c.endings
	c.endings = nil
	for _, e := range waiting {
		if e.at.After(now) {
			c.endings = append(c.endings, e)
		} else {
			e.do()
		}
	}
}

// silence is an API server that answers no service for a minute, and whose watches
// tell nothing meanwhile. Of what was on its way at first the answer alone is lost.
// The rest of the cluster goes on, which is worse than if it stood still too.
func (c *chaos) silence() {
	if c.ails || c.dice.IntN(2) == 0 {
		return
	}
	c.ails = true
	c.faults["silence"]++
	c.world.Kube.Inject(memcluster.Fault{As: fault.Unknown, Done: true, Times: 1 + c.dice.IntN(3)}, memcluster.Fault{As: fault.Unknown})
	c.hang()
	c.later(c.between(0, 10), c.interrupt)
	c.later(c.between(30, 75), func() {
		c.recover()
		// A watch goes on where it was, or is told that its place is forgotten.
		c.resume(func() bool { return c.dice.IntN(2) == 0 })
	})
}

// burst is an API server that answers many calls with one kind of error for a
// while: 409 to writes, 429, or 500, of which some were done all the same. It may
// be about one kind alone. AWS takes an instance back in the midst of it.
func (c *chaos) burst() {
	if c.ails {
		return
	}
	c.ails = true
	chance := 0.3 + 0.7*c.dice.Float64()
	// Claims are what a notice is about.
	kind := []cluster.Kind{{}, cluster.NodeClaims, cluster.NodeClaims, cluster.NodeClaims, cluster.Nodes, cluster.Pods}[c.dice.IntN(6)]
	var faults []memcluster.Fault
	switch c.dice.IntN(3) {
	case 0:
		c.faults["burst of 409"]++
		// Not to a create: there it says that the name is taken.
		for _, verb := range []memcluster.Verb{memcluster.VerbUpdate, memcluster.VerbUpdateStatus, memcluster.VerbDelete, memcluster.VerbEvict} {
			faults = append(faults, memcluster.Fault{As: fault.Conflict, Verb: verb, Kind: kind, Chance: chance})
		}
	case 1:
		c.faults["burst of 429"]++
		faults = append(faults, memcluster.Fault{As: fault.Throttled, Kind: kind, Chance: chance})
	default:
		c.faults["burst of 500"]++
		faults = append(faults, memcluster.Fault{As: fault.Unknown, Kind: kind, Chance: chance / 2},
			memcluster.Fault{As: fault.Unknown, Done: true, Kind: kind, Chance: chance / 2})
	}
	c.world.Kube.Inject(faults...)
	c.later(c.between(0, 3), c.interrupt)
	c.later(c.between(5, 30), c.recover)
}

// refuseCreation is an API server that creates only some NodeClaims, for longer than the
// watcher waits for a plan: it fails, or refuses the others as invalid. Plans are given
// up with a part of an intent's claims created.
func (c *chaos) refuseCreation() {
	if c.ails || c.dice.IntN(2) == 0 {
		return
	}
	c.ails = true
	c.faults["refused creation"]++
	as := []fault.Kind{fault.Unknown, fault.Denied, fault.Invalid}[c.dice.IntN(3)]
	c.world.Kube.Inject(memcluster.Fault{As: as, Verb: memcluster.VerbCreate, Kind: cluster.NodeClaims, Chance: 0.4 + 0.5*c.dice.Float64()})
	c.later(c.between(100, 240), c.recover)
}

// recover lets the API server answer as it should.
func (c *chaos) recover() {
	c.ails = false
	c.world.Kube.Heal()
}

// expire lets every watch hang and then end with 410, so that what happened in
// between is seen as one step: a pod that went and came again under its name, such
// as a StatefulSet's, never went.
func (c *chaos) expire() {
	if c.hung {
		return
	}
	c.faults["expiry of watches"]++
	c.hang()
	c.later(c.between(0, 10), c.roll)
	c.later(c.between(20, 60), func() { c.resume(func() bool { return true }) })
}

// roll is a person who restarts a StatefulSet.
func (c *chaos) roll() {
	key := cluster.Key{Namespace: "default", Name: named + "-0"}
	_ = c.world.Kube.World("person").Delete(context.Background(), cluster.Pods, key, "")
}

// hang lets no watch tell anything from now on, those of processes that start
// meanwhile included.
func (c *chaos) hang() {
	c.hung = true
	for _, a := range c.world.Actors {
		c.mute(a)
	}
}

func (c *chaos) mute(a *embedded.Actor) {
	if !c.hung {
		return
	}
	for _, kind := range cluster.Kinds {
		a.Lag(kind, time.Hour)
	}
}

// resume lets the watches tell again; those that expired begin with a list.
func (c *chaos) resume(expired func() bool) {
	c.hung = false
	for _, a := range c.world.Actors {
		anew := expired()
		for _, kind := range cluster.Kinds {
			if anew {
				a.Break(kind)
			}
			a.Lag(kind, c.world.CacheDelay)
		}
	}
}

// keep is the controller of the one StatefulSet: its pod has the same name again
// and again.
func (s *sim) keep() error {
	ctx, client := context.Background(), s.world.Kube.World("statefulset-controller")
	key := cluster.Key{Namespace: "default", Name: named}
	set, err := cluster.Get[*statefulSet](ctx, client, cluster.StatefulSets, key)
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = key.Namespace, named+"-0"
	pod.OwnerReferences = []metav1.OwnerReference{memcluster.OwnerNamed("apps/v1", "StatefulSet", set.Name, set.UID)}
	have, err := cluster.Get[*corev1.Pod](ctx, client, cluster.Pods, cluster.KeyOf(pod))
	wanted := *set.Spec.Replicas > 0
	switch {
	case fault.Is(err, fault.Missing):
		if !wanted {
			return nil
		}
		_, err = client.Create(ctx, pod)
	case err == nil && !wanted && have.DeletionTimestamp == nil:
		err = client.Delete(ctx, cluster.Pods, cluster.KeyOf(have), have.UID)
	}
	return err
}
