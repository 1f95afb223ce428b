package clustertest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func listsAreOrdered(s *suite) {
	other := s.Namespace + "-b"
	create(s, &corev1.Namespace{ObjectMeta: s.global("b")})
	for _, name := range []string{"c", "a", "b"} {
		create(s, s.lease(name))
	}
	elsewhere := s.lease("a")
	elsewhere.Namespace = other
	create(s, elsewhere)
	if got := s.names(s.listOf(s.Namespace)); !slices.Equal(got, []string{"a", "b", "c"}) {
		s.Errorf("list of the namespace = %v", got)
	}
	everywhere := s.listOf("")
	var ours []string
	for _, o := range everywhere {
		if o.GetNamespace() == s.Namespace || o.GetNamespace() == other {
			ours = append(ours, cluster.KeyOf(o).String())
		}
	}
	want := []string{s.Namespace + "/a", s.Namespace + "/b", s.Namespace + "/c", other + "/a"}
	if !slices.Equal(ours, want) {
		s.Errorf("list of all namespaces = %v, want %v", ours, want)
	}
	if got := s.listOf(s.Namespace + "-absent"); len(got) != 0 {
		s.Errorf("list of a missing namespace = %v", s.names(got))
	}
}

// listsByNode checks that ListBy returns exactly the pods of a node.
func listsByNode(s *suite) {
	for _, name := range []string{"c", "a", "b"} {
		s.running(name, true)
	}
	create(s, s.pod("loose"))
	found := func(node string) []string {
		objects, err := s.Client.ListBy(s.ctx(), cluster.Pods, cluster.ByNode, node)
		if err != nil {
			s.Fatal(err)
		}
		return s.names(s.own(objects))
	}
	if got := found(s.Namespace + "-nowhere"); !slices.Equal(got, []string{"a", "b", "c"}) {
		s.Errorf("pods on the node = %v", got)
	}
	if got := found(s.Namespace + "-nowhere-2"); len(got) != 0 {
		s.Errorf("pods on a missing node = %v", got)
	}
}

func (s *suite) listOf(namespace string) []cluster.Object {
	s.Helper()
	objects, err := s.Client.List(s.ctx(), cluster.Leases, namespace)
	if err != nil {
		s.Fatal(err)
	}
	return objects
}

func (s *suite) names(objects []cluster.Object) (out []string) {
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	return out
}

func sharesNoMemory(s *suite) {
	given := s.configMap("a")
	made := create(s, given)
	given.Data["a"] = "changed in the argument"
	made.Data["a"] = "changed in the result of Create"
	read := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if read.Data["a"] != "1" {
		s.Fatalf("a caller changed the stored object to %s", read.Data["a"])
	}
	read.Data["a"] = "changed in the result of Get"
	listed, err := s.Client.List(s.ctx(), cluster.ConfigMaps, s.Namespace)
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range listed {
		if o := o.(*corev1.ConfigMap); o.Name == "a" && o.Data["a"] != "1" {
			s.Fatalf("a caller changed the stored object to %s", o.Data["a"])
		}
	}
}

// waitForCache waits until a cache has an object that meets the condition, and returns it.
func (s *suite) waitForCache(cache cluster.Cache, kind cluster.Kind, key cluster.Key, holds func(cluster.Object) bool) cluster.Object {
	s.Helper()
	var found cluster.Object
	s.eventually(kind.Kind+" "+key.String()+" is in the cache with the expected content", func() bool {
		object, ok := cache.Get(kind, key)
		found = object
		return ok && holds(object)
	})
	return found
}

func anyObject(cluster.Object) bool { return true }

func (s *suite) newCache() cluster.Feed {
	s.Helper()
	cache := s.NewCache(s.T, s.trim)
	s.eventually("the cache is synced", cache.Synced)
	return cache
}

func cacheListsExisting(s *suite) {
	for _, name := range []string{"c", "a", "b"} {
		create(s, s.lease(name))
	}
	cache := s.newCache()
	var got []string
	for _, o := range cache.List(cluster.Leases) {
		if o.GetNamespace() == s.Namespace {
			got = append(got, o.GetName())
		}
	}
	if !slices.Equal(got, []string{"a", "b", "c"}) {
		s.Errorf("list of a synced cache = %v, want [a b c]", got)
	}
	if !slices.IsSortedFunc(cache.List(cluster.Leases), func(a, b cluster.Object) int {
		return slices.Compare([]string{a.GetNamespace(), a.GetName()}, []string{b.GetNamespace(), b.GetName()})
	}) {
		s.Error("the list is not sorted by namespace and name")
	}
}

func cacheFollowsWrites(s *suite) {
	cache := s.newCache()
	if _, ok := cache.Get(cluster.ConfigMaps, s.key("a")); ok {
		s.Fatal("the cache has an object that was not created")
	}
	made := create(s, s.configMap("a"))
	seen := s.waitForCache(cache, cluster.ConfigMaps, s.key("a"), anyObject)
	if seen.GetUID() != made.UID || seen.GetResourceVersion() != made.ResourceVersion {
		s.Errorf("cached object = %+v", seen)
	}
	made.Data["a"] = "2"
	made = update(s, made)
	s.waitForCache(cache, cluster.ConfigMaps, s.key("a"), func(o cluster.Object) bool {
		return o.(*corev1.ConfigMap).Data["a"] == "2" && o.GetResourceVersion() == made.ResourceVersion
	})
	if seen.(*corev1.ConfigMap).Data["a"] != "1" {
		s.Error("the cache changed an object that it had returned")
	}
	if err := s.Client.Delete(s.ctx(), cluster.ConfigMaps, s.key("a"), ""); err != nil {
		s.Fatal(err)
	}
	s.eventually("the cache has removed the object", func() bool {
		_, ok := cache.Get(cluster.ConfigMaps, s.key("a"))
		return !ok
	})
}

