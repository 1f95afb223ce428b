package wire

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// handledMessage is one handled message with its trace id (its story). A span's trace is that of its
// message (shared/host/telemetry proves that), so equal stories are one trace.
type handledMessage struct {
	typ     event.Type
	subject string
	trace   string
	parent  string
}

// recordedCluster is a small cluster that records its handled messages.
type recordedCluster struct {
	*embedded.EmbeddedCluster
	t       *testing.T
	handled []handledMessage
}

func startRecordedCluster(t *testing.T, o embedded.Options) *recordedCluster {
	t.Helper()
	w := &recordedCluster{t: t}
	o.Seed, o.Region, o.CacheDelay = 1, "ap-northeast-2", 30*time.Millisecond
	o.Observe = func(_ string, m queue.Message, _ time.Time, err error) {
		if e, wrong := event.Decode(m.Body); wrong == nil && err == nil {
			w.handled = append(w.handled, handledMessage{e.Type, e.Subject, e.Correlation, e.Causation})
		}
	}
	world, err := embedded.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.EmbeddedCluster = world
	for _, name := range []string{"nodepool.yaml", "inflate.yaml"} {
		data, err := os.ReadFile("../../../services/cli/internal/demo/manifests/" + name)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := manifest.Read(name, data, manifest.Expand(map[string]string{"EKS_CLUSTER_NAME": world.Cluster, "KARPENTER_NODE_ROLE": world.AWS.Role}))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range manifest.Objects(documents) {
			if kind, _ := cluster.KindOf(o); kind == cluster.Deployments {
				o.SetNamespace("default")
			}
			if err := world.Apply(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

func (w *recordedCluster) waitUntil(what string, done func() bool) {
	w.t.Helper()
	if held, err := w.Run(w.t.Context(), 20*time.Minute, done); err != nil || !held {
		w.t.Fatalf("waiting for %s: %v", what, err)
	}
}

func (w *recordedCluster) countObjects(kind cluster.Kind, is func(cluster.Object) bool) (n int) {
	objects, err := w.Kube.AsKubernetes("test").List(context.Background(), kind, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		if is(o) {
			n++
		}
	}
	return n
}

// traceIDs returns the trace ids of the messages of a type, optionally of one subject.
func (w *recordedCluster) traceIDs(typ event.Type, subject string) []string {
	found := map[string]bool{}
	for _, h := range w.handled {
		if h.typ == typ && (subject == "" || h.subject == subject) {
			found[h.trace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// From pending pods to tagged instances, and from a notice to the end of its instance,
// all messages have the same trace id, including the messages that a reconcile sends without an
// incoming message.
func TestMessagesHaveTraceOfTheirCause(t *testing.T) {
	w := startRecordedCluster(t, embedded.Options{})
	w.waitUntil("the node class to be ready", func() bool {
		return w.countObjects(cluster.NodeClasses, func(o cluster.Object) bool {
			return o.(*karpenter.EC2NodeClass).Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
		}) == 1
	})
	w.scaleDeployment(5)
	w.waitUntil("the pods to run and the instances to be tagged", func() bool { return w.countRunning() == 5 && len(w.traceIDs(event.TagRequestedType, "")) > 0 })
	asked := w.traceIDs(event.PodsUnschedulableType, "")
	for _, typ := range []event.Type{event.PlanMadeType, event.LaunchRequestedType, event.LaunchSettledType, event.TagRequestedType} {
		stories := w.traceIDs(typ, "")
		if len(stories) == 0 {
			t.Errorf("no %s was handled", typ)
		}
		for _, story := range stories {
			if !slices.Contains(asked, story) {
				t.Errorf("%s has the trace %s, the batches have the traces %v", typ, story, asked)
			}
		}
	}
	victim := w.interruptSpot()
	w.waitUntil("the interrupted instance to be terminated", func() bool {
		r, _ := w.Cloud.Record(victim)
		return !r.Gone.IsZero() && w.countRunning() == 5
	})
	noticed, ended := w.traceIDs(event.NodeNoticedType, "instance/"+victim), w.traceIDs(event.TerminateRequestedType, "instance/"+victim)
	if len(noticed) == 0 || len(ended) == 0 {
		t.Fatalf("noticed in the traces %v, terminated in %v", noticed, ended)
	}
	for _, story := range ended {
		if !slices.Contains(noticed, story) {
			t.Errorf("the termination has the trace %s, the notice %v", story, noticed)
		}
	}
}
