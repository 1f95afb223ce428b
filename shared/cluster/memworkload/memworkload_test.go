package memworkload_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
)

// world is a server, Kubernetes's controllers, and a clock that jumps to the next due
// action.
type world struct {
	*testing.T
	server *memcluster.Server
	kube   *memworkload.Kubernetes
	// copies has a copy of each object of the server.
	copies *memcluster.Cache
	now    time.Time
}

func newWorld(t *testing.T, options memworkload.Options) *world {
	w := &world{T: t, now: memcluster.Epoch}
	w.server = memcluster.New(memcluster.Options{Now: func() time.Time { return w.now }, Seed: 1})
	w.kube = memworkload.New(w.server, options)
	w.copies = w.server.NewCache(memcluster.CacheOptions{FindMutated: true})
	return w
}

// run advances the clock and runs all due actions. The controllers, which read the server's own objects, must not change
// them.
func (w *world) run(by time.Duration) {
	w.Helper()
	end := w.now.Add(by)
	for range 10_000 {
		w.copies.DeliverAll()
		if err := w.kube.Settle(context.Background(), w.now); err != nil {
			w.Fatal(err)
		}
		if changed := w.copies.ListMutated(); len(changed) > 0 {
			w.Fatalf("objects of the server were changed: %v", changed)
		}
		next := w.kube.Next()
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		if next.After(w.now) {
			w.now = next
		}
	}
	w.Fatal("the next action is not in the future")
}

func (w *world) pods() []*corev1.Pod {
	w.Helper()
	pods, err := cluster.List[*corev1.Pod](context.Background(), w.server, cluster.Pods)
	if err != nil {
		w.Fatal(err)
	}
	return pods
}

// count returns the number of pods by phase and node: "2 Running on a, 1 Pending".
func (w *world) count() map[string]int {
	out := map[string]int{}
	for _, pod := range w.pods() {
		state := string(pod.Status.Phase)
		if pod.DeletionTimestamp != nil {
			state = "Terminating"
		}
		if pod.Spec.NodeName != "" {
			state += " on " + pod.Spec.NodeName
		}
		out[state]++
	}
	return out
}

func (w *world) want(counts map[string]int) {
	w.Helper()
	if got := w.count(); fmt.Sprint(got) != fmt.Sprint(counts) {
		w.Fatalf("pods = %v, want %v", got, counts)
	}
}

func list(cpu, memory, pods string) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	if pods != "" {
		out[corev1.ResourcePods] = resource.MustParse(pods)
	}
	return out
}

func machines(name string) (memworkload.Machine, bool) {
	return memworkload.Machine{Arch: "amd64", Capacity: list("4", "16Gi", "58"), Allocatable: list("3900m", "15Gi", "58")}, name == "m5.xlarge"
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Status: corev1.NodeStatus{
			Allocatable: list("4", "16Gi", "10"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func template(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: list(cpu, "1Gi", "")},
		}}},
	}
}

func deployment(replicas int32, cpu string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template(cpu)},
	}
}

func userData(clusterName string) string {
	return `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: ` + clusterName + `, apiServerEndpoint: https://x, certificateAuthority: Y2E=, cidr: 10.0.0.0/16}
  kubelet:
    config: {maxPods: 20}
    flags: ["--node-labels=team=a", "--register-with-taints=karpenter.sh/unregistered:NoExecute"]
`
}

func boot(id string) memworkload.Boot {
	return memworkload.Boot{
		InstanceID: id, ProviderID: "aws:///eu-west-1a/" + id, Type: "m5.xlarge", Zone: "eu-west-1a",
		PrivateDNS: id + ".internal", UserData: userData("prod"),
	}
}

