package karpenterbaseline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// newStore returns a store with the scenario's nodes and their bound pods.
func newStore(s *Scenario, types []*cloudprovider.InstanceType) (*store, error) {
	out := &store{nodes: map[string]*corev1.Node{}, byNode: map[string][]*corev1.Pod{}, pools: s.NodePools}
	for i := range s.Nodes {
		node, err := s.Nodes[i].node(s, types)
		if err != nil {
			return nil, err
		}
		out.nodes[node.Name] = node
		out.pods = append(out.pods, s.Nodes[i].Pods...)
		out.byNode[node.Name] = s.Nodes[i].Pods
	}
	for _, pod := range s.DaemonSetPods {
		out.daemons = append(out.daemons, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}},
		})
	}
	for _, pod := range slices.Concat(s.Pods, out.pods) {
		if !slices.Contains(out.namespaces, pod.Namespace) {
			out.namespaces = append(out.namespaces, pod.Namespace)
		}
	}
	return out, nil
}

// newCluster fills upstream's cluster state.
func newCluster(ctx context.Context, s *Scenario, from *store) (*state.Cluster, error) {
	cluster := state.NewCluster(clock.RealClock{}, from, nil)
	for _, n := range s.Nodes {
		if err := cluster.UpdateNode(ctx, from.nodes[n.Name].DeepCopy()); err != nil {
			return nil, fmt.Errorf("adding node %s: %w", n.Name, err)
		}
	}
	for _, pod := range from.pods {
		if err := cluster.UpdatePod(ctx, pod); err != nil {
			return nil, fmt.Errorf("adding pod %s: %w", pod.Name, err)
		}
	}
	return cluster, nil
}

// node returns the Kubernetes object of a ready node.
func (n *node) node(s *Scenario, types []*cloudprovider.InstanceType) (*corev1.Node, error) {
	at := slices.IndexFunc(types, func(t *cloudprovider.InstanceType) bool { return t.Name == n.InstanceType })
	if at < 0 {
		return nil, fmt.Errorf("node %s has the instance type %s, which the scenario does not have", n.Name, n.InstanceType)
	}
	labels, taints := n.labels(s, &s.InstanceTypes[at]), []corev1.Taint(nil)
	if pool := s.pool(n.NodePool); pool != nil {
		taints = pool.Spec.Template.Spec.Taints
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "scenario:///" + n.Name, Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: types[at].Capacity, Allocatable: resources.Merge(types[at].Allocatable()),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}, nil
}

func (n *node) labels(s *Scenario, m *machine) map[string]string {
	labels := maps.Clone(m.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if pool := s.pool(n.NodePool); pool != nil {
		maps.Copy(labels, pool.Spec.Template.Labels)
		maps.Copy(labels, map[string]string{karpv1.NodePoolLabelKey: pool.Name, karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true"})
		if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
			labels[karpv1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
		}
	}
	for _, o := range m.Offerings {
		if o.Zone == n.Zone && o.ZoneID != "" {
			labels[awsv1.LabelTopologyZoneID] = o.ZoneID
		}
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelInstanceTypeStable: m.Name, corev1.LabelArchStable: m.Arch,
		corev1.LabelOSStable: m.OS[0], corev1.LabelTopologyZone: n.Zone, karpv1.CapacityTypeLabelKey: n.CapacityType,
	})
	return labels
}

func (s *Scenario) pool(name string) *karpv1.NodePool {
	for _, pool := range s.NodePools {
		if pool.Name == name {
			return pool
		}
	}
	return nil
}
