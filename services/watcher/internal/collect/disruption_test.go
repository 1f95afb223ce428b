package collect_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// repairs matches Karpenter's repair policies.
var repairs = func() *repair.Matcher {
	m, err := repair.NewMatcher(repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("20%")})
	if err != nil {
		panic(err)
	}
	return m
}()

// disruptionSnapshot returns the snapshot and the view of a cluster with these objects.
func disruptionSnapshot(objects ...cluster.Object) (*fakeFeed, *collect.State, func() (planning.Snapshot, collect.View)) {
	feed := newFakeFeed()
	for _, o := range objects {
		feed.put(o)
	}
	state, now := collect.NewState(feed), noon
	return feed, state, func() (planning.Snapshot, collect.View) {
		now = now.Add(2 * time.Second)
		view := state.View(collect.Inputs{Now: now})
		return state.DisruptionSnapshot(view, repairs), view
	}
}

// kept returns the pods of a node's classes that budgets block, with the budgets.
func kept(classes []planning.PodClass) map[string]string {
	out := map[string]string{}
	for _, class := range classes {
		for _, pod := range class.Pods {
			if pod.BlockingPDB != "" {
				out[pod.Name] = pod.BlockingPDB
			}
		}
	}
	return out
}

// The snapshot has the PodDisruptionBudget that blocks a pod now, even if something else protects
// the pod: a snapshot that is sent again must be correct when that protection ends.
func TestSnapshotHasBlockingBudgets(t *testing.T) {
	labelled := func(app string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
	}
	web := budget("web", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels = map[string]string{"app": "web"} })
	feed, state, look := disruptionSnapshot(node("n"), claim("c", registered), node("foreign", func(n *corev1.Node) { n.Spec.ProviderID = "kind://f" }), web,
		pod("a", "n", labelled("web")), pod("b", "n", labelled("web"), doNotDisrupt), pod("free", "n"), pod("elsewhere", "foreign", labelled("web")),
		pod("waits", ""))
	snapshot, view := look()
	if diff := cmp.Diff(map[string]string{"a": "default/web", "b": "default/web"}, kept(snapshot.Nodes[1].Pods)); diff != "" {
		t.Errorf("blocked pods (-want +got):\n%s", diff)
	}
	if got := kept(snapshot.Nodes[0].Pods); len(got) > 0 || snapshot.Nodes[0].Name != "foreign" {
		t.Errorf("an unmanaged node has blocked pods: %v", got)
	}
	if diff := cmp.Diff(view.Pending, snapshot.PendingPods); diff != "" || len(snapshot.PendingPods) != 1 {
		t.Errorf("pending pods (-batch +snapshot):\n%s", diff)
	}
	// A batch has neither: pending pods are a field of the batch, and no plan reads blocked pods.
	if got := kept(view.Snapshot.Nodes[1].Pods); len(got) > 0 || len(view.Snapshot.PendingPods) > 0 {
		t.Errorf("a batch has the blocked pods %v, and %d pending classes", got, len(view.Snapshot.PendingPods))
	}
	open := web.DeepCopy()
	open.Status.DisruptionsAllowed = 1
	turn := state.Revision()
	feed.put(open)
	if snapshot, _ = look(); len(kept(snapshot.Nodes[1].Pods)) > 0 || state.Revision() == turn {
		t.Errorf("the budget allows evictions again, but %v are blocked in revision %d after %d", kept(snapshot.Nodes[1].Pods), state.Revision(), turn)
	}
	feed.put(web)
	if snapshot, _ = look(); len(kept(snapshot.Nodes[1].Pods)) != 2 {
		t.Errorf("the budget allows no evictions, but the blocked pods are %v", kept(snapshot.Nodes[1].Pods))
	}
}

// DaemonSet and mirror pods block a node too, although no selector names them.
func TestBlockedDaemonPodsAreListed(t *testing.T) {
	covered := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "daemon"} }
	mirror := func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" }
	strict := budget("strict", func(b *policyv1.PodDisruptionBudget) {
		b.Spec.Selector.MatchLabels = map[string]string{"app": "daemon"}
	})
	_, _, look := disruptionSnapshot(node("n"), claim("c", registered), strict,
		pod("covered", "n", owner("DaemonSet"), covered), pod("must-stay", "n", owner("DaemonSet"), doNotDisrupt), pod("mirror", "n", doNotDisrupt, mirror),
		pod("ended", "n", owner("DaemonSet"), doNotDisrupt, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), pod("plain", "n", owner("DaemonSet")))
	snapshot, view := look()
	recorded := map[string]string{}
	for _, class := range snapshot.Nodes[0].DaemonPods {
		for _, pod := range class.Pods {
			recorded[pod.Name] = strings.TrimSpace(class.Spec.DoNotDisrupt + " " + pod.BlockingPDB)
		}
	}
	if diff := cmp.Diff(map[string]string{"covered": "default/strict", "must-stay": "true", "mirror": "true"}, recorded); diff != "" {
		t.Errorf("the daemons that keep the node (-want +got):\n%s", diff)
	}
	if got := view.Snapshot.Nodes[0].DaemonPods; len(got) > 0 {
		t.Errorf("a batch has the DaemonSet pods %+v", got)
	}
}

