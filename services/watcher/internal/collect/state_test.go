package collect_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// randomObjects draws objects with few names, so that they refer to each other: nodes n0 to n2,
// volume claims v0 to v2 and so on.
type randomObjects struct{ *rapid.T }

func (t randomObjects) pick(label string, words ...string) string {
	return rapid.SampledFrom(words).Draw(t.T, label)
}
func (t randomObjects) maybe(label string) bool { return rapid.IntRange(0, 2).Draw(t.T, label) == 0 }
func (t randomObjects) one(of string) string {
	return fmt.Sprint(of, rapid.IntRange(0, 2).Draw(t.T, of))
}

func (t randomObjects) time(label string) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(rapid.IntRange(-3, 20).Draw(t.T, label)) * time.Minute))
}

func (t randomObjects) pod() *corev1.Pod {
	p := pod(fmt.Sprint("p", rapid.IntRange(0, 9).Draw(t.T, "pod")), "")
	p.CreationTimestamp, p.Namespace = t.time("age"), t.pick("namespace", "default", "other")
	if !t.maybe("waits") {
		p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = t.one("n"), corev1.PodRunning, nil
	}
	if t.maybe("ended") && t.maybe("indeed") {
		p.Status.Phase = corev1.PodFailed
	}
	p.Labels = map[string]string{"app": t.pick("app", "web", "db"), "hash": t.one("h"), "tier": "a"}
	if t.maybe("spreads") {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{t.pick("by", "app", "hash"): "web"}}}}
	}
	if t.maybe("apart") {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "host", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{t.pick("from", "app", "hash"): "web"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		}}}}
	}
	for _, name := range []string{"v0", "v1"} {
		if t.maybe("mounts " + name) {
			claims(name)(p)
		}
	}
	if t.maybe("uses a device") {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "own", ResourceClaimTemplateName: new("t")}, {Name: "shared", ResourceClaimName: new(t.one("rc"))}}
		if t.maybe("generated") {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "own", ResourceClaimName: new(t.one("rc"))}}
		}
	}
	if t.maybe("owned") {
		owner(t.pick("owner", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController"))(p)
		p.OwnerReferences[0].UID = types.UID(t.one("d"))
	}
	if t.maybe("protected") {
		p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: t.pick("for", "true", "5m", "never")}
		p.Status.StartTime = new(t.time("start"))
	}
	if t.maybe("dying") && t.maybe("really") {
		p.DeletionTimestamp = new(t.time("death"))
	}
	return p
}

func (t randomObjects) node() *corev1.Node {
	n := node(t.one("n"))
	n.Spec.ProviderID = t.one("aws:///eu-west-1a/i-")
	if t.maybe("disrupted") {
		disrupted(n)
	}
	if t.maybe("bare") {
		n.Status.Allocatable = nil
	}
	return n
}

func (t randomObjects) claim() *karpenter.NodeClaim {
	c := claim(t.one("c"))
	c.CreationTimestamp = t.time("claimed")
	if t.maybe("launched") {
		launched(c)
	} else {
		registered(c)
	}
	c.Status.ProviderID = t.pick("instance", "", "aws:///eu-west-1a/i-0", "aws:///eu-west-1a/i-1")
	if t.maybe("of another provider") {
		ofAutoMode(c)
	}
	if t.maybe("going") {
		c.DeletionTimestamp = new(t.time("gone"))
	}
	if t.maybe("replaced") {
		c.Annotations[planning.ProposalAnnotation] = t.pick("proposal", `{"id":"p","confirmed":"2026-01-01T00:00:00Z","replacements":["c0","c1"]}`, `{"id":"p","replacements":["c1"]}`)
	}
	if t.maybe("expects") {
		c.Annotations[planning.ExpectedPodsAnnotation] = "p1,p2"
	}
	if t.maybe("deadline") {
		c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] = t.time("deadline at").Format(time.RFC3339)
	}
	return c
}

