package memcluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

func TestKindsArriveIndependently(t *testing.T) {
	s, c := newServer(1)
	cache := s.NewCache(memcluster.CacheOptions{Delay: map[cluster.Kind]time.Duration{cluster.Nodes: time.Minute}})
	cache.DeliverAll()
	s.SeedObjects(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}},
	)
	cache.Advance(c.now)
	if pods, nodes := len(cache.List(cluster.Pods)), len(cache.List(cluster.Nodes)); pods != 1 || nodes != 0 {
		t.Fatalf("the cache has %d pods and %d nodes, want the pod before its node", pods, nodes)
	}
	if want := c.now.Add(time.Minute); !cache.NextDelivery().Equal(want) {
		t.Errorf("NextDelivery = %s, want %s", cache.NextDelivery(), want)
	}
	cache.SetDelay(cluster.Nodes, time.Second)
	c.forward(time.Second)
	if n := cache.Advance(c.now); n != 1 {
		t.Errorf("%d changes arrived without the delay, want 1", n)
	}
	if !cache.NextDelivery().IsZero() {
		t.Errorf("a change is still in flight, due at %s", cache.NextDelivery())
	}
}

func TestFirstListsAreDelayed(t *testing.T) {
	s, c := newServer(1)
	cache := s.NewCache(memcluster.CacheOptions{Delay: map[cluster.Kind]time.Duration{cluster.Pods: time.Second}})
	cache.Advance(c.now)
	if cache.Synced() {
		t.Error("the cache is synced before the list of pods has arrived")
	}
	if len(cache.List(cluster.Namespaces)) == 0 {
		t.Error("the list of namespaces has not arrived")
	}
	c.forward(time.Second)
	cache.Advance(c.now)
	if !cache.Synced() {
		t.Error("the cache is not synced after every list has arrived")
	}
}

func TestBrokenWatchListsAgain(t *testing.T) {
	s, c := newServer(1)
	cache := s.NewCache(memcluster.CacheOptions{})
	s.SeedObjects(configMap("old"))
	cache.DeliverAll()
	untouched, _ := cache.Get(cluster.ConfigMaps, key("old"))
	s.SeedObjects(configMap("new"))
	cache.BreakWatch(cluster.ConfigMaps)
	if n := cache.Advance(c.now); n != 1 {
		t.Errorf("%d changes arrived, want only the new list", n)
	}
	if n := len(cache.List(cluster.ConfigMaps)); n != 2 {
		t.Errorf("%d objects in the cache, want 2", n)
	}
	if again, _ := cache.Get(cluster.ConfigMaps, key("old")); again != untouched {
		t.Error("an unchanged object was copied again")
	}
}

func TestMutationsOfTheCacheAreFound(t *testing.T) {
	for _, uncopied := range []bool{false, true} {
		checkMutationsAreFound(t, memcluster.CacheOptions{FindMutated: true, Uncopied: uncopied})
	}
}

func checkMutationsAreFound(t *testing.T, options memcluster.CacheOptions) {
	t.Helper()
	s, _ := newServer(1)
	s.SeedObjects(configMap("a"))
	cache := s.NewCache(options)
	cache.DeliverAll()
	if got := cache.ListMutated(); len(got) != 0 {
		t.Fatalf("a new cache has changed objects: %v", got)
	}
	object, _ := cache.Get(cluster.ConfigMaps, key("a"))
	object.SetLabels(map[string]string{"x": "y"})
	if got := cache.ListMutated(); len(got) != 1 || got[0] != "ConfigMap default/a" {
		t.Errorf("changed objects = %v", got)
	}
	stored, err := s.Get(context.Background(), cluster.ConfigMaps, key("a"))
	if reached := err == nil && len(stored.GetLabels()) > 0; err != nil || reached != options.Uncopied {
		t.Errorf("with Uncopied %t, the server has the labels %v, %v", options.Uncopied, stored.GetLabels(), err)
	}
}

// With any delay and jitter, a cache shows the states of an object in order, and finally
// the server's.
func TestCachesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s, c := newServer(rapid.Int64().Draw(t, "seed"))
		cache := s.NewCache(memcluster.CacheOptions{Jitter: 5 * time.Second})
		last := map[cluster.Key]string{}
		look := func() {
			for _, o := range cache.List(cluster.ConfigMaps) {
				// Versions are decimal numbers of increasing length, so pad them before the
				// comparison.
				now, k := fmt.Sprintf("%12s", o.GetResourceVersion()), cluster.KeyOf(o)
				if now < last[k] {
					t.Fatalf("%s changed from version %s back to %s", k, last[k], now)
				}
				last[k] = now
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			switch rapid.SampledFrom([]string{"create", "delete", "change", "time", "lag", "break"}).Draw(t, "step") {
			case "create":
				_, _ = s.Create(ctx, configMap(name))
			case "delete":
				_ = s.Delete(ctx, cluster.ConfigMaps, key(name), "")
			case "change":
				s.ChangeObject(cluster.ConfigMaps, key(name), func(o cluster.Object) {
					o.SetLabels(map[string]string{"v": o.GetResourceVersion()})
				})
			case "time":
				c.forward(time.Duration(rapid.IntRange(0, 4).Draw(t, "s")) * time.Second)
			case "lag":
				cache.SetDelay(cluster.ConfigMaps, time.Duration(rapid.IntRange(0, 60).Draw(t, "lag"))*time.Second)
			case "break":
				cache.BreakWatch(cluster.ConfigMaps)
			}
			cache.Advance(c.now)
			look()
		}
		cache.SetDelay(cluster.ConfigMaps, 0)
		c.forward(time.Minute)
		cache.Advance(c.now)
		look()
		want, err := s.List(ctx, cluster.ConfigMaps, "")
		if err != nil {
			t.Fatal(err)
		}
		got := cache.List(cluster.ConfigMaps)
		if len(got) != len(want) {
			t.Fatalf("%d objects in the cache, %d on the server", len(got), len(want))
		}
		for i := range got {
			if got[i].GetResourceVersion() != want[i].GetResourceVersion() || cluster.KeyOf(got[i]) != cluster.KeyOf(want[i]) {
				t.Fatalf("cached object %s, want %s", cluster.KeyOf(got[i]), cluster.KeyOf(want[i]))
			}
		}
	})
}
