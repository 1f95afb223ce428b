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

// hop is one handled message with its trace id (its story). A span's trace is that of its
// message (shared/host/telemetry proves that), so equal stories are one trace.
type hop struct {
	typ     event.Type
	subject string
	story   string
	parent  string
}

// told is a small cluster that records its handled messages.
type told struct {
	*embedded.EmbeddedCluster
	t    *testing.T
	hops []hop
}

func tell(t *testing.T, o embedded.Options) *told {
	t.Helper()
	w := &told{t: t}
	o.Seed, o.Region, o.CacheDelay = 1, "ap-northeast-2", 30*time.Millisecond
	o.Observe = func(_ string, m queue.Message, _ time.Time, err error) {
		if e, wrong := event.Decode(m.Body); wrong == nil && err == nil {
			w.hops = append(w.hops, hop{e.Type, e.Subject, e.Correlation, e.Causation})
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

func (w *told) until(what string, done func() bool) {
	w.t.Helper()
	if held, err := w.Run(w.t.Context(), 20*time.Minute, done); err != nil || !held {
		w.t.Fatalf("waiting for %s: %v", what, err)
	}
}

func (w *told) count(kind cluster.Kind, is func(cluster.Object) bool) (n int) {
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

// stories returns the trace ids of the messages of a type, optionally of one subject.
func (w *told) stories(typ event.Type, subject string) []string {
	found := map[string]bool{}
	for _, h := range w.hops {
		if h.typ == typ && (subject == "" || h.subject == subject) {
			found[h.story] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// From pending pods to tagged instances, and from a notice to the end of its instance,
// all messages have the same trace id, including those that a reconcile sends without an
// incoming message.
func TestMessagesHaveTraceOfTheirCause(t *testing.T) {
	w := tell(t, embedded.Options{})
	w.until("the node class to be ready", func() bool {
		return w.count(cluster.NodeClasses, func(o cluster.Object) bool {
			return o.(*karpenter.EC2NodeClass).Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
		}) == 1
	})
	w.scale(5)
	w.until("the pods to run and the instances to be tagged", func() bool { return w.running() == 5 && len(w.stories(event.TagRequestedType, "")) > 0 })
	asked := w.stories(event.PodsUnschedulableType, "")
	for _, typ := range []event.Type{event.PlanMadeType, event.LaunchRequestedType, event.LaunchSettledType, event.TagRequestedType} {
		stories := w.stories(typ, "")
		if len(stories) == 0 {
			t.Errorf("no %s was handled", typ)
		}
		for _, story := range stories {
			if !slices.Contains(asked, story) {
				t.Errorf("%s has the trace %s, the batches have the traces %v", typ, story, asked)
			}
		}
	}
	victim := w.takeBack()
	w.until("the interrupted instance to be terminated", func() bool {
		r, _ := w.Cloud.Record(victim)
		return !r.Gone.IsZero() && w.running() == 5
	})
	noticed, ended := w.stories(event.NodeNoticedType, "instance/"+victim), w.stories(event.TerminateRequestedType, "instance/"+victim)
	if len(noticed) == 0 || len(ended) == 0 {
		t.Fatalf("noticed in the traces %v, terminated in %v", noticed, ended)
	}
	for _, story := range ended {
		if !slices.Contains(noticed, story) {
			t.Errorf("the termination has the trace %s, the notice %v", story, noticed)
		}
	}
}
