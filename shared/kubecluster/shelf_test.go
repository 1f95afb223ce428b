package kubecluster

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// A shelf shows what a plain map would, in order and by node, and who looks
// again at what it tells alone sees the same.
func TestShelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rings := 0
		shelf := newShelf(cluster.Pods, nil, func() { rings++ })
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
			before := rings
			switch rapid.SampledFrom([]string{"put", "put", "drop", "relist", "list"}).Draw(t, "step") {
			case "put":
				pod := draw()
				plain[cluster.KeyOf(pod)] = pod
				no(t, shelf.Update(pod))
			case "drop":
				pod := draw()
				delete(plain, cluster.KeyOf(pod))
				no(t, shelf.Delete(pod))
			case "relist":
				relist(t, shelf, plain, draw)
			case "list":
				shelf.list()
				rings++
			}
			if rings == before {
				t.Fatal("nobody was told")
			}
			follow(shelf, held)
			same(t, shelf, plain, held)
		}
	})
}

// relist gives the shelf a list in which some objects are the same as before,
// some changed and some gone.
func relist(t *rapid.T, shelf *shelf, plain map[cluster.Key]*corev1.Pod, draw func() *corev1.Pod) {
	for _, key := range slices.SortedFunc(maps.Keys(plain), cluster.Key.Compare) {
		if rapid.Bool().Draw(t, "gone") {
			delete(plain, key)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "new") {
		pod := draw()
		plain[cluster.KeyOf(pod)] = pod
	}
	var list []any
	for _, pod := range plain {
		list = append(list, pod)
	}
	no(t, shelf.Replace(list, "1"))
}

func follow(shelf *shelf, held map[cluster.Key]cluster.Object) {
	changed := shelf.drain()
	keys := changed.Keys
	if changed.All {
		clear(held)
		for _, o := range shelf.list() {
			keys = append(keys, cluster.KeyOf(o))
		}
	}
	for _, key := range keys {
		delete(held, key)
		if o, ok := shelf.get(key); ok {
			held[key] = o
		}
	}
}

func same(t *rapid.T, shelf *shelf, plain map[cluster.Key]*corev1.Pod, held map[cluster.Key]cluster.Object) {
	var all []cluster.Object
	byNode := map[string][]cluster.Object{}
	for _, key := range slices.SortedFunc(maps.Keys(plain), cluster.Key.Compare) {
		pod := plain[key]
		if pod.ManagedFields != nil {
			t.Fatal("managed fields were kept")
		}
		all = append(all, pod)
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		if held[key] != cluster.Object(pod) {
			t.Fatalf("who follows what is told holds %v of %s", held[key], key)
		}
	}
	if len(held) != len(plain) {
		t.Fatalf("who follows what is told holds %d objects of %d", len(held), len(plain))
	}
	if diff := cmp.Diff(all, slices.Concat(shelf.list(), nil)); diff != "" {
		t.Fatalf("the list (-want +got):\n%s", diff)
	}
	for _, node := range []string{"", "m", "n", "absent"} {
		if diff := cmp.Diff(byNode[node], slices.Concat(shelf.listBy(cluster.ByNode, node), nil)); diff != "" {
			t.Fatalf("the pods of %q (-want +got):\n%s", node, diff)
		}
	}
}

func no(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A list that shows nothing new is not a change, and keeps the objects there are.
func TestShelfRelistsQuietly(t *testing.T) {
	pod := func(version string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version, UID: uid}}
	}
	shelf := newShelf(cluster.Pods, nil, func() {})
	if shelf.ready() {
		t.Error("the shelf is synced before any list")
	}
	first := pod("1", "u")
	if err := shelf.Replace([]any{first}, ""); err != nil || !shelf.ready() {
		t.Fatal(err, shelf.ready())
	}
	shelf.drain()
	if err := shelf.Replace([]any{pod("1", "u")}, ""); err != nil {
		t.Fatal(err)
	}
	if changed := shelf.drain(); !changed.Empty() {
		t.Errorf("the same list changed %+v", changed)
	}
	if got, _ := shelf.get(cluster.KeyOf(first)); got != cluster.Object(first) {
		t.Error("an object that did not change was replaced")
	}
	for _, next := range []*corev1.Pod{pod("2", "u"), pod("2", "v")} {
		if err := shelf.Replace([]any{next}, ""); err != nil {
			t.Fatal(err)
		}
		if changed := shelf.drain(); len(changed.Keys) != 1 {
			t.Errorf("the list with version %s of %s changed %+v", next.ResourceVersion, next.UID, changed)
		}
	}
}

// What no watch should tell is an error, not a panic.
func TestShelfRefusesWhatIsNoObject(t *testing.T) {
	shelf := newShelf(cluster.Pods, nil, func() {})
	for what, err := range map[string]error{
		"adding": shelf.Add("x"), "deleting": shelf.Delete("x"), "listing": shelf.Replace([]any{"x"}, ""),
	} {
		if err == nil {
			t.Errorf("%s a text succeeded", what)
		}
	}
}

// What is trimmed off is kept nowhere, and a change of it is no news.
func TestShelfTrims(t *testing.T) {
	rings := 0
	trim := func(o cluster.Object) { o.(*corev1.Pod).Status = corev1.PodStatus{} }
	shelf := newShelf(cluster.Pods, trim, func() { rings++ })
	tell := func(version, node, message string, news bool) {
		t.Helper()
		before := rings
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Message: message}}
		if err := shelf.Update(pod); err != nil {
			t.Fatal(err)
		}
		changed := shelf.drain()
		if (rings > before) != news || changed.Empty() == news {
			t.Errorf("version %s: told is %t, changed %+v, want %t", version, rings > before, changed, news)
		}
		held, _ := shelf.get(cluster.Key{Name: "a"})
		if got := held.(*corev1.Pod); got.Status.Message != "" || got.ResourceVersion != "" || got.Spec.NodeName != node {
			t.Errorf("version %s: held is %+v", version, got)
		}
	}
	shelf.drain()
	tell("1", "", "x", true)
	tell("2", "", "y", false)
	tell("3", "n", "y", true)
	if _, err := shelf.Transformer()("no object"); err != nil {
		t.Error(err)
	}
}
