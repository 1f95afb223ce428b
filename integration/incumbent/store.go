package incumbent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store answers what the scheduler reads of a cluster, as informers would: with
// copies. It embeds no client, so whatever else is called panics and is seen.
type store struct {
	client.Client

	nodes      map[string]*corev1.Node
	pods       []*corev1.Pod
	namespaces []string
}

// Get knows nodes; nothing else exists.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if node, ok := into.(*corev1.Node); ok && s.nodes[key.Name] != nil {
		s.nodes[key.Name].DeepCopyInto(node)
		return nil
	}
	return errors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.String())
}

// List knows bound pods and namespaces.
func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = nil
		for _, pod := range s.pods {
			if o.Namespace != "" && o.Namespace != pod.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(pod.Labels)) {
				continue
			}
			if on, fixed := "", o.FieldSelector != nil; fixed {
				if on, fixed = o.FieldSelector.RequiresExactMatch("spec.nodeName"); fixed && on != pod.Spec.NodeName {
					continue
				}
			}
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
	default:
		return fmt.Errorf("listing %T: the store of a scenario has none", into)
	}
	return nil
}