// object draws an object of any kind that the view reads.
func (t randomObjects) object() cluster.Object {
	switch t.pick("kind", "pod", "pod", "pod", "pod", "node", "claim", "volume", "budget", "namespace", "set", "pool", "buffer", "csi", "device", "selector") {
	case "node":
		return t.node()
	case "claim":
		return t.claim()
	case "volume":
		return t.storage()
	case "device":
		return t.device()
	case "budget":
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: t.one("b")}}
		b.Spec.Selector, b.Spec.MaxUnavailable = &metav1.LabelSelector{}, new(intstr.FromInt32(int32(rapid.IntRange(0, 1).Draw(t.T, "unavailable"))))
		return b
	case "namespace":
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.pick("space", "default", "other"), Labels: map[string]string{"team": t.one("t"), "zone": t.one("z")}}}
	case "set":
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: t.one("d")}}
		d.UID = types.UID(d.Name)
		return d
	case "pool":
		pool := static(t.one("pool"), int64(rapid.IntRange(0, 3).Draw(t.T, "replicas")))
		if t.maybe("of another provider") {
			pool.Spec.Template.Spec.NodeClassRef = autoModeClass
		}
		return pool
	case "buffer":
		if t.maybe("scaled") {
			d := deployment("web", int32(rapid.IntRange(0, 4).Draw(t.T, "scale")))
			if rapid.Bool().Draw(t.T, "has rules") {
				of := pod("of-template", "", avoids("tier", "zone"))
				d.Spec.Template.Spec.Affinity = of.Spec.Affinity
			}
			return d
		}
		return buffer(t.one("buffer"), karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, Percentage: new(int32(50))})
	case "selector":
		return t.selector()
	case "csi":
		csi := csiNode(int32(rapid.IntRange(1, 3).Draw(t.T, "limit")))
		csi.Name = t.one("n")
		return csi
	default:
		return t.pod()
	}
}

// selector draws an object from whose selector default spread constraints are deduced.
func (t randomObjects) selector() cluster.Object {
	labels := map[string]string{t.pick("selected by", "app", "hash"): t.pick("selected", "web", "h0")}
	if t.maybe("selects nothing") {
		labels = nil
	}
	o := spreadSource(t.pick("source", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"), labels)
	o.SetNamespace(t.pick("source's namespace", "default", "other"))
	o.SetLabels(map[string]string{"version": t.one("version")})
	return o
}

func (t randomObjects) device() cluster.Object {
	switch t.pick("device", "claim", "claim", "slice", "class") {
	case "slice":
		return resourceSlice(t.one("s"), t.one("n"), t.one("gpu-"))
	case "class":
		return deviceClass(t.one("class"))
	default:
		c := resourceClaim(t.one("rc"))
		c.Namespace, c.Spec.Devices.Requests[0].Exactly.Count = t.pick("claim's namespace", "default", "other"), int64(rapid.IntRange(1, 3).Draw(t.T, "devices"))
		if t.maybe("allocated") {
			allocate(c, t.one("n"))
		}
		return c
	}
}

func (t randomObjects) storage() cluster.Object {
	switch t.pick("storage", "claim", "claim", "volume", "class", "attachment") {
	case "volume":
		v := volume(t.one("pv"), t.one("v"))
		if t.maybe("loose") {
			v.Spec.ClaimRef = nil
		}
		if t.maybe("in a zone") {
			v.Labels = map[string]string{corev1.LabelTopologyZone: t.pick("volume's zone", "a", "b__c")}
		}
		return v
	case "class":
		return storageClass()
	case "attachment":
		return attachment(t.one("a"), t.one("pv"), t.one("n"))
	default:
		c := volumeClaim(t.one("v"))
		if t.maybe("bound") {
			c = boundClaim(c.Name, t.one("pv"))
		}
		if t.maybe("for one pod") {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		}
		if t.maybe("being deleted") {
			c.DeletionTimestamp = new(t.time("deleted"))
		}
		return c
	}
}

// A State returns the same view as CollectAll at any time: after any changes, and when only time
// passes.
func TestStateEqualsCollectAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hand, feed := randomObjects{rt}, newFakeFeed()
		for i := range 3 {
			bound := boundClaim(fmt.Sprint("v", i), fmt.Sprint("pv", i))
			n := node(fmt.Sprint("n", i))
			n.Spec.ProviderID = fmt.Sprint("aws:///eu-west-1a/i-", i)
			feed.put(storageClass())
			feed.put(bound)
			feed.put(volume(fmt.Sprint("pv", i), bound.Name))
			feed.put(n)
		}
		for range rapid.IntRange(0, 8).Draw(rt, "pods") {
			feed.put(hand.pod())
		}
		defaulted := func() cluster.Feed { return feed }
		if hand.maybe("default spread") {
			defaulted = func() cluster.Feed { return collect.AddDefaultSpread(feed, overZones) }
		}
		state := collect.NewState(defaulted())
		what := collect.Inputs{Cluster: event.Cluster{Name: "prod", UID: "uid"}, Now: noon, Settings: planning.Settings{Gates: allGates, PlanDRARequests: true}}
		for range rapid.IntRange(1, 30).Draw(rt, "looks") {
			for range rapid.IntRange(0, 2).Draw(rt, "changes") {
				change(hand, feed)
			}
			what.Now = what.Now.Add(2*time.Second + time.Duration(rapid.IntRange(0, 3).Draw(rt, "minutes"))*time.Minute)
			what.Catalogue.Digest = event.Digest(hand.pick("catalogue", "x", "y"))
			want, got := collect.CollectAll(defaulted(), what), state.View(what)
			fresh := collect.NewState(defaulted())
			if diff := cmp.Diff(fresh.DisruptionSnapshot(fresh.View(what), repairs), state.DisruptionSnapshot(got, repairs)); diff != "" {
				rt.Fatalf("what guards the pods differs from what there is (-want +got):\n%s", diff)
			}
			if soon := what; hand.maybe("at once") {
				// Changes that may make pods pending are read at once.
				change(hand, feed)
				soon.Now = soon.Now.Add(time.Millisecond)
				want, got = collect.CollectAll(defaulted(), soon), state.View(soon)
				want.Snapshot, got.Snapshot = planning.Snapshot{}, planning.Snapshot{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("the state differs from what there is (-want +got):\n%s", diff)
			}
			if a, b := text(rt, want), text(rt, got); a != b {
				rt.Fatalf("the documents differ:\n%s\n%s", a, b)
			}
		}
		feed.untouched(t)
	})
}

