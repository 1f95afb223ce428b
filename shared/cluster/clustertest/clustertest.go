// Package clustertest is the conformance suite of package cluster, for the model and for
// the adapter with a real API server.
//
// Every behaviour gets its own Subject, so that an implementation may start a new server
// or provide another namespace. Names of cluster-scoped objects contain the namespace, so
// that behaviours on a shared server do not interfere.
package clustertest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Subject is an implementation under test.
type Subject struct {
	Client cluster.Client
	// NewCache opens a cache of all supported kinds, which trims objects with the
	// functions. It is closed when the test ends.
	NewCache func(t *testing.T, trim cluster.Trims) cluster.Feed
	// Break ends a cache's watch of a kind, so that the cache lists the kind again and
	// loses the events in flight. If it is nil, behaviours that need it are skipped.
	Break func(cache cluster.Feed, kind cluster.Kind)
	// Namespace is an existing namespace for this behaviour only.
	Namespace string
	// Wait waits briefly: it advances a model's clock, or pauses with a real server. The
	// suite calls it until a condition holds, at most a thousand times.
	Wait     func()
	Features Features
}

// Features are abilities of a subject beyond the API server.
type Features struct {
	// Custom is set if Karpenter's kinds are installed.
	Custom bool
	// Budgets is set if a controller updates the status of PodDisruptionBudgets. Otherwise
	// the suite writes it.
	Budgets bool
}

// Run tests every behaviour. It tests those of caches with whole objects, and with objects
// that are trimmed by each of trims, which are keyed by a name.
func Run(t *testing.T, open func(t *testing.T) Subject, trims map[string]func() cluster.Trims) {
	behaviours := []struct {
		name   string
		prove  func(*suite)
		custom bool
	}{
		{"create sets UID, version and time", createSetsIdentity, false},
		{"create conflicts with an existing name", takenNames, false},
		{"create requires a name", badNames, false},
		{"reads, updates, deletions and evictions require a name", namelessCalls, false},
		{"create requires an existing namespace", absentNamespace, false},
		{"metadata is validated", badMetadata, false},
		{"requirements are validated", badRequirements, true},
		{"conditions are validated", badConditions, true},
		{"the spec of a NodeClaim is immutable", changedClaim, true},
		{"large ConfigMaps are rejected", largeConfigMap, false},
		{"update is a compare-and-swap", updateConflict, false},
		{"update without a change writes nothing", updateUnchanged, false},
		{"update of a recreated object conflicts", updateSuccessor, false},
		{"update keeps the server's fields", ownFields, false},
		{"spec and status are written separately", status, true},
		{"status update of a kind without status fails", noStatus, false},
		{"finalizers delay deletion", finalizers, false},
		{"PatchAnnotation changes one annotation", patchAnnotation, false},
		{"delete checks the UID", deleteUID, false},
		{"DeleteAsRead checks the version", deleteAsRead, false},
		{"lists are sorted", listsAreOrdered, false},
		{"ListBy returns the pods of a node", listsByNode, false},
		{"objects share no memory", sharesNoMemory, false},
		{"kinds keep their content", kinds, false},
		{"kinds of devices keep their content", deviceKinds, false},
		{"custom kinds keep their content", customKinds, true},
		{"overlays and buffers keep their content", alphaKinds, true},
		{"an unbound pod is deleted at once", unboundPod, false},
		{"a bound pod is deleted after its grace period", gracePeriod, false},
		{"a grace period that has passed leaves one second", passedGrace, false},
		{"a grace period of 0 deletes at once", noGrace, false},
		{"DeletePod checks the UID", deletePodUID, false},
		{"eviction without a budget", evict, false},
		{"eviction within a budget", evictWithin, false},
		{"eviction with two budgets", evictTwo, false},
		{"eviction of an unhealthy pod", evictUnhealthy, false},
		{"eviction of a pending pod", evictPending, false},
		{"caches follow writes", cacheFollowsWrites, false},
		{"caches list existing objects", cacheListsExisting, false},
		{"caches share no memory", cachesShareNothing, false},
		{"caches find by node", cacheFindsByNode, false},
		{"caches follow nodes", cacheFollowsNodes, false},
		{"caches list again after a broken watch", cacheRelistsAfterBreak, false},
		{"caches return each change once", cacheReturnsChangesOnce, false},
		{"TakeChanges names every change of the cache", changesMatchCache, false},
		{"events are accepted", events, false},
		{"a cancelled call does nothing", cancelled, false},
	}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			s := open(t)
			if b.custom && !s.Features.Custom {
				t.Skip("Karpenter's kinds are not installed")
			}
			b.prove(&suite{T: t, Subject: s})
		})
		if !strings.HasPrefix(b.name, "caches") {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(trims)) {
			t.Run(b.name+", trimmed for "+name, func(t *testing.T) {
				b.prove(&suite{T: t, Subject: open(t), trim: trims[name]()})
			})
		}
	}
}

