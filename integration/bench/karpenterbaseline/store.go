package karpenterbaseline

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// store is a client that returns copies of what the scheduler reads of a cluster, as
// informers do. It embeds a nil client, so other calls panic.
type store struct {
	client.Client

	nodes map[string]*corev1.Node
	// pods are the pods on nodes, and byNode the same by the node's name.
	pods       []*corev1.Pod
	byNode     map[string][]*corev1.Pod
	namespaces []string
	// pools and daemons are listed by the disruption controller.
	pools   []*karpv1.NodePool
	daemons []*appsv1.DaemonSet
}

// Get returns nodes and NodePools; no other object exists.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Node:
		if node := s.nodes[key.Name]; node != nil {
			node.DeepCopyInto(into)
			return nil
		}
	case *karpv1.NodePool:
		for _, pool := range s.pools {
			if pool.Name == key.Name {
				pool.DeepCopyInto(into)
				return nil
			}
		}
	}
	return errors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.String())
}

// List returns bound pods, namespaces, NodePools and DaemonSets; there are no
// PodDisruptionBudgets.
func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = nil
		for _, pod := range s.found(&o) {
			list.Items = append(list.Items, *pod.DeepCopy())
		}
	case *corev1.NamespaceList:
		list.Items = nil
		for _, name := range s.namespaces {
			set := labels.Set{corev1.LabelMetadataName: name}
			if o.LabelSelector == nil || o.LabelSelector.Matches(set) {
				list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}})
			}
		}
	case *karpv1.NodePoolList:
		list.Items = nil
		for _, pool := range s.pools {
			list.Items = append(list.Items, *pool.DeepCopy())
		}
	case *appsv1.DaemonSetList:
		list.Items = nil
		for _, daemon := range s.daemons {
			list.Items = append(list.Items, *daemon.DeepCopy())
		}
	case *policyv1.PodDisruptionBudgetList:
		list.Items = nil
	default:
		return fmt.Errorf("listing %T: the store of a scenario has none", into)
	}
	return nil
}

// found returns the bound pods that a list selects. Pods of one node come from an index,
// as with informers.
func (s *store) found(o *client.ListOptions) []*corev1.Pod {
	from := s.pods
	if o.FieldSelector != nil {
		if on, fixed := o.FieldSelector.RequiresExactMatch("spec.nodeName"); fixed {
			from = s.byNode[on]
		}
	}
	var out []*corev1.Pod
	for _, pod := range from {
		if o.Namespace != "" && o.Namespace != pod.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		out = append(out, pod)
	}
	return out
}
