package wire

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// tracedCluster is a small cluster whose services export their spans to a collector.
type tracedCluster struct {
	*recordedCluster
	*collector
	exporters []*telemetry.Telemetry
}

func startTracedCluster(t *testing.T) *tracedCluster {
	t.Helper()
	w := &tracedCluster{collector: collect(t)}
	w.recordedCluster = startRecordedCluster(t, embedded.Options{Telemetry: func(_, service string) embedded.ActorTelemetry {
		voice, err := telemetry.New(t.Context(), telemetry.Options{Service: service, Cluster: "demo", Out: t.Output(), Level: 12, Tracing: settings.Tracing{HasEndpoint: true}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = voice.Close() })
		w.exporters = append(w.exporters, voice)
		return voice
	}})
	return w
}

// restart kills the processes of the services, and starts new ones.
func (w *tracedCluster) restart(services ...string) {
	for _, a := range w.Actors {
		if slices.Contains(services, a.Service) {
			a.Restart()
		}
	}
}

// waitForSpan waits until the collector has a span of the name.
func (w *tracedCluster) waitForSpan(name string) {
	w.t.Helper()
	w.waitUntil(name, func() bool { w.flush(); return len(w.named(name)) > 0 })
}

func (w *tracedCluster) flush() {
	for _, v := range w.exporters {
		v.Flush(context.Background())
	}
}

// scaleDeployment sets the number of pods.
func (w *recordedCluster) scaleDeployment(replicas int32) {
	w.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: "inflate"}, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = new(replicas)
	})
}

func (w *recordedCluster) countRunning() int {
	return w.countObjects(cluster.Pods, func(o cluster.Object) bool { return o.(*corev1.Pod).Status.Phase == corev1.PodRunning })
}

// requireTrace fails unless a trace begins with one of the spans and has all others below it. It
// returns the first span.
func (w *tracedCluster) requireTrace(begins string, then ...string) span {
	w.t.Helper()
	var why string
	for _, top := range w.named(begins) {
		missing := slices.IndexFunc(then, func(name string) bool {
			return !slices.ContainsFunc(w.named(name), func(s span) bool { return w.below(s, top) })
		})
		if missing < 0 {
			return top
		}
		why = then[missing] + " is missing below " + top.String() + ":\n" + w.trace(top.trace)
	}
	w.t.Fatalf("no span %q leads to all of %q: %s", begins, then, why)
	return span{}
}

// launchHops and noticeHops are the hops from a pod to its node, and from a notice to the
// end of its instance, through every service.
var (
	launchHops = []string{
		"process pods.unschedulable.v1", "process plan.made.v1", "process launch.requested.v1", "process launch.settled.v1", "process tag.requested.v1",
		"node initialized", "pods running",
	}
	noticeHops = []string{"process node.noticed.v1", "process terminate.requested.v1", "node gone"}
)

// One trace covers the time from pending pods to running pods, and one the time from a
// notice to the end of its instance. They begin with AWS's events, which have no trace,
// and end with changes that only a reconcile observes. So does the trace of a disruption.
// Work for several traces is linked to them. All this also holds if services are killed
// in between.
func TestOneTraceFromStartToEnd(t *testing.T) {
	for name, die := range map[string][]string{"without a restart": nil, "restart of lifecycle": {"lifecycle"}, "restart of all services": {"watcher", "lifecycle", "planner", "launcher", "interruption"}} {
		t.Run(name, func(t *testing.T) {
			w := startTracedCluster(t)
			w.waitUntil("the node class to be ready", func() bool {
				return w.countObjects(cluster.NodeClasses, func(o cluster.Object) bool {
					return o.(*karpenter.EC2NodeClass).Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
				}) == 1
			})
			w.scaleDeployment(5)
			for _, at := range []string{"process plan.made.v1", "process launch.requested.v1", "process launch.settled.v1"} {
				w.waitForSpan(at)
				w.restart(die...)
			}
			w.waitUntil("the pods to run", func() bool { return w.countRunning() == 5 })
			w.waitForSpan("pods running")
			w.waitForSpan("node initialized")
			w.requireTrace("pods pending", launchHops...)

			victim := w.interruptSpot()
			w.waitForSpan("process node.noticed.v1")
			w.restart(die...)
			w.waitUntil("the interrupted instance to be terminated", func() bool {
				r, _ := w.Cloud.Record(victim)
				return !r.Gone.IsZero() && w.countRunning() == 5
			})
			w.waitForSpan("node gone")
			notice := w.requireTrace("notice spot-interruption", noticeHops...)
			w.requireTrace("notice of the end", "process instance.gone.v1")
			if end := w.named("notice of the end")[0]; end.trace != notice.trace {
				t.Errorf("the notice is in trace %s, the instance's termination in %s", notice.trace, end.trace)
			}
			w.requireLink("process batch", notice)
			w.requireLink("pods pending", notice)
			w.scaleDeployment(0)
			w.waitUntil("the nodes to be removed", func() bool { return w.countObjects(cluster.NodeClaims, func(cluster.Object) bool { return true }) == 0 })
			w.flush()
			confirmed := w.requireTrace("disruption confirmed", "process disruption.proposed.v1", "process terminate.requested.v1", "node gone")
			if !slices.ContainsFunc(w.named("disruption proposed"), func(s span) bool { return s.trace == confirmed.trace }) {
				t.Errorf("no proposal is in the trace of %s", confirmed)
			}
			if !slices.ContainsFunc(w.named("process cluster.snapshot.v1"), func(s span) bool {
				return slices.ContainsFunc(confirmed.links, func(l string) bool { return strings.HasPrefix(l, s.trace) })
			}) {
				t.Errorf("%s is linked to no snapshot", confirmed)
			}
			if orphans := w.orphans(); len(orphans) > 0 {
				t.Errorf("spans with a missing parent: %q", orphans)
			}
		})
	}
}

// interruptSpot sends AWS's notice for an instance, and returns its id.
func (w *recordedCluster) interruptSpot() string {
	w.t.Helper()
	victim := ""
	for _, r := range w.Cloud.Records() {
		if r.CapacityType == "spot" && r.Ended.IsZero() {
			victim = r.ID
		}
	}
	if !w.Cloud.InterruptSpot(victim) {
		w.t.Fatalf("%q cannot be interrupted", victim)
	}
	return victim
}

// requireLink fails unless a span of the name is linked to the trace.
func (w *tracedCluster) requireLink(name string, story span) {
	w.t.Helper()
	for _, s := range w.named(name) {
		for _, l := range s.links {
			if l[:len(story.trace)] == story.trace {
				if _, known := w.of(story.trace, l[len(story.trace)+1:]); known {
					return
				}
			}
		}
	}
	w.t.Errorf("no %q is linked to %s", name, story)
}
