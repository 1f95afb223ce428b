package watcher_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

// maxLonePodDelay is the longest time until the batch of a lone pod is sent.
const maxLonePodDelay = 100 * time.Millisecond

// liveWatcher is a watcher whose loop runs as in its main, on the test's clock.
type liveWatcher struct {
	*harness
	changed chan struct{}
	sent    chan time.Time
}

func startWatcher(t *testing.T) *liveWatcher {
	t.Helper()
	s := &harness{t: t, Server: memcluster.New(memcluster.Options{Now: time.Now}), blobs: memblob.New(memblob.Options{Now: time.Now})}
	l := &liveWatcher{harness: s, changed: make(chan struct{}, 1), sent: make(chan time.Time, 1)}
	s.planner.t, s.disruption.t, s.catalog.t = t, t, t
	s.planner.onSend = func() { l.sent <- time.Now() }
	s.cache = s.NewCache(memcluster.CacheOptions{Trim: watcher.Trims(false), FindMutated: true})
	s.now = time.Now()
	s.publishCatalogue(s.now)
	s.svc = watcher.New(watcher.Config{
		Client: s.ClientFor("pod-1"), Cache: s.cache, Blobs: s.blobs, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Now: time.Now,
	})
	loop := host.Loop{Reconcile: s.svc.Step, Interval: watcher.StepInterval, NextDue: s.svc.NextStep, MinPause: s.svc.MinPause, Changed: l.changed}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = loop.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return l
}

// flushWatches delivers the pending watch events.
func (l *liveWatcher) flushWatches() {
	l.cache.DeliverAll()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// replaceRunningPod replaces a running pod by another.
func (l *liveWatcher) replaceRunningPod(turn int) {
	name := fmt.Sprint("running-", turn%3)
	_ = l.DeletePod(l.t.Context(), cluster.Key{Namespace: "default", Name: name}, "", 0)
	p := unschedulable("default", name)
	p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
	l.SeedObjects(p)
	l.flushWatches()
}

// The batch of a lone pod is sent in time, whether the cluster is idle or its running pods change
// all the time.
func TestLonePodIsSentSoon(t *testing.T) {
	// The compressor belongs to the whole process, not to a test's bubble.
	if _, _, err := blob.Encode("things", nil); err != nil {
		t.Fatal(err)
	}
	for _, turnover := range []time.Duration{0, 40 * time.Millisecond} {
		t.Run(fmt.Sprint("a pod is replaced every ", turnover), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkLonePods(t, turnover) })
		})
	}
}

func checkLonePods(t *testing.T, turnover time.Duration) {
	l := startWatcher(t)
	l.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	l.flushWatches()
	turn := 0
	// idle advances the clock in a cluster without pending pods.
	idle := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); turn++ {
			if turnover == 0 {
				time.Sleep(d)
				continue
			}
			time.Sleep(min(turnover, time.Until(end)))
			l.replaceRunningPod(turn)
		}
	}
	worst := time.Duration(0)
	for i := range 40 {
		// Each pod arrives at another time between two steps.
		idle(11*time.Second + time.Duration(i)*13*time.Millisecond)
		name := fmt.Sprint("lone-", i)
		came := time.Now()
		l.addPending(name)
		l.flushWatches()
		worst = max(worst, (<-l.sent).Sub(came))
		synctest.Wait()
		if _, batch := l.takeBatch(); len(batch.Pending) != 1 || len(batch.Pending[0].Pods) != 1 {
			t.Fatalf("got batch %+v", batch.Pending)
		}
		l.applyPlan(outbox.Done)
		if err := l.DeletePod(t.Context(), cluster.Key{Namespace: "default", Name: name}, "", 0); err != nil {
			t.Fatal(err)
		}
		l.flushWatches()
	}
	if worst > maxLonePodDelay {
		t.Errorf("a lone pod was sent after %s, want at most %s", worst, maxLonePodDelay)
	}
	t.Logf("a lone pod was sent after %s at most", worst)
}
