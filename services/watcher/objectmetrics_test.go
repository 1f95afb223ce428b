package watcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// collectObjects returns the series of the nodes and pods, with the labels that have a value.
func (s *harness) collectObjects() []string {
	var out []string
	s.svc.CollectObjects(func(labels []string, values []metric.ObjectValue) {
		for _, v := range values {
			var shown []string
			i := 0
			for _, l := range v.Metric.Labels {
				value := v.Resource
				if l.Name != "resource_type" {
					value = labels[i]
					i++
				}
				if value != "" {
					shown = append(shown, l.Name+"="+value)
				}
			}
			if i != len(labels) {
				s.t.Errorf("%s has %d labels, and got %d values", v.Metric.Name, i, len(labels))
			}
			out = append(out, fmt.Sprintf("%s{%s} %g", strings.TrimPrefix(v.Metric.Name, "karpenter_"), strings.Join(shown, ","), v.Value))
		}
	})
	return out
}

// boundPod returns a pod that runs on node n with a request of 500m CPU.
func boundPod(name, ownerKind string) *corev1.Pod {
	pod := unschedulable("default", name)
	pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions = "n", corev1.PodRunning, nil
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: ownerKind, Name: "owner", UID: "owner"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}
	return pod
}

// The leading watcher computes Karpenter's metrics of nodes and pods from its cache.
func TestCollectObjects(t *testing.T) {
	s := newHarness(t)
	if got := s.collectObjects(); len(got) > 0 {
		t.Errorf("before the first step: %v", got)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: metav1.NewTime(s.now), Labels: map[string]string{
		karpenter.NodePoolLabelKey: "default", karpenter.CapacityTypeLabelKey: "spot", corev1.LabelTopologyZone: "eu-west-1a", corev1.LabelInstanceTypeStable: "m7g.large",
		corev1.LabelArchStable: "arm64", "karpenter.k8s.aws/instance-cpu": "2",
	}}}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "hugepages-2Mi": resource.MustParse("0")}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1900m"), "hugepages-2Mi": resource.MustParse("0"), corev1.ResourcePods: resource.MustParse("10")}
	ended := boundPod("ended", "Job")
	ended.Status.Phase = corev1.PodSucceeded
	s.SeedObjects(node, boundPod("web", "ReplicaSet"), boundPod("agent", "DaemonSet"), ended, unschedulable("default", "waiting"))
	s.advance(5e9)
	got := s.collectObjects()
	const of = "arch=arm64,capacity_type=spot,instance_cpu=2,instance_type=m7g.large,nodepool=default,zone=eu-west-1a,node_name=n,managed=true"
	const at = "nodepool=default,zone=eu-west-1a,arch=arm64,capacity_type=spot,instance_type=m7g.large"
	for _, want := range []string{
		"nodes_allocatable{" + of + ",resource_type=cpu} 1.9", "nodes_allocatable{" + of + ",resource_type=pods} 10", "nodes_total_pod_requests{" + of + ",resource_type=cpu} 1",
		"nodes_total_pod_requests{" + of + ",resource_type=pods} 2", "nodes_total_daemon_requests{" + of + ",resource_type=cpu} 0.5", "cluster_utilization_percent{resource_type=pods} 20",
		"pods_state{name=web,namespace=default,owner=/apis/apps/v1/namespaces/default/replicasets/owner,node=n,scheduled=true," + at + ",phase=Running,ready=true,managed=true} 1",
		"pods_state{name=waiting,namespace=default,scheduled=false,phase=Pending,ready=false,managed=false} 1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no series %s", want)
		}
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, "hugepages") || !strings.Contains(text, "nodes_system_overhead{"+of+",resource_type=cpu} 0.1") || !strings.Contains(text, "nodes_current_lifetime_seconds{"+of+"} 5") || t.Failed() {
		t.Errorf("the series are:\n%s", text)
	}
}

// A large cluster has no series for each node and pod, which would need more memory than planning, and still its utilization.
func TestLargeClusterHasNoObjects(t *testing.T) {
	s := newHarness(t)
	var all []cluster.Object
	for i := range 2001 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n-%d", i)}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		all = append(all, node)
	}
	s.SeedObjects(append(all, boundPod("web", "ReplicaSet"))...)
	s.advance(5e9)
	got := strings.Join(s.collectObjects(), "\n")
	if strings.Contains(got, "nodes_") || !strings.Contains(got, "pods_state{name=web") || !strings.Contains(got, "cluster_utilization_percent{resource_type=cpu} 0") {
		t.Errorf("the series are:\n%s", got)
	}
}