func change(t randomObjects, feed *fakeFeed) {
	switch t.pick("change", "put", "put", "put", "drop", "relist") {
	case "drop":
		kind := rapid.SampledFrom(cluster.Kinds).Draw(t.T, "dropped kind")
		if keys := slices.SortedFunc(maps.Keys(feed.objects[kind]), cluster.Key.Compare); len(keys) > 0 {
			feed.drop(kind, rapid.SampledFrom(keys).Draw(t.T, "dropped"))
		}
	case "relist":
		o := t.object()
		if t.maybe("relists volumes") {
			o = t.storage()
		}
		feed.put(o)
		kind, _ := cluster.KindOf(o)
		feed.relist(kind)
	default:
		feed.put(t.object())
	}
}

func text(t rapid.TB, view collect.View) string {
	bytes, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes)
}

// A view that becomes outdated without a change is built again, and one that is still valid is
// reused.
func TestStateFollowsTime(t *testing.T) {
	feed := newFakeFeed()
	feed.put(node("n", disrupted))
	feed.put(pod("p", "n", func(p *corev1.Pod) {
		p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "5m"}
		p.Status.StartTime = new(metav1.NewTime(noon))
	}))
	state := collect.NewState(feed)
	at := func(after time.Duration) collect.View { return state.View(collect.Inputs{Now: noon.Add(after)}) }
	if first := at(0); len(first.Pending) != 0 || !first.Expires.Equal(noon.Add(5*time.Minute)) {
		t.Fatalf("a protected pod: %d pending classes until %s", len(first.Pending), first.Expires)
	}
	before, after := at(4*time.Minute), at(5*time.Minute)
	if len(before.Pending) != 0 || len(after.Pending) != 1 {
		t.Errorf("%d pending classes while the pod is protected, and %d afterwards", len(before.Pending), len(after.Pending))
	}
	turn := state.Revision()
	again := at(6 * time.Minute)
	if state.Revision() != turn || !again.Snapshot.TakenAt.Equal(noon.Add(6*time.Minute)) {
		t.Errorf("an unchanged view was built again, or was taken at %s", again.Snapshot.TakenAt)
	}
}

// Changes of pods on nodes that are kept are read once a second while nothing is pending, and at
// once otherwise.
func TestStateReusesView(t *testing.T) {
	feed := newFakeFeed()
	feed.put(node("n"))
	state := collect.NewState(feed)
	at := func(after time.Duration) int {
		return len(state.View(collect.Inputs{Now: noon.Add(after)}).Snapshot.Nodes[0].Pods)
	}
	expect := func(after time.Duration, want int) {
		t.Helper()
		if got := at(after); got != want {
			t.Errorf("after %s got %d classes of pods, want %d", after, got, want)
		}
	}
	expect(0, 0)
	feed.put(pod("a", "n"))
	expect(999*time.Millisecond, 0)
	expect(time.Second, 1)
	feed.put(pod("b", "n", owner("ReplicaSet")))
	feed.put(pod("c", ""))
	expect(1001*time.Millisecond, 2)
	feed.put(pod("d", "n", doNotDisrupt))
	expect(1002*time.Millisecond, 3)
}
