package collect_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value, "other": "x"} }
}

// avoids separates a pod from pods that have the label, in namespaces that have the other label.
func avoids(label, space string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:       corev1.LabelHostname,
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{label: "a"}},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: space, Operator: metav1.LabelSelectorOpExists}}},
			}},
		}}
	}
}

// onNode returns the only node of the view.
func onNode(t *testing.T, objects ...cluster.Object) planning.Node {
	t.Helper()
	nodes := collectAll(append(objects, node("n"), claim("c", registered))...).Snapshot.Nodes
	if len(nodes) != 1 {
		t.Fatalf("%d nodes", len(nodes))
	}
	return nodes[0]
}

// Labels of running pods are in the view if a pending or running pod selects by them.
func TestSelectedLabelsAreKept(t *testing.T) {
	want := map[string]string{"app": "a"}
	for name, chooser := range map[string]*corev1.Pod{
		"a pending pod":          pod("q", "", avoids("app", "team")),
		"a running pod":          pod("q", "n", avoids("app", "team")),
		"a daemon":               pod("q", "n", avoids("app", "team"), owner("DaemonSet")),
		"a pod of another owner": pod("q", "elsewhere", avoids("app", "team")),
	} {
		got := onNode(t, chooser, pod("p", "n", labelled("app", "a")))
		found := false
		for _, class := range got.Pods {
			found = found || cmp.Equal(want, class.Spec.Labels)
		}
		if !found {
			t.Errorf("selected by %s: %+v", name, got.Pods)
		}
	}
	if got := onNode(t, pod("p", "n", labelled("app", "a"))); got.Pods[0].Spec.Labels != nil {
		t.Errorf("without selectors, the view has the labels %v", got.Pods[0].Spec.Labels)
	}
}

func TestSelectedNamespacesAreKept(t *testing.T) {
	space := func(name, team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team, "private": "x"}}}
	}
	in := func(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }
	view := collectAll(space("web", "a"), space("db", "b"), space("unused", "c"), node("n"),
		pod("p", "", avoids("app", "team"), in("web")), pod("q", "n", in("db")))
	if diff := cmp.Diff(map[string]map[string]string{"web": {"team": "a"}, "db": {"team": "b"}}, view.Snapshot.Namespaces); diff != "" {
		t.Error(diff)
	}
	if view := collectAll(space("web", "a"), pod("p", "", in("web"))); view.Snapshot.Namespaces != nil {
		t.Errorf("without namespace selectors, the view has %v", view.Snapshot.Namespaces)
	}
}

// DaemonSet pods are in the view if selectors count them.
func TestSelectedDaemonPodsAreKept(t *testing.T) {
	everything := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
		}}
	}
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	going := func(p *corev1.Pod) {
		at, grace := metav1.NewTime(noon), int64(60)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	for _, tt := range []struct {
		name    string
		objects []cluster.Object
		want    int
	}{
		{"a DaemonSet pod that is not selected", []cluster.Object{pod("d", "n", owner("DaemonSet"))}, 0},
		{"a DaemonSet pod that is selected", []cluster.Object{pod("d", "n", owner("DaemonSet"), labelled("app", "a")), pod("p", "", avoids("app", "team"))}, 1},
		{"a mirror pod that is selected", []cluster.Object{pod("d", "n", mirror, labelled("app", "a")), pod("p", "", avoids("app", "team"))}, 1},
		{"a DaemonSet pod with anti-affinity", []cluster.Object{pod("d", "n", owner("DaemonSet"), avoids("app", "team"))}, 1},
		{"a pod selects all pods", []cluster.Object{pod("d", "n", owner("DaemonSet")), pod("p", "", everything)}, 1},
		{"a terminating DaemonSet pod", []cluster.Object{pod("d", "n", owner("DaemonSet"), going), pod("p", "", everything)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := onNode(t, tt.objects...)
			if len(got.DaemonPods) != tt.want || len(got.Pods) != 0 {
				t.Errorf("got %d DaemonSet pods and %d others: %+v", len(got.DaemonPods), len(got.Pods), got)
			}
			if got.Used.Cpu().Value() != 1 {
				t.Errorf("got used resources %v", got.Used)
			}
		})
	}
}

