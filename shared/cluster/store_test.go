package cluster_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// A store has the same objects as a plain map, in order and by node, with and without
// trimming. A reader that reads only the keys from Drain has the same objects.
func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trim cluster.Trim
		if rapid.Bool().Draw(t, "trimmed") {
			trim = podspec.Trims()[cluster.Pods]
		}
		store := cluster.NewStore(cluster.Pods, trim)
		plain, held := map[cluster.Key]*corev1.Pod{}, map[cluster.Key]cluster.Object{}
		version := 0
		draw := func() *corev1.Pod {
			version++
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace"), Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
					ResourceVersion: strconv.Itoa(version), UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
				},
				Spec: corev1.PodSpec{NodeName: rapid.SampledFrom([]string{"", "m", "n"}).Draw(t, "node")},
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"put", "put", "drop", "relist", "list"}).Draw(t, "step") {
			case "put":
				pod := draw()
				plain[cluster.KeyOf(pod)] = pod
				store.Put(pod)
			case "drop":
				pod := draw()
				delete(plain, cluster.KeyOf(pod))
				store.Remove(cluster.KeyOf(pod))
			case "relist":
				relist(t, store, plain, draw)
			case "list":
				store.List()
			}
			follow(store, held)
			same(t, store, plain, held)
		}
	})
}

// relist replaces the store with a list in which some objects are unchanged, some changed
// and some deleted.
func relist(t *rapid.T, store *cluster.Store, plain map[cluster.Key]*corev1.Pod, draw func() *corev1.Pod) {
	for _, key := range slices.SortedFunc(maps.Keys(plain), cluster.Key.Compare) {
		if rapid.Bool().Draw(t, "gone") {
			delete(plain, key)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "new") {
		pod := draw()
		plain[cluster.KeyOf(pod)] = pod
	}
	var list []cluster.Object
	for _, pod := range plain {
		list = append(list, pod)
	}
	store.Replace(list)
}

func follow(store *cluster.Store, held map[cluster.Key]cluster.Object) {
	changed := store.TakeChanges()
	keys := changed.Keys
	if changed.All {
		clear(held)
		for _, o := range store.List() {
			keys = append(keys, cluster.KeyOf(o))
		}
	}
	for _, key := range keys {
		delete(held, key)
		if o, ok := store.Get(key); ok {
			held[key] = o
		}
	}
}

func same(t *rapid.T, store *cluster.Store, plain map[cluster.Key]*corev1.Pod, held map[cluster.Key]cluster.Object) {
	var all []cluster.Object
	byNode := map[string][]cluster.Object{}
	for _, key := range slices.SortedFunc(maps.Keys(plain), cluster.Key.Compare) {
		pod := plain[key]
		if pod.ManagedFields != nil {
			t.Fatal("managedFields were kept")
		}
		all = append(all, pod)
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		if !equality.Semantic.DeepEqual(held[key], cluster.Object(pod)) {
			t.Fatalf("the copy built from TakeChanges has %v of %s", held[key], key)
		}
	}
	if len(held) != len(plain) {
		t.Fatalf("the copy built from TakeChanges has %d of %d objects", len(held), len(plain))
	}
	if diff := cmp.Diff(all, slices.Concat(store.List(), nil)); diff != "" {
		t.Fatalf("List (-want +got):\n%s", diff)
	}
	for _, node := range []string{"", "m", "n", "absent"} {
		if diff := cmp.Diff(byNode[node], slices.Concat(store.ListBy(cluster.ByNode, node), nil)); diff != "" {
			t.Fatalf("pods on node %q (-want +got):\n%s", node, diff)
		}
	}
}

// A list without changes is not a change, and keeps the existing objects.
func TestStoreRelistsQuietly(t *testing.T) {
	pod := func(version string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version, UID: uid}}
	}
	store := cluster.NewStore(cluster.Pods, cluster.Trim{})
	if store.Synced() {
		t.Error("the store is synced before its first list")
	}
	first := pod("1", "u")
	if store.Replace([]cluster.Object{first}); !store.Synced() {
		t.Fatal("the store is not synced after a list")
	}
	store.TakeChanges()
	store.Replace([]cluster.Object{pod("1", "u")})
	if changed := store.TakeChanges(); !changed.Empty() {
		t.Errorf("the same list is reported as a change: %+v", changed)
	}
	if got, _ := store.Get(cluster.KeyOf(first)); got != cluster.Object(first) {
		t.Error("an unchanged object was replaced")
	}
	for _, next := range []*corev1.Pod{pod("2", "u"), pod("2", "v")} {
		store.Replace([]cluster.Object{next})
		if changed := store.TakeChanges(); len(changed.Keys) != 1 {
			t.Errorf("list with version %s of %s: TakeChanges = %+v", next.ResourceVersion, next.UID, changed)
		}
	}
}