// node creates a node.
func (s *suite) node() *corev1.Node {
	s.Helper()
	return create(s, &corev1.Node{ObjectMeta: s.global("n")})
}

// nodeWrites is the number of writes to a node that controllers write, too.
const nodeWrites = 20

// changeNode reads a node, changes it and writes it. It retries if a controller of a real
// control plane has written the node in between.
func (s *suite) changeNode(node *corev1.Node, change func(*corev1.Node), write func(context.Context, cluster.Object) (cluster.Object, error)) {
	s.Helper()
	for range nodeWrites {
		live := get[*corev1.Node](s, cluster.Nodes, cluster.KeyOf(node)).DeepCopy()
		change(live)
		if _, err := write(s.ctx(), live); err == nil {
			return
		} else if !fault.Is(err, fault.Conflict) {
			s.Fatalf("updating node %s: %v", node.Name, err)
		}
	}
	s.Fatalf("updating node %s: %d conflicts", node.Name, nodeWrites)
}

// taint sets a node's only taint.
func (s *suite) taint(node *corev1.Node, key string) {
	s.Helper()
	s.changeNode(node, func(live *corev1.Node) {
		live.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}, s.Client.Update)
}

func tainted(key string) func(cluster.Object) bool {
	return func(o cluster.Object) bool {
		return slices.ContainsFunc(o.(*corev1.Node).Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
}

func cacheFollowsNodes(s *suite) {
	cache := s.newCache()
	node := s.node()
	key := cluster.KeyOf(node)
	s.waitForCache(cache, cluster.Nodes, key, anyObject)
	s.taint(node, "example.com/a")
	s.waitForCache(cache, cluster.Nodes, key, tainted("example.com/a"))
	s.changeNode(node, func(live *corev1.Node) {
		live.Status.Capacity = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("7")}
	}, s.Client.UpdateStatus)
	s.waitForCache(cache, cluster.Nodes, key, func(o cluster.Object) bool {
		pods := o.(*corev1.Node).Status.Capacity[corev1.ResourcePods]
		return pods.Value() == 7
	})
}

// cacheRelistsAfterBreak changes a node, breaks the watch before the change arrives, and checks
// that the next list has the change.
func cacheRelistsAfterBreak(s *suite) {
	if s.Break == nil {
		s.Skip("the subject cannot break a watch")
	}
	cache := s.newCache()
	node := s.node()
	key := cluster.KeyOf(node)
	s.waitForCache(cache, cluster.Nodes, key, anyObject)
	cache.TakeChanges(cluster.Nodes)
	s.taint(node, "example.com/a")
	s.Break(cache, cluster.Nodes)
	s.waitForCache(cache, cluster.Nodes, key, tainted("example.com/a"))
	if changed := cache.TakeChanges(cluster.Nodes); !changed.All && !slices.Contains(changed.Keys, key) {
		s.Errorf("TakeChanges = %+v, want the node", changed)
	}
}

func cachesShareNothing(s *suite) {
	create(s, s.configMap("a"))
	one, two := s.newCache(), s.newCache()
	first, _ := one.Get(cluster.ConfigMaps, s.key("a"))
	first.(*corev1.ConfigMap).Data["a"] = "changed in a cache"
	second, _ := two.Get(cluster.ConfigMaps, s.key("a"))
	stored := get[*corev1.ConfigMap](s, cluster.ConfigMaps, s.key("a"))
	if second.(*corev1.ConfigMap).Data["a"] != "1" || stored.Data["a"] != "1" {
		s.Error("two caches, or a cache and the server, share an object")
	}
	list := one.List(cluster.ConfigMaps)
	slices.Reverse(list)
	clear(list)
	if again := one.List(cluster.ConfigMaps); len(again) == 0 || again[0] == nil {
		s.Error("the caller changed the cache's list")
	}
}

func cacheFindsByNode(s *suite) {
	for _, name := range []string{"c", "a", "b"} {
		s.running(name, true)
	}
	loose := create(s, s.pod("loose"))
	cache := s.newCache()
	node := s.Namespace + "-nowhere"
	found := func(value string) []string { return s.names(s.own(cache.ListBy(cluster.Pods, cluster.ByNode, value))) }
	s.eventually("ListBy returns the pods of the node", func() bool { return slices.Equal(found(node), []string{"a", "b", "c"}) })
	if got := found(""); !slices.Equal(got, []string{loose.Name}) {
		s.Errorf("pods on no node = %v", got)
	}
	if got := found(node + "-2"); len(got) != 0 {
		s.Errorf("pods on a missing node = %v", got)
	}
	if err := s.Client.DeletePod(s.ctx(), s.key("b"), "", 0); err != nil {
		s.Fatal(err)
	}
	s.eventually("ListBy omits the deleted pod", func() bool { return slices.Equal(found(node), []string{"a", "c"}) })
	if got := cache.ListBy(cluster.ConfigMaps, cluster.ByNode, ""); len(got) != 0 {
		s.Errorf("an unknown index returned %d objects", len(got))
	}
	list := cache.ListBy(cluster.Pods, cluster.ByNode, node)
	clear(list)
	if again := cache.ListBy(cluster.Pods, cluster.ByNode, node); len(again) == 0 || again[0] == nil {
		s.Error("the caller changed the cache's list")
	}
}

// own returns the objects in the behaviour's namespace.
func (s *suite) own(objects []cluster.Object) (out []cluster.Object) {
	for _, o := range objects {
		if o.GetNamespace() == s.Namespace {
			out = append(out, o)
		}
	}
	return out
}
