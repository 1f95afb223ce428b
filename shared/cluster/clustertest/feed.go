package clustertest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// cacheReturnsChangesOnce changes objects one after the other and checks that TakeChanges returns each
// change once. It ignores other namespaces, which others may change.
func cacheReturnsChangesOnce(s *suite) {
	create(s, s.configMap("old"))
	cache := s.newCache()
	if first := cache.TakeChanges(cluster.ConfigMaps); !first.All || len(first.Keys) != 0 {
		s.Errorf("first TakeChanges = %+v, want All without keys", first)
	}
	s.wantChanges(cache, nil)
	made := create(s, s.configMap("a"))
	s.waitForCache(cache, cluster.ConfigMaps, s.key("a"), anyObject)
	s.wantChanges(cache, []string{"a"})
	s.wantChanges(cache, nil)

	made.Data["a"] = "2"
	made = update(s, made)
	create(s, s.configMap("b"))
	s.waitForCache(cache, cluster.ConfigMaps, s.key("a"), func(o cluster.Object) bool { return o.GetResourceVersion() == made.ResourceVersion })
	s.waitForCache(cache, cluster.ConfigMaps, s.key("b"), anyObject)
	s.wantChanges(cache, []string{"a", "b"})

	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), ""); err != nil {
		s.Fatal(err)
	}
	s.eventually("the cache has removed the object", func() bool {
		_, ok := cache.Get(cluster.ConfigMaps, s.key("a"))
		return !ok
	})
	s.wantChanges(cache, []string{"a"})
	s.wantChanges(cache, nil)
}

// wantChanges checks the keys that TakeChanges returns now.
func (s *suite) wantChanges(cache cluster.Feed, want []string) {
	s.Helper()
	changed := cache.TakeChanges(cluster.ConfigMaps)
	var got []string
	for _, key := range changed.Keys {
		if key.Namespace == s.Namespace {
			got = append(got, key.Name)
		}
	}
	if changed.All || !slices.Equal(got, want) {
		s.Errorf("TakeChanges = %v (all: %t), want %v", got, changed.All, want)
	}
}

// changesMatchCache maintains a copy by reading only the keys from TakeChanges, while objects
// are created, changed and deleted.
func changesMatchCache(s *suite) {
	cache := s.newCache()
	cache.TakeChanges(cluster.ConfigMaps)
	held := map[string]string{}
	shown := func() map[string]string {
		out := map[string]string{}
		for _, o := range s.own(cache.List(cluster.ConfigMaps)) {
			out[o.GetName()] = o.GetResourceVersion()
		}
		return out
	}
	follow := func() {
		changed := cache.TakeChanges(cluster.ConfigMaps)
		if changed.All {
			held = shown()
		}
		for _, key := range changed.Keys {
			if key.Namespace != s.Namespace {
				continue
			}
			delete(held, key.Name)
			if o, ok := cache.Get(cluster.ConfigMaps, key); ok {
				held[key.Name] = o.GetResourceVersion()
			}
		}
	}
	held = shown()
	for i := range 12 {
		name := fmt.Sprintf("c%d", i%3)
		if _, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key(name)); err != nil {
			create(s, s.configMap(name))
		} else if i%2 == 0 {
			changed := s.configMap(name)
			changed.ResourceVersion = s.version(name)
			changed.Data["a"] = name + strconv.Itoa(i)
			update(s, changed)
		} else if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key(name), ""); err != nil {
			s.Fatal(err)
		}
		s.Wait()
		follow()
	}
	last := create(s, s.configMap("last"))
	s.waitForCache(cache, cluster.ConfigMaps, s.key("last"), func(o cluster.Object) bool { return o.GetUID() == last.UID })
	follow()
	if got, want := held, shown(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("copy built from TakeChanges: %v, cache: %v", got, want)
	}
}

func (s *suite) version(name string) string {
	s.Helper()
	object, err := s.Client.Get(s.ctx(), cluster.ConfigMaps, s.key(name))
	if err != nil {
		s.Fatal(err)
	}
	return object.GetResourceVersion()
}