// A pod that is being deleted uses resources and is marked, so that selectors do not count it.
func TestTerminatingPods(t *testing.T) {
	got := onNode(t, pod("p", "n", func(p *corev1.Pod) {
		at, grace := metav1.NewTime(noon), int64(60)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}))
	if len(got.Pods) != 1 || !got.Pods[0].Pods[0].Terminating || got.Used.Cpu().Value() != 1 {
		t.Errorf("%+v", got)
	}
}

// Pending pods that Joist does not plan are listed with the reason.
func TestIgnoredPodsHaveReasons(t *testing.T) {
	offPools := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpDoesNotExist},
			}}},
		}}}
	}
	view := collectAll(pod("a", "", offPools), pod("b", "", offPools), pod("c", "", owner("DaemonSet")), pod("d", ""), pod("e", "n"))
	var got []string
	for _, one := range view.Ignored {
		for _, ref := range one.Pods {
			got = append(got, one.Namespace+"/"+ref.Name+": "+one.Reason)
		}
	}
	want := []string{
		"default/a: it requires karpenter.sh/nodepool to be absent", "default/b: it requires karpenter.sh/nodepool to be absent",
		"default/c: DaemonSet, static and mirror pods run on existing nodes only",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"d@"}, view.PendingKeys()); diff != "" {
		t.Error(diff)
	}
}

// The rules of a buffer's template select running pods and namespaces, although no pod has these
// rules. The state follows changes of the workload and of the buffer.
func TestBufferRulesSelectRunningPods(t *testing.T) {
	workload := func(changes ...func(*corev1.Pod)) cluster.Object {
		d, of := deployment("web", 0), pod("of-template", "", changes...)
		d.Spec.Template.Spec.Affinity = of.Spec.Affinity
		return d
	}
	spare := buffer("spare", karpenter.CapacityBufferSpec{ScalableRef: &karpenter.ScalableRef{Kind: "Deployment", Name: "web"}, Replicas: new(int32(1))})
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a", "private": "x"}}}
	others := []cluster.Object{node("n"), claim("c", registered), space, pod("p", "n", labelled("app", "a")), pod("d", "n", owner("DaemonSet"), labelled("app", "a"))}
	check := func(when string, view collect.View, labels, namespaces map[string]string, daemons int) {
		t.Helper()
		on := view.Snapshot.Nodes[0]
		if got := on.Pods[0].Spec.Labels; !maps.Equal(got, labels) || !maps.Equal(view.Snapshot.Namespaces["default"], namespaces) || len(on.DaemonPods) != daemons {
			t.Errorf("%s: got labels %v of the pod, labels %v of the namespace, and %d daemons", when, got, view.Snapshot.Namespaces["default"], len(on.DaemonPods))
		}
	}
	labels, namespaces := map[string]string{"app": "a"}, map[string]string{"team": "a"}
	rules := avoids("app", "team")
	check("at once", gated(allGates, append(others, workload(rules), spare)...), labels, namespaces, 1)
	check("without the feature gate", gated(planning.Gates{}, append(others, workload(rules), spare)...), nil, nil, 0)

	feed := newFakeFeed()
	for _, o := range append(others, workload(), spare) {
		feed.put(o)
	}
	state, given := collect.NewState(feed), collect.Inputs{Now: noon, Settings: planning.Settings{Gates: allGates}}
	check("without rules", state.View(given), nil, nil, 0)
	feed.put(workload(rules))
	check("rules are added", state.View(given), labels, namespaces, 1)
	given.Settings.Gates.CapacityBuffer = false
	check("the feature gate is turned off", state.View(given), nil, nil, 0)
	given.Settings.Gates.CapacityBuffer = true
	check("the feature gate is turned on", state.View(given), labels, namespaces, 1)
	feed.put(workload(avoids("hash", "team")))
	check("other rules", state.View(given), nil, namespaces, 0)
	feed.put(workload(rules))
	check("the first rules again", state.View(given), labels, namespaces, 1)
	feed.drop(cluster.CapacityBuffers, cluster.KeyOf(spare))
	check("the buffer is deleted", state.View(given), nil, nil, 0)
}
