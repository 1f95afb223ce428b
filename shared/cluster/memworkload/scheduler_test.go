package memworkload_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
)

func required(key string, operator corev1.NodeSelectorOperator, values ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}},
	}}}
}

// Two nodes: a is small, old and free; b is large and new, and preferred by pods without
// constraints.
func TestScheduling(t *testing.T) {
	small := func(n *corev1.Node) {
		n.Labels["gen"], n.Labels["old"] = "4", "yes"
		n.Status.Allocatable = list("2", "4Gi", "2")
	}
	large := func(n *corev1.Node) { n.Labels["gen"] = "7" }
	busy := func(p *corev1.PodSpec) {
		p.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	}
	tests := []struct {
		name  string
		pod   func(*corev1.PodSpec)
		nodes func(a, b *corev1.Node)
		on    string // "": on no node
		says  string
	}{
		{"prefers the emptier node", nil, nil, "b", ""},
		{"selector", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"name": "a"} }, nil, "a", ""},
		{"selector matches no node", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"name": "z"} }, nil, "", "2 node(s) didn't match"},
		{"In", func(p *corev1.PodSpec) { p.Affinity = required("name", corev1.NodeSelectorOpIn, "a", "z") }, nil, "a", ""},
		{"NotIn", func(p *corev1.PodSpec) { p.Affinity = required("name", corev1.NodeSelectorOpNotIn, "b") }, nil, "a", ""},
		{"Exists", func(p *corev1.PodSpec) { p.Affinity = required("old", corev1.NodeSelectorOpExists) }, nil, "a", ""},
		{"DoesNotExist", func(p *corev1.PodSpec) { p.Affinity = required("old", corev1.NodeSelectorOpDoesNotExist) }, nil, "b", ""},
		{"Gt", func(p *corev1.PodSpec) { p.Affinity = required("gen", corev1.NodeSelectorOpGt, "5") }, nil, "b", ""},
		{"Lt", func(p *corev1.PodSpec) { p.Affinity = required("gen", corev1.NodeSelectorOpLt, "5") }, nil, "a", ""},
		{"too large", func(p *corev1.PodSpec) { p.Containers[0].Resources.Requests = list("8", "1Gi", "") }, nil, "", "2 Insufficient cpu"},
		{"overhead counts", func(p *corev1.PodSpec) { p.Overhead = list("3500m", "1Gi", "") }, nil, "", "2 Insufficient cpu"},
		{"init containers count", func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: list("1", "32Gi", "")}}}
		}, nil, "", "2 Insufficient memory"},
		{"pod limit reached", nil, func(_, b *corev1.Node) { b.Status.Allocatable["pods"] = list("1", "1", "0")["pods"] }, "a", ""},
		{"cordoned", nil, func(_, b *corev1.Node) { b.Spec.Unschedulable = true }, "a", ""},
		{"cordoned and tolerated", func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		}, func(_, b *corev1.Node) { b.Spec.Unschedulable = true }, "b", ""},
		{"tainted", nil, func(_, b *corev1.Node) {
			b.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
		}, "a", ""},
		{"PreferNoSchedule taint", nil, func(_, b *corev1.Node) {
			b.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, "a", ""},
		{"tainted and tolerated", func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpEqual, Value: "1"}}
		}, func(_, b *corev1.Node) {
			b.Spec.Taints = []corev1.Taint{{Key: "x", Value: "1", Effect: corev1.TaintEffectNoSchedule}}
		}, "b", ""},
		{"tainted with another value", func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpEqual, Value: "2"}}
		}, func(a, b *corev1.Node) {
			a.Spec.Taints = []corev1.Taint{{Key: "x", Value: "1", Effect: corev1.TaintEffectNoSchedule}}
			b.Spec.Taints = a.Spec.Taints
		}, "", "2 node(s) had untolerated taint"},
		{"not ready", nil, func(_, b *corev1.Node) { b.Status.Conditions[0].Status = corev1.ConditionFalse }, "a", ""},
		{"gated", func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }, nil, "", "gates"},
		{"host port", busy, nil, "b", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, memworkload.Options{})
			a, b := node("a", small), node("b", large)
			if test.nodes != nil {
				test.nodes(a, b)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: template("1").Spec}
			if test.pod != nil {
				test.pod(&pod.Spec)
			}
			w.server.SeedObjects(a, b)
			w.run(0)
			w.server.SeedObjects(pod)
			w.run(time.Minute)
			got := w.pods()[0]
			if got.Spec.NodeName != test.on {
				t.Errorf("pod on node %q, want %q: %+v", got.Spec.NodeName, test.on, got.Status.Conditions)
			}
			if message := got.Status.Conditions[0].Message; !strings.Contains(message, test.says) {
				t.Errorf("scheduler message %q, want it to contain %q", message, test.says)
			}
		})
	}
}

func TestHostPortsDoNotClash(t *testing.T) {
	one := corev1.Container{Name: "port", Ports: []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}}
	sidecar := one
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	for _, test := range []struct {
		name    string
		change  func(*corev1.PodSpec)
		pending int
	}{
		{"container", func(p *corev1.PodSpec) { p.Containers = append(p.Containers, one) }, 1},
		{"sidecar", func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{sidecar} }, 1},
		{"init container", func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{one} }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, memworkload.Options{})
			d := deployment(3, "100m")
			test.change(&d.Spec.Template.Spec)
			w.server.SeedObjects(node("a"), node("b"), d)
			w.run(time.Minute)
			pending := 0
			for _, pod := range w.pods() {
				if pod.Spec.NodeName == "" {
					pending++
				}
			}
			if pending != test.pending {
				t.Errorf("%d pending pods, want %d", pending, test.pending)
			}
		})
	}
}

func TestPriorityGoesFirst(t *testing.T) {
	w := newWorld(t, memworkload.Options{})
	low := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-low"}, Spec: template("3").Spec}
	high := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b-high"}, Spec: template("3").Spec}
	high.Spec.PriorityClassName = "system-cluster-critical"
	w.server.SeedObjects(node("a"), low, high)
	w.run(time.Minute)
	if pods := w.pods(); pods[0].Spec.NodeName != "" || pods[1].Spec.NodeName != "a" {
		t.Errorf("the low-priority pod is on %q, the high-priority pod on %q", pods[0].Spec.NodeName, pods[1].Spec.NodeName)
	}
}

func TestTerminatingPodsUseCapacity(t *testing.T) {
	w := newWorld(t, memworkload.Options{})
	w.server.SeedObjects(node("a"), deployment(1, "3"))
	w.run(time.Second)
	pod := w.pods()[0]
	if err := w.server.Evict(t.Context(), cluster.KeyOf(pod), pod.UID); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	w.want(map[string]int{"Terminating on a": 1, "Pending": 1})
	w.run(30 * time.Second)
	w.want(map[string]int{"Running on a": 1})
}
