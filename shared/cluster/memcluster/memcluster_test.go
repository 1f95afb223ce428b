package memcluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// clock is a manual clock.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time           { return c.now }
func (c *clock) forward(by time.Duration) { c.now = c.now.Add(by) }

func newServer(seed int64) (*memcluster.Server, *clock) {
	c := &clock{memcluster.Epoch}
	return memcluster.New(memcluster.Options{Now: c.Now, Seed: seed}), c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func key(name string) cluster.Key { return cluster.Key{Namespace: "default", Name: name} }

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != kind {
		t.Fatalf("error kind %q (%v), want %q", got, err, kind)
	}
}

func TestSameSeedSameIdentity(t *testing.T) {
	ctx := context.Background()
	born := func(seed int64) (string, string) {
		s, _ := newServer(seed)
		made, err := s.Create(ctx, configMap("a"))
		if err != nil {
			t.Fatal(err)
		}
		return string(made.GetUID()), string(s.UID())
	}
	first, system := born(7)
	again, systemAgain := born(7)
	other, systemOther := born(8)
	if first != again || system != systemAgain {
		t.Errorf("the same seed gave UIDs %s, %s and %s, %s", first, system, again, systemAgain)
	}
	if first == other || system == systemOther {
		t.Error("another seed gave the same UIDs")
	}
	if first == system {
		t.Error("two objects share a UID")
	}
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name   string
		fault  memcluster.Fault
		kind   fault.Kind
		exists bool
	}{
		{"refused", memcluster.Fault{As: fault.Throttled}, fault.Throttled, false},
		{"conflict", memcluster.Fault{Verb: memcluster.VerbCreate, As: fault.Conflict}, fault.Conflict, false},
		{"lost answer", memcluster.Fault{Done: true}, fault.Unknown, true},
		{"lost request", memcluster.Fault{As: fault.Unknown}, fault.Unknown, false},
		{"another actor", memcluster.Fault{Actor: "other", As: fault.Denied}, "", true},
		{"another verb", memcluster.Fault{Verb: memcluster.VerbEvict, As: fault.Denied}, "", true},
		{"another kind", memcluster.Fault{Kind: cluster.Nodes, As: fault.Denied}, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, _ := newServer(1)
			s.InjectFaults(test.fault)
			_, err := s.ClientFor("lifecycle").Create(ctx, configMap("a"))
			wantKind(t, err, test.kind)
			if _, err := s.Get(ctx, cluster.ConfigMaps, key("a")); (err == nil) != test.exists {
				t.Errorf("get after the fault: %v, want it to exist: %t", err, test.exists)
			}
			if struck := len(s.InjectedFaults()) > 0; struck != (test.kind != "") {
				t.Errorf("InjectedFaults = %v", s.InjectedFaults())
			}
		})
	}
}

func TestFaultsEndAndSpareTheServer(t *testing.T) {
	ctx := context.Background()
	s, _ := newServer(1)
	s.InjectFaults(memcluster.Fault{As: fault.Conflict, Times: 2})
	if _, err := s.AsKubernetes("kubelet").Create(ctx, configMap("world")); err != nil {
		t.Errorf("a call of the server itself failed: %v", err)
	}
	for _, name := range []string{"a", "b"} {
		_, err := s.ClientFor("lifecycle").Create(ctx, configMap(name))
		wantKind(t, err, fault.Conflict)
	}
	if _, err := s.ClientFor("lifecycle").Create(ctx, configMap("c")); err != nil {
		t.Errorf("the fault occurred a third time: %v", err)
	}
	if got := s.InjectedFaults()["create ConfigMap: conflict"]; got != 2 {
		t.Errorf("%d faults were counted, want 2: %v", got, s.InjectedFaults())
	}
}

func TestRandomFaultsFollowSeed(t *testing.T) {
	run := func(seed int64) string {
		var pattern strings.Builder
		s, _ := newServer(seed)
		s.InjectFaults(memcluster.Fault{As: fault.Throttled, Chance: 0.5})
		for range 64 {
			mark := "."
			if _, err := s.ClientFor("x").List(context.Background(), cluster.Pods, ""); err != nil {
				mark = "!"
			}
			pattern.WriteString(mark)
		}
		return pattern.String()
	}
	if a, b := run(3), run(3); a != b {
		t.Errorf("the same seed gave different faults:\n%s and\n%s", a, b)
	}
	if a, b := run(3), run(4); a == b {
		t.Errorf("another seed gave the same faults: %s", a)
	}
}

