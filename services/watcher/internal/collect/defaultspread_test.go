package collect_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// overZones are default constraints.
var overZones = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}

// spreadSource returns an object of a kind with a selector: a Service, or the owner of pods with owner(kind).
func spreadSource(kind string, labels map[string]string) cluster.Object {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "x"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	switch kind {
	case "Service":
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels}}
	case "ReplicationController":
		return &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: labels}}
	case "ReplicaSet":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}}
	default:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}
	}
}

// Pending pods, pods on nodes and pods of a snapshot for disruption get the constraints, and their own labels that
// the selector counts. A change of a Service or an owner changes them; a change of anything else keeps them.
func TestDefaultSpread(t *testing.T) {
	feed, web := newFakeFeed(), labelled("app", "web")
	for _, o := range []cluster.Object{
		node("n"), claim("c", registered), spreadSource("ReplicaSet", map[string]string{"app": "web"}),
		pod("runs", "n", owner("ReplicaSet"), web), pod("waits", "", owner("ReplicaSet"), web), pod("daemon", "n", owner("DaemonSet"), web),
		pod("alone", "", labelled("app", "db")),
	} {
		feed.put(o)
	}
	state, now := collect.NewState(collect.AddDefaultSpread(feed, overZones)), noon
	spread := func(classes []planning.PodClass) (out []string) {
		for _, class := range classes {
			for _, c := range class.Spec.Spread {
				out = append(out, fmt.Sprintf("%s %v %v %t", class.Pods[0].Name, metav1.FormatLabelSelector(c.LabelSelector), class.Spec.Labels, class.Spec.DefaultSpread))
			}
		}
		slices.Sort(out)
		return out
	}
	look := func() (pending, bound []string) {
		now = now.Add(2 * time.Second)
		view := state.View(collect.Inputs{Now: now})
		snapshot := state.DisruptionSnapshot(view, nil)
		if diff := cmp.Diff(spread(view.Pending), spread(snapshot.PendingPods)); diff != "" {
			t.Error(diff)
		}
		for _, n := range snapshot.Nodes {
			bound = append(bound, spread(slices.Concat(n.Pods, n.DaemonPods))...)
		}
		return spread(view.Pending), bound
	}
	expect := func(what string, pending, bound []string) {
		t.Helper()
		gotPending, gotBound := look()
		if diff := cmp.Diff([][]string{pending, bound}, [][]string{gotPending, gotBound}); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	expect("at first", []string{"waits app in (web) map[app:web] true"}, []string{"runs app in (web) map[app:web] true"})
	set := spreadSource("ReplicaSet", map[string]string{"app": "web"})
	set.SetLabels(map[string]string{"new": "label"})
	feed.put(set)
	expect("an owner with the same selector", []string{"waits app in (web) map[app:web] true"}, []string{"runs app in (web) map[app:web] true"})
	feed.put(spreadSource("Service", map[string]string{"app": "db"}))
	expect("a Service of the other pod", []string{"alone app=db map[app:db] true", "waits app in (web) map[app:web] true"}, []string{"runs app in (web) map[app:web] true"})
	feed.put(spreadSource("ReplicaSet", map[string]string{"other": "x"}))
	expect("another selector of the owner", []string{"alone app=db map[app:db other:x] true", "waits other in (x) map[app:web other:x] true"},
		[]string{"runs other in (x) map[app:web other:x] true"})
	feed.drop(cluster.Services, cluster.Key{Namespace: "default", Name: "x"})
	feed.drop(cluster.ReplicaSets, cluster.Key{Namespace: "default", Name: "x"})
	expect("without selectors", nil, nil)
	feed.untouched(t)
}

// Placeholder pods of a CapacityBuffer get the constraints with the selectors of Services alone: they have no owner.
func TestDefaultSpreadOfBuffers(t *testing.T) {
	web := deployment("web", 1)
	web.Spec.Template.Labels = map[string]string{"app": "web", "tier": "x"}
	feed, now := newFakeFeed(), noon
	for _, o := range []cluster.Object{
		web, spreadSource("ReplicaSet", map[string]string{"tier": "x"}),
		buffer("spare", karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, Replicas: new(int32(2))}),
	} {
		feed.put(o)
	}
	given := collect.Inputs{Settings: planning.Settings{Gates: allGates}}
	expect := func(defaults []corev1.TopologySpreadConstraint, state *collect.State, want ...string) {
		t.Helper()
		now = now.Add(2 * time.Second)
		given.Now = now
		view := state.View(given)
		if len(view.Pending) != 1 || len(view.Pending[0].Pods) != 2 {
			t.Fatalf("pending pods: %+v", view.Pending)
		}
		var got []string
		for _, c := range view.Pending[0].Spec.Spread {
			got = append(got, fmt.Sprintf("%s %v %v", metav1.FormatLabelSelector(c.LabelSelector), view.Pending[0].Spec.Labels, view.Pending[0].Spec.DefaultSpread))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %d default constraints:\n%s", len(defaults), diff)
		}
	}
	state := collect.NewState(collect.AddDefaultSpread(feed, overZones))
	expect(overZones, state)
	feed.put(spreadSource("Service", map[string]string{"app": "web"}))
	expect(overZones, state, "app=web map[app:web] true")
	expect(nil, collect.NewState(feed))
	web = web.DeepCopy()
	web.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}},
	}}
	feed.put(web)
	expect(overZones, state, "tier=x map[tier:x] false")
}