// The snapshot has a pod's start time only if its protection is a duration since then.
func TestSnapshotHasStartOfProtection(t *testing.T) {
	began := func(protection string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: protection}
			p.Status.StartTime = new(metav1.NewTime(noon.Add(-time.Minute)))
		}
	}
	_, _, look := disruptionSnapshot(node("n"), claim("c", registered), pod("timed", "n", began("5m")), pod("ever", "n", began("true")), pod("typo", "n", began("soon")))
	snapshot, _ := look()
	for _, class := range snapshot.Nodes[0].Pods {
		text, err := json.Marshal(class.Pods[0])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Contains(string(text), `"started":"2025-12-31T23:59:00Z"`), class.Pods[0].Name == "timed"; got != want || !want && strings.Contains(string(text), "started") {
			t.Errorf("%s", text)
		}
	}
}

// rebooting sets the condition Rebooting at one o'clock.
func rebooting(status metav1.ConditionStatus) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeRebooting, Status: status}, noon.Add(time.Hour))
	}
}

// A batch and a snapshot have the nodes that are being rebooted.
func TestSnapshotHasReboots(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]bool{metav1.ConditionTrue: true, metav1.ConditionFalse: false} {
		_, _, look := disruptionSnapshot(node("n"), claim("c", registered, rebooting(status)))
		if snapshot, view := look(); snapshot.Nodes[0].Rebooting != want || view.Snapshot.Nodes[0].Rebooting != want {
			t.Errorf("with Rebooting=%s: %+v", status, snapshot.Nodes[0])
		}
	}
}

// A node that starts or is rebooted has the startup taints of its NodeClaim, not of its NodePool.
func TestStartupTaintsOfNodeClaims(t *testing.T) {
	taints := []corev1.Taint{{Key: "agent", Effect: corev1.TaintEffectNoExecute}}
	startup := func(c *karpenter.NodeClaim) { c.Spec.StartupTaints = taints }
	starting := func(c *karpenter.NodeClaim) {
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionUnknown}, noon)
	}
	for name, c := range map[string]struct {
		objects []cluster.Object
		want    []corev1.Taint
	}{
		"no node yet": {[]cluster.Object{claim("c", startup)}, taints},
		"starting":    {[]cluster.Object{node("n"), claim("c", startup, registered, starting)}, taints},
		"initialized": {[]cluster.Object{node("n"), claim("c", startup, registered)}, nil},
		"rebooting":   {[]cluster.Object{node("n"), claim("c", startup, registered, rebooting(metav1.ConditionTrue))}, taints},
	} {
		_, _, look := disruptionSnapshot(c.objects...)
		if _, view := look(); !slices.Equal(view.Snapshot.Nodes[0].StartupTaints, c.want) {
			t.Errorf("%s: startup taints %v, want %v", name, view.Snapshot.Nodes[0].StartupTaints, c.want)
		}
	}
}

// The snapshot has the conditions for which there is a repair policy, at any age. A healthy
// node has none, and a batch never has any.
func TestSnapshotHasUnhealthyConditions(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon)})
		}
	}
	refuse := func(o metav1.Object) { o.SetAnnotations(map[string]string{karpenter.DoNotRepairAnnotationKey: "true"}) }
	young := func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute)) }
	sick := func(since time.Time, doNotRepair bool) *planning.Unhealthy {
		return &planning.Unhealthy{Conditions: []repair.UnhealthyCondition{{Type: "KernelReady", Status: "False", Reason: "Hung", Since: since}}, DoNotRepair: doNotRepair}
	}
	bad := condition("KernelReady", corev1.ConditionFalse, "Hung")
	for name, c := range map[string]struct {
		node  *corev1.Node
		claim *karpenter.NodeClaim
		want  *planning.Unhealthy
	}{
		"healthy":              {node("n", condition("DiskPressure", corev1.ConditionFalse, "KubeletHasNoDiskPressure")), claim("c", registered), nil},
		"unhealthy":            {node("n", condition("DiskPressure", corev1.ConditionTrue, "x"), bad), claim("c", registered), sick(noon, false)},
		"older than the node":  {node("n", bad, young), claim("c", registered), sick(noon.Add(time.Minute), false)},
		"refused by the node":  {node("n", bad, func(n *corev1.Node) { refuse(n) }), claim("c", registered), sick(noon, true)},
		"refused by the claim": {node("n", bad), claim("c", registered, func(c *karpenter.NodeClaim) { refuse(c) }), sick(noon, true)},
		"without a claim":      {node("n", bad), claim("c"), sick(noon, false)},
		"rebooted":             {node("n", bad), claim("c", registered, rebooting("False")), &planning.Unhealthy{Conditions: sick(noon, false).Conditions, LastReboot: noon.Add(time.Hour)}},
		"rebooted before": {node("n", bad), claim("c", registered, func(c *karpenter.NodeClaim) {
			c.Annotations = map[string]string{planning.RebootsAnnotation: "2026-11-20T01:00:00Z,soon"}
		}), &planning.Unhealthy{Conditions: sick(noon, false).Conditions, Reboots: []time.Time{time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)}}},
		"rebooting": {node("n", bad), claim("c", registered, rebooting("True")), sick(noon, false)},
	} {
		t.Run(name, func(t *testing.T) {
			_, state, look := disruptionSnapshot(c.node, c.claim)
			snapshot, view := look()
			if diff := cmp.Diff(c.want, snapshot.Nodes[0].Unhealthy); diff != "" || snapshot.Repair == nil {
				t.Errorf("snapshot (-want +got):\n%s", diff)
			}
			if off := state.DisruptionSnapshot(view, nil); view.Snapshot.Nodes[0].Unhealthy != nil || view.Snapshot.Repair != nil || off.Nodes[0].Unhealthy != nil || off.Repair != nil {
				t.Error("a batch or a snapshot without node repair has health")
			}
		})
	}
}
