package memworkload_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
)

var web = cluster.Key{Namespace: "default", Name: "web"}

func TestDeploymentReplacesScalesAndRolls(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, memworkload.Options{StopAfter: time.Second})
	w.server.SeedObjects(deployment(3, "1"), node("a"))
	w.run(time.Minute)
	w.want(map[string]int{"Running on a": 3})

	gone := w.pods()[0]
	if err := w.server.Evict(ctx, cluster.KeyOf(gone), gone.UID); err != nil {
		t.Fatal(err)
	}
	w.run(0)
	w.want(map[string]int{"Running on a": 3, "Terminating on a": 1})
	w.run(time.Minute)
	w.want(map[string]int{"Running on a": 3})
	for _, pod := range w.pods() {
		if pod.Name == gone.Name {
			t.Error("a deleted pod was recreated with its old name")
		}
	}

	w.server.ChangeObject(cluster.Deployments, web, func(o cluster.Object) { o.(*appsv1.Deployment).Spec.Replicas = new(int32(1)) })
	w.run(time.Minute)
	w.want(map[string]int{"Running on a": 1})

	before := w.pods()[0]
	w.server.ChangeObject(cluster.Deployments, web, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Template.Labels = map[string]string{"app": "web", "v": "2"}
	})
	w.run(time.Minute)
	w.want(map[string]int{"Running on a": 1})
	after := w.pods()[0]
	if after.UID == before.UID || after.Labels["v"] != "2" || metav1.GetControllerOf(after).UID == metav1.GetControllerOf(before).UID {
		t.Errorf("pod %s still has the old template", after.Name)
	}
	stored, err := cluster.Get[*appsv1.Deployment](ctx, w.server, cluster.Deployments, web)
	if err != nil || stored.Status.ReadyReplicas != 1 || stored.Status.ObservedGeneration != stored.Generation {
		t.Errorf("Deployment status = %+v (%v)", stored.Status, err)
	}

	if err := w.server.Delete(ctx, cluster.Deployments, web, ""); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	w.want(map[string]int{})
}

func TestDaemonsFollowNodes(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, memworkload.Options{StopAfter: time.Second})
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Template: template("100m")},
	}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"agent": "yes"}
	chosen := func(n *corev1.Node) { n.Labels["agent"] = "yes" }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
	}
	w.server.SeedObjects(set, node("a", chosen), node("b", chosen, cordoned), node("c", chosen, tainted), node("d"))
	w.run(time.Minute)
	w.want(map[string]int{"Running on a": 1, "Running on b": 1})

	w.server.ChangeObject(cluster.Nodes, cluster.Key{Name: "c"}, func(o cluster.Object) { o.(*corev1.Node).Spec.Taints = nil })
	w.server.ChangeObject(cluster.Nodes, cluster.Key{Name: "a"}, func(o cluster.Object) { o.SetLabels(nil) })
	if err := w.server.Delete(ctx, cluster.Nodes, cluster.Key{Name: "b"}, ""); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	w.want(map[string]int{"Running on c": 1})

	if err := w.server.Delete(ctx, cluster.DaemonSets, cluster.KeyOf(set), ""); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	w.want(map[string]int{})
}

func TestPodsUseTheirGracePeriod(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name      string
		stopAfter time.Duration
		grace     int64
		ends      time.Duration
	}{
		{"the pod uses the whole grace period", 0, 30, 30 * time.Second},
		{"the pod ends earlier", 5 * time.Second, 30, 5 * time.Second},
		{"the pod would take longer", time.Minute, 10, 10 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, memworkload.Options{StopAfter: test.stopAfter})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: template("1").Spec}
			w.server.SeedObjects(pod, node("a"))
			w.run(time.Second)
			w.want(map[string]int{"Running on a": 1})
			if err := w.server.DeletePod(ctx, cluster.KeyOf(pod), "", test.grace); err != nil {
				t.Fatal(err)
			}
			w.run(test.ends - time.Second)
			w.want(map[string]int{"Terminating on a": 1})
			w.run(time.Second)
			w.run(0)
			w.want(map[string]int{})
		})
	}
}

func TestTaintsEvict(t *testing.T) {
	w := newWorld(t, memworkload.Options{StopAfter: time.Second})
	pod := func(name string, tolerations ...corev1.Toleration) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: template("100m").Spec}
		p.Spec.Tolerations, p.Spec.NodeName = tolerations, "a"
		return p
	}
	tolerate := corev1.Toleration{Key: "own", Operator: corev1.TolerationOpExists}
	awhile := tolerate
	awhile.TolerationSeconds, awhile.Effect = new(int64(60)), corev1.TaintEffectNoExecute
	w.server.SeedObjects(node("a"), pod("soon"), pod("later", awhile), pod("never", tolerate))
	w.run(time.Minute)
	w.want(map[string]int{"Running on a": 3})
	now := metav1.NewTime(w.now)
	w.server.ChangeObject(cluster.Nodes, cluster.Key{Name: "a"}, func(o cluster.Object) {
		o.(*corev1.Node).Spec.Taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}}
	})
	w.run(55 * time.Second)
	w.want(map[string]int{"Running on a": 2})
	w.run(10 * time.Second)
	w.want(map[string]int{"Running on a": 1})
	if left := w.pods()[0].Name; left != "never" {
		t.Errorf("remaining pod = %s", left)
	}
}
