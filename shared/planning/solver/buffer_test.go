package solver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// limits returns limits from pairs of name and amount.
func limits(of ...string) karpenter.Limits {
	out := karpenter.Limits{}
	for i := 0; i < len(of); i += 2 {
		out[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return out
}

func TestBufferCount(t *testing.T) {
	spec := planning.PodSpec{Requests: planningtest.NewRequests("500m", "1Gi")}
	for _, tt := range []struct {
		name   string
		buffer planning.Buffer
		want   int
	}{
		{"empty buffer", planning.Buffer{}, 0},
		{"replicas", planning.Buffer{Replicas: new(int32(3))}, 3},
		{"a percentage", planning.Buffer{Percentage: new(int32(20)), WorkloadReplicas: 10}, 2},
		{"percentage rounded up", planning.Buffer{Percentage: new(int32(20)), WorkloadReplicas: 11}, 3},
		{"percentage rounded up to one", planning.Buffer{Percentage: new(int32(1)), WorkloadReplicas: 1}, 1},
		{"percentage of zero", planning.Buffer{Percentage: new(int32(0)), WorkloadReplicas: 10}, 0},
		{"percentage without a workload", planning.Buffer{Percentage: new(int32(50))}, 0},
		{"percentage above 100", planning.Buffer{Percentage: new(int32(150)), WorkloadReplicas: 4}, 6},
		{"replicas and percentage: percentage is larger", planning.Buffer{Replicas: new(int32(3)), Percentage: new(int32(50)), WorkloadReplicas: 10}, 5},
		{"replicas and percentage: replicas are larger", planning.Buffer{Replicas: new(int32(6)), Percentage: new(int32(50)), WorkloadReplicas: 10}, 6},
		{"only limits", planning.Buffer{Limits: limits("cpu", "3")}, 6},
		{"only limits: the scarcest resource", planning.Buffer{Limits: limits("cpu", "3", "memory", "4.5Gi")}, 4},
		{"limits below replicas", planning.Buffer{Replicas: new(int32(9)), Limits: limits("cpu", "3")}, 6},
		{"limits above replicas", planning.Buffer{Replicas: new(int32(2)), Limits: limits("cpu", "3")}, 2},
		{"limits below one pod", planning.Buffer{Replicas: new(int32(2)), Limits: limits("cpu", "400m")}, 0},
		{"limits on an unrequested resource", planning.Buffer{Replicas: new(int32(2)), Limits: limits("nvidia.com/gpu", "0")}, 2},
		{"only limits on an unrequested resource", planning.Buffer{Limits: limits("nvidia.com/gpu", "8")}, 0},
		{"negative limits", planning.Buffer{Limits: limits("cpu", "-8")}, 0},
		{"very large limits", planning.Buffer{Limits: limits("cpu", "1e30")}, 10_000},
		{"very many replicas", planning.Buffer{Replicas: new(int32(2_000_000_000))}, 10_000},
		{"a problem", planning.Buffer{Replicas: new(int32(3)), Problem: "x"}, 0},
	} {
		tt.buffer.Spec = spec
		if got := tt.buffer.PodCount(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestBufferPods checks that the same buffers give the same pods in each batch.
func TestBufferPods(t *testing.T) {
	spec := planning.PodSpec{Labels: map[string]string{"app": "web"}, Requests: planningtest.NewRequests("1", "1Gi")}
	got := planning.NewBufferPods([]planning.Buffer{
		{Namespace: "shop", Name: "spare", UID: "u", Created: planningtest.Now, Spec: spec, Replicas: new(int32(2))},
		{Namespace: "shop", Name: "none", UID: "v", Spec: spec},
	})
	want := []planning.PodClass{{
		Spec: planning.PodSpec{Namespace: "shop", Labels: spec.Labels, Requests: spec.Requests, Priority: planning.BufferPriority},
		Pods: []planning.PodRef{
			{Name: "capacity-buffer-spare-1", UID: "u-1", Created: planningtest.Now, Buffer: "spare"},
			{Name: "capacity-buffer-spare-2", UID: "u-2", Created: planningtest.Now, Buffer: "spare"},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if spec.Namespace != "" || spec.Priority != 0 {
		t.Error("the buffer was changed")
	}
}

// TestBufferNodes checks that only the empty nodes which buffer pods would use are protected from
// removal.
func TestBufferNodes(t *testing.T) {
	node := func(name string) planning.Node {
		return planning.Node{
			Name: name, Claim: name, Launched: true, Registered: true, Initialized: true,
			Allocatable: planningtest.NewRequests("4", "8Gi"), Labels: map[string]string{corev1.LabelHostname: name},
		}
	}
	s := planningtest.NewBatch().Snapshot
	for _, name := range []string{"a", "b", "c"} {
		n := node(name)
		n.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
		s.Nodes = append(s.Nodes, n)
	}
	s.Buffers = []planning.Buffer{{
		Namespace: "shop", Name: "spare", UID: "u", Replicas: new(int32(2)), Spec: planning.PodSpec{Requests: planningtest.NewRequests("3", "1Gi")},
	}}
	if got := solver.FindBufferNodes(s); got != nil {
		t.Errorf("gate off: %v", got)
	}
	s.Settings.Gates.CapacityBuffer = true
	if got := solver.FindBufferNodes(s); len(got) != 2 {
		t.Errorf("protected nodes = %v, want two of three", got)
	}
	s.Nodes[0].Registered, s.Nodes[0].Initialized = false, false
	s.Buffers[0].Replicas = new(int32(3))
	if got := solver.FindBufferNodes(s); len(got) != 2 || got[""] {
		t.Errorf("protected nodes = %v, want the two nodes and not the NodeClaim", got)
	}
	s.Nodes[0].Registered, s.Nodes[0].Initialized = true, true
	s.Buffers[0].Replicas = new(int32(2))
	one := &s.Buffers[0].Spec
	one.Requests, one.Labels = planningtest.NewRequests("1", "1Gi"), map[string]string{"app": "web"}
	if got := solver.FindBufferNodes(s); len(got) != 1 {
		t.Errorf("protected nodes = %v, want one for two small pods", got)
	}
	one.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: one.Labels}},
	}}}
	if got := solver.FindBufferNodes(s); len(got) != 2 {
		t.Errorf("protected nodes = %v, want two for pods that exclude each other", got)
	}
	s.Buffers = nil
	if got := solver.FindBufferNodes(s); got != nil {
		t.Errorf("no buffers: %v", got)
	}
}