// A store keeps nothing of the trimmed fields, and a change of only those is not a
// change. A listed object with other content is a change, like a watch event.
func TestStoreTrims(t *testing.T) {
	trim := cluster.Trim{Clear: func(o cluster.Object) { o.(*corev1.Pod).Status = corev1.PodStatus{} }}
	list := func(s *cluster.Store, pod cluster.Object) { s.Replace([]cluster.Object{pod}) }
	event := func(s *cluster.Store, pod cluster.Object) { s.Put(pod) }
	for name, deliver := range map[string]func(*cluster.Store, cluster.Object){
		"an event": event,
		"a list":   list,
		// An adapter trims the objects of a page before the store gets the list.
		"a trimmed list": func(s *cluster.Store, pod cluster.Object) { s.Trim(pod); list(s, pod) },
	} {
		t.Run(name, func(t *testing.T) {
			store := cluster.NewStore(cluster.Pods, trim)
			store.TakeChanges()
			for _, step := range []struct {
				version, node, message string
				changes                bool
			}{{"1", "", "x", true}, {"2", "", "y", false}, {"3", "n", "y", true}} {
				deliver(store, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: step.version}, Spec: corev1.PodSpec{NodeName: step.node},
					Status: corev1.PodStatus{Message: step.message},
				})
				if changed := store.TakeChanges(); changed.Empty() == step.changes {
					t.Errorf("version %s: TakeChanges = %+v, want a change: %t", step.version, changed, step.changes)
				}
				held, _ := store.Get(cluster.Key{Name: "a"})
				if got := held.(*corev1.Pod); got.Status.Message != "" || got.ResourceVersion != "" || got.Spec.NodeName != step.node {
					t.Errorf("version %s: stored object %+v", step.version, got)
				}
			}
		})
	}
}

// A trim of the status alone keeps the version, so that the object can be updated. A version without another
// change is no change for the reader, and the store has it nevertheless.
func TestStoreKeepsVersionsOfStatusTrims(t *testing.T) {
	heartbeat := cluster.Trim{StatusOnly: true, Clear: func(o cluster.Object) { o.(*corev1.Node).Status.Conditions = nil }}
	for name, deliver := range map[string]func(*cluster.Store, cluster.Object){
		"an event": func(s *cluster.Store, node cluster.Object) { s.Put(node) },
		"a list":   func(s *cluster.Store, node cluster.Object) { s.Replace([]cluster.Object{node}) },
	} {
		t.Run(name, func(t *testing.T) {
			store := cluster.NewStore(cluster.Nodes, heartbeat)
			store.TakeChanges()
			for _, step := range []struct {
				version, label string
				changes        bool
			}{{"1", "x", true}, {"2", "x", false}, {"3", "y", true}} {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: step.version, Labels: map[string]string{"l": step.label}}}
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Message: "at " + step.version}}
				deliver(store, node)
				if changed := store.TakeChanges(); changed.Empty() == step.changes {
					t.Errorf("version %s: TakeChanges = %+v, want a change: %t", step.version, changed, step.changes)
				}
				held, _ := store.Get(cluster.Key{Name: "n"})
				if listed := store.List(); held.GetResourceVersion() != step.version || len(listed) != 1 || listed[0] != held {
					t.Errorf("the store has version %s and lists %v, want version %s", held.GetResourceVersion(), listed, step.version)
				}
			}
		})
	}
}

// The values of a change are those before and after it, so that a reader finds the node which a pod has left.
func TestStoreReportsIndexValues(t *testing.T) {
	store := cluster.NewStore(cluster.Pods, cluster.Trim{})
	put := func(version, node string) {
		store.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: version}, Spec: corev1.PodSpec{NodeName: node}})
	}
	store.TakeChanges()
	for _, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"created unbound", func() { put("1", "") }, nil},
		{"bound", func() { put("2", "b") }, []string{"b"}},
		{"another of that name", func() { put("3", "a") }, []string{"a", "b"}},
		{"removed", func() { store.Remove(cluster.Key{Name: "p"}) }, []string{"a"}},
		{"nothing", func() {}, nil},
	} {
		step.change()
		if got := store.TakeChanges().Values; !slices.Equal(got, step.want) {
			t.Errorf("%s: values %q, want %q", step.name, got, step.want)
		}
	}
}

// An object of a watch event has an apiVersion and a kind if the API server sent JSON, and an item of a list has none. The
// store holds the same object in both cases.
func TestStoreHoldsNoTypes(t *testing.T) {
	class := func(types metav1.TypeMeta) *karpenter.EC2NodeClass {
		return &karpenter.EC2NodeClass{TypeMeta: types, ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", ResourceVersion: "1"}}
	}
	watched := class(metav1.TypeMeta{APIVersion: "karpenter.k8s.aws/v1", Kind: "EC2NodeClass"})
	for name, trim := range map[string]cluster.Trim{"whole": {}, "trimmed": {Clear: func(cluster.Object) {}}} {
		store := cluster.NewStore(cluster.NodeClasses, trim)
		if !store.Put(watched.DeepCopy()) {
			t.Errorf("%s: the first object is no change", name)
		}
		stored, _ := store.Get(cluster.Key{Name: "default"})
		if diff := cmp.Diff(metav1.TypeMeta{}, stored.(*karpenter.EC2NodeClass).TypeMeta); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if store.Put(class(metav1.TypeMeta{})) {
			t.Errorf("%s: the item of a list is a change of the object of a watch", name)
		}
	}
}