// suite is one behaviour's test with its subject.
type suite struct {
	*testing.T
	Subject
	// trim has the trim functions of the behaviour's caches.
	trim cluster.Trims
}

func (s *suite) ctx() context.Context { return s.Context() }

// key returns the key of an object in the behaviour's namespace.
func (s *suite) key(name string) cluster.Key { return cluster.Key{Namespace: s.Namespace, Name: name} }

func (s *suite) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
}

// global returns the metadata of a cluster-scoped object.
func (s *suite) global(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: s.Namespace + "-" + name}
}

func (s *suite) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: s.meta(name), Data: map[string]string{"a": "1"}}
}

// create creates an object and deletes it when the test ends.
func create[T cluster.Object](s *suite, object T) T {
	s.Helper()
	made, err := s.Client.Create(s.ctx(), object)
	if err != nil {
		s.Fatalf("creating %s: %v", cluster.KeyOf(object), err)
	}
	kind, _ := cluster.KindOf(object)
	s.Cleanup(func() {
		// The test's own context has already ended.
		ctx := context.Background()
		_ = s.Client.Delete(ctx, kind, cluster.KeyOf(made), "")
		if kind == cluster.Pods {
			_ = s.Client.DeletePod(ctx, cluster.KeyOf(made), "", 0)
		}
	})
	return made.(T)
}

func update[T cluster.Object](s *suite, object T) T {
	s.Helper()
	stored, err := s.Client.Update(s.ctx(), object)
	if err != nil {
		s.Fatalf("updating %s: %v", cluster.KeyOf(object), err)
	}
	return stored.(T)
}

func updateStatus[T cluster.Object](s *suite, object T) T {
	s.Helper()
	stored, err := s.Client.UpdateStatus(s.ctx(), object)
	if err != nil {
		s.Fatalf("updating the status of %s: %v", cluster.KeyOf(object), err)
	}
	return stored.(T)
}

func get[T cluster.Object](s *suite, kind cluster.Kind, key cluster.Key) T {
	s.Helper()
	object, err := cluster.Get[T](s.ctx(), s.Client, kind, key)
	if err != nil {
		s.Fatalf("reading %s %s: %v", kind.Kind, key, err)
	}
	return object
}

// wantKind checks the kind of an error.
func (s *suite) wantKind(err error, kind fault.Kind, what string) {
	s.Helper()
	if err == nil {
		s.Fatalf("%s succeeded, want a %s error", what, kind)
	}
	if !fault.Is(err, kind) {
		s.Fatalf("%s: error kind %q, want %q: %v", what, fault.KindOf(err), kind, err)
	}
}

// waitForDeletion waits until an object is deleted.
func (s *suite) waitForDeletion(kind cluster.Kind, key cluster.Key) {
	s.Helper()
	s.eventually(kind.Kind+" "+key.String()+" is deleted", func() bool {
		_, err := s.Client.Get(s.ctx(), kind, key)
		return fault.Is(err, fault.Missing)
	})
}

// eventually waits until a condition holds.
func (s *suite) eventually(what string, holds func() bool) {
	s.Helper()
	for range 1000 {
		if holds() {
			return
		}
		s.Wait()
	}
	s.Fatalf("timed out waiting until %s", what)
}

// areNear tolerates the server's clock and its precision of seconds.
func areNear(got, want time.Time) bool {
	gap := got.Sub(want)
	return -10*time.Second < gap && gap < 10*time.Second
}
