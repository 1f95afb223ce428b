package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
	"github.com/joist-autoscaler/joist/shared/planning/schedulingtest"
)

// limits are amounts by name.
func limits(of ...string) karpenter.Limits {
	out := karpenter.Limits{}
	for i := 0; i < len(of); i += 2 {
		out[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return out
}

func TestBufferCount(t *testing.T) {
	spec := scheduling.PodSpec{Requests: schedulingtest.Requests("500m", "1Gi")}
	for _, tt := range []struct {
		name   string
		buffer scheduling.Buffer
		want   int
	}{
		{"nothing said", scheduling.Buffer{}, 0},
		{"replicas", scheduling.Buffer{Replicas: new(int32(3))}, 3},
		{"a percentage", scheduling.Buffer{Percentage: new(int32(20)), Scale: 10}, 2},
		{"rounded up", scheduling.Buffer{Percentage: new(int32(20)), Scale: 11}, 3},
		{"a little of a little", scheduling.Buffer{Percentage: new(int32(1)), Scale: 1}, 1},
		{"nothing of it", scheduling.Buffer{Percentage: new(int32(0)), Scale: 10}, 0},
		{"a percentage of nothing", scheduling.Buffer{Percentage: new(int32(50))}, 0},
		{"more than all", scheduling.Buffer{Percentage: new(int32(150)), Scale: 4}, 6},
		{"the larger of both", scheduling.Buffer{Replicas: new(int32(3)), Percentage: new(int32(50)), Scale: 10}, 5},
		{"the larger of both, the other way round", scheduling.Buffer{Replicas: new(int32(6)), Percentage: new(int32(50)), Scale: 10}, 6},
		{"limits alone are filled", scheduling.Buffer{Limits: limits("cpu", "3")}, 6},
		{"by the scarcest", scheduling.Buffer{Limits: limits("cpu", "3", "memory", "4.5Gi")}, 4},
		{"limits hold replicas back", scheduling.Buffer{Replicas: new(int32(9)), Limits: limits("cpu", "3")}, 6},
		{"limits that are far", scheduling.Buffer{Replicas: new(int32(2)), Limits: limits("cpu", "3")}, 2},
		{"limits too low for one", scheduling.Buffer{Replicas: new(int32(2)), Limits: limits("cpu", "400m")}, 0},
		{"limits on what is not asked for", scheduling.Buffer{Replicas: new(int32(2)), Limits: limits("nvidia.com/gpu", "0")}, 2},
		{"such limits alone", scheduling.Buffer{Limits: limits("nvidia.com/gpu", "8")}, 0},
		{"negative limits", scheduling.Buffer{Limits: limits("cpu", "-8")}, 0},
		{"limits beyond reason", scheduling.Buffer{Limits: limits("cpu", "1e30")}, 10_000},
		{"replicas beyond reason", scheduling.Buffer{Replicas: new(int32(2_000_000_000))}, 10_000},
		{"a problem", scheduling.Buffer{Replicas: new(int32(3)), Problem: "x"}, 0},
	} {
		tt.buffer.Spec = spec
		if got := tt.buffer.Count(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// The pods are the same in each batch, so that a buffer is news only when it
// changes.
func TestBufferPods(t *testing.T) {
	spec := scheduling.PodSpec{Labels: map[string]string{"app": "web"}, Requests: schedulingtest.Requests("1", "1Gi")}
	got := scheduling.BufferPods([]scheduling.Buffer{
		{Namespace: "shop", Name: "spare", UID: "u", Created: schedulingtest.Now, Spec: spec, Replicas: new(int32(2))},
		{Namespace: "shop", Name: "none", UID: "v", Spec: spec},
	})
	want := []scheduling.PodClass{{
		Spec: scheduling.PodSpec{Namespace: "shop", Requests: spec.Requests, Priority: scheduling.BufferPriority},
		Pods: []scheduling.PodRef{
			{Name: "capacity-buffer-spare-1", UID: "u-1", Created: schedulingtest.Now, Buffer: "spare"},
			{Name: "capacity-buffer-spare-2", UID: "u-2", Created: schedulingtest.Now, Buffer: "spare"},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if spec.Labels == nil {
		t.Error("the buffer itself was changed")
	}
}

// An empty node that a buffer's pods would go to is not to be taken away, and the
// others are.
func TestBufferNodes(t *testing.T) {
	node := func(name string) scheduling.Node {
		return scheduling.Node{
			Name: name, Claim: name, Launched: true, Registered: true, Initialized: true,
			Allocatable: schedulingtest.Requests("4", "8Gi"), Labels: map[string]string{corev1.LabelHostname: name},
		}
	}
	s := schedulingtest.Seed().Snapshot
	for _, name := range []string{"a", "b", "c"} {
		n := node(name)
		n.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
		s.Nodes = append(s.Nodes, n)
	}
	s.Buffers = []scheduling.Buffer{{
		Namespace: "shop", Name: "spare", UID: "u", Replicas: new(int32(2)), Spec: scheduling.PodSpec{Requests: schedulingtest.Requests("3", "1Gi")},
	}}
	if got := scheduling.BufferNodes(s); got != nil {
		t.Errorf("with the gate off: %v", got)
	}
	s.Settings.Gates.CapacityBuffer = true
	if got := scheduling.BufferNodes(s); len(got) != 2 {
		t.Errorf("room is kept on %v, want two of three nodes", got)
	}
	s.Buffers = nil
	if got := scheduling.BufferNodes(s); got != nil {
		t.Errorf("without buffers: %v", got)
	}
}