// The whole life of a node: it joins through its user data, runs pending pods, fails and
// is deleted, and its pods are recreated.
func TestMachineLifecycle(t *testing.T) {
	options := memworkload.Typical("prod", machines)
	options.ForgetAfter = 90 * time.Second
	w := newWorld(t, options)
	w.server.SeedObjects(deployment(3, "1"))
	w.run(time.Second)
	w.want(map[string]int{"Pending": 3})
	for _, pod := range w.pods() {
		c := pod.Status.Conditions
		if len(c) != 1 || c[0].Type != corev1.PodScheduled || c[0].Reason != corev1.PodReasonUnschedulable || c[0].Message != "0/0 nodes are available." {
			t.Fatalf("pod conditions = %+v, want unschedulable", c)
		}
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "ReplicaSet" || !strings.HasPrefix(pod.Name, owner.Name+"-") {
			t.Fatalf("owner of pod %s = %+v, want its ReplicaSet", pod.Name, owner)
		}
	}

	w.kube.Boot(w.now, boot("i-1"))
	w.run(30 * time.Second)
	n, err := cluster.Get[*corev1.Node](context.Background(), w.server, cluster.Nodes, cluster.Key{Name: "i-1.internal"})
	if err != nil {
		t.Fatal(err)
	}
	if n.Labels["team"] != "a" || n.Labels[corev1.LabelTopologyRegion] != "eu-west-1" || n.Spec.ProviderID != "aws:///eu-west-1a/i-1" {
		t.Errorf("node labels %v, provider ID %s", n.Labels, n.Spec.ProviderID)
	}
	if got := n.Status.Allocatable.Pods().Value(); got != 20 {
		t.Errorf("pod capacity of the node = %d, want 20 from its user data", got)
	}
	w.run(30 * time.Second)
	w.want(map[string]int{"Pending": 3}) // the taint in its user data repels them

	w.server.ChangeObject(cluster.Nodes, cluster.KeyOf(n), func(o cluster.Object) { o.(*corev1.Node).Spec.Taints = nil })
	w.run(5 * time.Second)
	w.want(map[string]int{"Running on i-1.internal": 3})

	w.kube.Gone(w.now, "i-1")
	w.run(45 * time.Second)
	n, err = cluster.Get[*corev1.Node](context.Background(), w.server, cluster.Nodes, cluster.Key{Name: "i-1.internal"})
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Spec.Taints) != 2 || n.Spec.Taints[0].Key != corev1.TaintNodeUnreachable || n.Status.Conditions[0].Status != corev1.ConditionUnknown {
		t.Errorf("node without heartbeat: taints %v, conditions %v", n.Spec.Taints, n.Status.Conditions)
	}
	w.run(5 * time.Minute)
	w.want(map[string]int{"Pending": 3})
	if got := w.kube.Next(); !got.IsZero() {
		t.Errorf("an action is due at %s in a cluster at rest", got)
	}
}

func TestMachinesThatCannotJoin(t *testing.T) {
	tests := []struct {
		name   string
		change func(*memworkload.Boot)
		says   string
	}{
		{"another cluster", func(b *memworkload.Boot) { b.UserData = userData("staging") }, `"staging"`},
		{"no user data", func(b *memworkload.Boot) { b.UserData = "" }, "empty"},
		{"no name", func(b *memworkload.Boot) { b.PrivateDNS = "" }, "DNS"},
		{"an unknown type", func(b *memworkload.Boot) { b.Type = "z9.nano" }, "z9.nano"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, memworkload.Typical("prod", machines))
			b := boot("i-1")
			test.change(&b)
			w.kube.Boot(w.now, b)
			w.run(time.Minute)
			refusals := w.kube.Refusals()
			if len(refusals) != 1 || !strings.Contains(refusals[0].Err.Error(), test.says) {
				t.Fatalf("Refusals = %v, want one that contains %s", refusals, test.says)
			}
			if nodes, _ := w.server.List(context.Background(), cluster.Nodes, ""); len(nodes) != 0 {
				t.Errorf("the machine joined as node %s", nodes[0].GetName())
			}
		})
	}
}

func TestSameStepsSameNames(t *testing.T) {
	names := func() (out []string) {
		w := newWorld(t, memworkload.Options{})
		w.server.SeedObjects(deployment(5, "1"), node("a"), node("b"))
		w.run(time.Minute)
		for _, pod := range w.pods() {
			out = append(out, pod.Name+"@"+pod.Spec.NodeName+"#"+string(pod.UID))
		}
		return out
	}
	first, again := names(), names()
	if len(first) != 5 || fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("the same steps gave different names:\n%v and\n%v", first, again)
	}
}