func TestEffectsNameActorAndVerb(t *testing.T) {
	ctx := context.Background()
	s, _ := newServer(1)
	s.ClearEffects()
	lifecycle := s.ClientFor("lifecycle")
	if _, err := lifecycle.Create(ctx, configMap("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := lifecycle.Create(ctx, configMap("a")); err == nil {
		t.Fatal("creating an existing name succeeded")
	}
	if err := s.ClientFor("watcher").Delete(ctx, cluster.ConfigMaps, key("a"), ""); err != nil {
		t.Fatal(err)
	}
	effects := s.Effects()
	if len(effects) != 2 {
		t.Fatalf("%d effects, want 2: a rejected call has no effect", len(effects))
	}
	made, gone := effects[0], effects[1]
	if made.Actor != "lifecycle" || made.Verb != memcluster.VerbCreate || made.Before != nil || made.After == nil {
		t.Errorf("first effect = %+v", made)
	}
	if gone.Actor != "watcher" || gone.Verb != memcluster.VerbDelete || gone.After != nil || gone.UID != made.UID {
		t.Errorf("second effect = %+v", gone)
	}
}

func TestRepeatedEventsAreDropped(t *testing.T) {
	ctx := context.Background()
	s, c := newServer(1)
	say := func(message string) {
		event := cluster.Event{About: configMap("a"), Kind: cluster.ConfigMaps, Type: "Normal", Reason: "R", Message: message, Dedupe: time.Minute, Now: c.now}
		if err := s.Report(ctx, event); err != nil {
			t.Fatal(err)
		}
	}
	say("x")
	say("x")
	say("y")
	c.forward(time.Minute)
	say("x")
	if got := len(s.Events()); got != 3 {
		t.Errorf("%d Events were stored, want 3", got)
	}
}

// With a key, another text or object is not a new Event, but another reason is.
func TestEventsWithAKey(t *testing.T) {
	ctx := context.Background()
	s, c := newServer(1)
	say := func(about, reason, message, key string) {
		event := cluster.Event{
			About: configMap(about), Kind: cluster.ConfigMaps, Type: "Normal", Reason: reason, Message: message, Key: key,
			Dedupe: time.Minute, Now: c.now,
		}
		if err := s.Report(ctx, event); err != nil {
			t.Fatal(err)
		}
	}
	say("a", "R", "1 pod is left", "k")
	say("a", "R", "2 pods are left", "k")
	say("b", "R", "1 pod is left", "k")
	say("a", "Other", "1 pod is left", "k")
	say("a", "R", "1 pod is left", "another")
	c.forward(time.Minute)
	say("a", "R", "3 pods are left", "k")
	var got []string
	for _, e := range s.Events() {
		got = append(got, e.Reason+" "+e.Key+": "+e.Message)
	}
	want := []string{"R k: 1 pod is left", "Other k: 1 pod is left", "R another: 1 pod is left", "R k: 3 pods are left"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A pod-level limit becomes the request, unless containers request the resource.
func TestPodLevelRequestsDefault(t *testing.T) {
	s, _ := newServer(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}}
	s.SeedObjects(pod)
	stored, err := s.Get(t.Context(), cluster.Pods, key("p"))
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi")}
	if diff := cmp.Diff(want, stored.(*corev1.Pod).Spec.Resources.Requests); diff != "" {
		t.Error(diff)
	}
}

func TestGarbage(t *testing.T) {
	ctx := context.Background()
	s, _ := newServer(1)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	s.SeedObjects(node)
	stored, err := s.Get(ctx, cluster.Nodes, cluster.Key{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	owned, foreign := configMap("owned"), configMap("foreign")
	owned.OwnerReferences = []metav1.OwnerReference{memcluster.OwnerReference(stored)}
	foreign.OwnerReferences = []metav1.OwnerReference{memcluster.OwnerReferenceTo("apps/v1", "ReplicaSet", "web-1", "u")}
	s.SeedObjects(owned, foreign, configMap("free"))
	if n := s.CollectGarbage(); n != 0 {
		t.Fatalf("%d objects with existing owners were deleted", n)
	}
	if err := s.Delete(ctx, cluster.Nodes, cluster.Key{Name: "n"}, ""); err != nil {
		t.Fatal(err)
	}
	if n := s.CollectGarbage(); n != 1 {
		t.Errorf("%d objects were deleted, want 1", n)
	}
	if _, err := s.Get(ctx, cluster.ConfigMaps, key("owned")); !fault.Is(err, fault.Missing) {
		t.Errorf("the orphan was not deleted: %v", err)
	}
}

func TestNamespaceIsDeletedWhenEmpty(t *testing.T) {
	ctx := context.Background()
	s, _ := newServer(1)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "held", Finalizers: []string{"a/b"}}}
	s.SeedObjects(held)
	if err := s.Delete(ctx, cluster.Namespaces, cluster.Key{Name: "team"}, ""); err != nil {
		t.Fatal(err)
	}
	s.CollectGarbage()
	if _, err := s.Get(ctx, cluster.Namespaces, cluster.Key{Name: "team"}); err != nil {
		t.Fatalf("the namespace was deleted before its objects: %v", err)
	}
	s.ChangeObject(cluster.ConfigMaps, cluster.KeyOf(held), func(o cluster.Object) { o.SetFinalizers(nil) })
	s.CollectGarbage()
	if _, err := s.Get(ctx, cluster.Namespaces, cluster.Key{Name: "team"}); !fault.Is(err, fault.Missing) {
		t.Fatalf("the empty namespace was not deleted: %v", err)
	}
}
