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

// ending is when a fault ends, and the function that ends it.
type ending struct {
	at time.Time
	do func()
}

// drawDuration draws a number of seconds.
func (c *chaos) drawDuration(least, most int) time.Duration {
	return time.Duration(least+c.random.IntN(most-least+1)) * time.Second
}

// scheduleEnd calls do after this time, or when the faults stop.
func (c *chaos) scheduleEnd(after time.Duration, do func()) {
	c.endings = append(c.endings, ending{c.world.Now().Add(after), do})
}

// runDueEnds calls the functions that are due.
func (c *chaos) runDueEnds(now time.Time) {
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

// silenceAPIServer makes the API server answer no service for a minute and stops all watches. The first calls take
// effect, but their answers are lost. Other controllers continue.
func (c *chaos) silenceAPIServer() {
	if c.apiServerFails || c.random.IntN(2) == 0 {
		return
	}
	c.apiServerFails = true
	c.faults["silence"]++
	c.world.Kube.InjectFaults(memcluster.Fault{As: fault.Unknown, Done: true, Times: 1 + c.random.IntN(3)}, memcluster.Fault{As: fault.Unknown})
	c.hangWatches()
	c.scheduleEnd(c.drawDuration(0, 10), c.interruptInstance)
	c.scheduleEnd(c.drawDuration(30, 75), func() {
		c.recoverAPIServer()
		// A watch continues or ends with 410.
		c.resumeWatches(func() bool { return c.random.IntN(2) == 0 })
	})
}

// failManyCalls makes the API server fail many calls with one kind of error: 409 for writes, 429, or 500, of which
// some take effect. It may affect one kind of object only. EC2 interrupts an instance meanwhile.
func (c *chaos) failManyCalls() {
	if c.apiServerFails {
		return
	}
	c.apiServerFails = true
	chance := 0.3 + 0.7*c.random.Float64()
	// Notices change NodeClaims, so these fail most often.
	kind := []cluster.Kind{{}, cluster.NodeClaims, cluster.NodeClaims, cluster.NodeClaims, cluster.Nodes, cluster.Pods}[c.random.IntN(6)]
	var faults []memcluster.Fault
	switch c.random.IntN(3) {
	case 0:
		c.faults["burst of 409"]++
		// A create fails with a conflict only if the name exists.
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
	c.world.Kube.InjectFaults(faults...)
	c.scheduleEnd(c.drawDuration(0, 3), c.interruptInstance)
	c.scheduleEnd(c.drawDuration(5, 30), c.recoverAPIServer)
}

// rejectNodeClaims makes the API server reject some new NodeClaims for longer than the watcher waits for a plan,
// so that plans are abandoned with some NodeClaims of an intent created.
func (c *chaos) rejectNodeClaims() {
	if c.apiServerFails || c.random.IntN(2) == 0 {
		return
	}
	c.apiServerFails = true
	c.faults["rejected NodeClaims"]++
	as := []fault.Kind{fault.Unknown, fault.Denied, fault.Invalid}[c.random.IntN(3)]
	c.world.Kube.InjectFaults(memcluster.Fault{As: as, Verb: memcluster.VerbCreate, Kind: cluster.NodeClaims, Chance: 0.4 + 0.5*c.random.Float64()})
	c.scheduleEnd(c.drawDuration(100, 240), c.recoverAPIServer)
}

// recoverAPIServer ends the faults of the API server.
func (c *chaos) recoverAPIServer() {
	c.apiServerFails = false
	c.world.Kube.ClearFaults()
}

// expireWatches stops every watch and ends it with 410, so that watchers miss intermediate states: a pod that was
// deleted and created again under its name seems to have never been deleted.
func (c *chaos) expireWatches() {
	if c.watchesHang {
		return
	}
	c.faults["expired watches"]++
	c.hangWatches()
	c.scheduleEnd(c.drawDuration(0, 10), c.restartStatefulSet)
	c.scheduleEnd(c.drawDuration(20, 60), func() { c.resumeWatches(func() bool { return true }) })
}

// restartStatefulSet deletes the pod of the StatefulSet.
func (c *chaos) restartStatefulSet() {
	key := cluster.Key{Namespace: "default", Name: statefulSetName + "-0"}
	_ = c.world.Kube.AsKubernetes("person").Delete(context.Background(), cluster.Pods, key, "")
}

// hangWatches stops all watches, also those of processes that start meanwhile.
func (c *chaos) hangWatches() {
	c.watchesHang = true
	for _, a := range c.world.Actors {
		c.hangWatchesOf(a)
	}
}

func (c *chaos) hangWatchesOf(a *embedded.Actor) {
	if !c.watchesHang {
		return
	}
	for _, kind := range cluster.Kinds {
		a.DelayWatch(kind, time.Hour)
	}
}

// resumeWatches starts the watches again; those for which expired returns true begin with a list.
func (c *chaos) resumeWatches(expired func() bool) {
	c.watchesHang = false
	for _, a := range c.world.Actors {
		isExpired := expired()
		for _, kind := range cluster.Kinds {
			if isExpired {
				a.BreakWatch(kind)
			}
			a.DelayWatch(kind, c.world.CacheDelay)
		}
	}
}

// reconcileStatefulSet is the controller of the StatefulSet, whose pod always has the same name. It reads again only after a
// write.
func (s *sim) reconcileStatefulSet() error {
	if s.statefulSetVersion == s.world.Kube.Version() {
		return nil
	}
	s.statefulSetVersion = s.world.Kube.Version()
	ctx, client := context.Background(), s.world.Kube.AsKubernetes("statefulset-controller")
	key := cluster.Key{Namespace: "default", Name: statefulSetName}
	set, err := cluster.Get[*statefulSet](ctx, client, cluster.StatefulSets, key)
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = key.Namespace, statefulSetName+"-0"
	pod.OwnerReferences = []metav1.OwnerReference{memcluster.OwnerReferenceTo("apps/v1", "StatefulSet", set.Name, set.UID)}
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
