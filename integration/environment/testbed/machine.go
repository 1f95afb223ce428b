package testbed

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
)

// startMachines registers nodes for booted instances, makes nodes of terminated instances unreachable, and deletes
// the nodes that no NodeClaim registered. kwok does the rest. What fails is tried again at the next call, as a kubelet does.
func (w *TestBed) startMachines() func() error {
	silent, forgotten := map[string]bool{}, map[string]bool{}
	var booted []memcloud.Boot
	return func() error {
		w.Cloud.Advance()
		booted = append(booted, w.Cloud.Booted()...)
		due := time.Now().Add(-w.options.Join)
		isDue := func(boot memcloud.Boot) bool { return !boot.Launched.After(due) }
		for i := slices.IndexFunc(booted, isDue); i >= 0; i = slices.IndexFunc(booted, isDue) {
			if err := w.joinNode(booted[i]); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("booting %s: %w", booted[i].ID, err)
			}
			booted = slices.Delete(booted, i, i+1)
		}
		for _, r := range w.Cloud.Records() {
			if !r.Ended.IsZero() && !silent[r.ID] {
				if err := w.stopHeartbeat(r.PrivateDNS); err != nil {
					return fmt.Errorf("terminating %s: %w", r.ID, err)
				}
				silent[r.ID] = true
			}
			if !r.Gone.IsZero() && !forgotten[r.ID] {
				if err := w.deleteUnregisteredNode(r); err != nil {
					return fmt.Errorf("deleting the node of %s, which is terminated: %w", r.ID, err)
				}
				forgotten[r.ID] = true
			}
		}
		return nil
	}
}

// deleteUnregisteredNode deletes the node of a terminated instance as AWS's cloud controller manager does. A node with a
// finalizer is Joist's to delete.
func (w *TestBed) deleteUnregisteredNode(r memcloud.Record) error {
	nodes := w.Kube.CoreV1().Nodes()
	node, err := nodes.Get(w.Ctx, r.PrivateDNS, metav1.GetOptions{})
	if err != nil {
		return ignoreMissing(err)
	}
	if InstanceID(node.Spec.ProviderID) != r.ID || len(node.Finalizers) > 0 {
		return nil
	}
	return ignoreMissing(nodes.Delete(w.Ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}}))
}

// joinNode registers the node as its kubelet would, by its user data.
func (w *TestBed) joinNode(boot memcloud.Boot) error {
	joining, err := userdata.Parse(boot.UserData)
	if err != nil {
		return err
	}
	if joining.ClusterName != ClusterName || joining.Endpoint != w.AWS.Cluster.Endpoint {
		return fmt.Errorf("its user data is for cluster %s at %s", joining.ClusterName, joining.Endpoint)
	}
	i := slices.IndexFunc(w.Catalogue.Types, func(t catalog.InstanceType) bool { return t.Name == boot.Type })
	if i < 0 {
		return fmt.Errorf("the catalogue has no instance type %s", boot.Type)
	}
	capacity, _, allocatable := catalog.NodeResources(w.Catalogue.Types[i], catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
	if joining.MaxPods > 0 {
		pods := resource.MustParse(strconv.Itoa(joining.MaxPods))
		capacity[corev1.ResourcePods], allocatable[corev1.ResourcePods] = pods, pods
	}
	node := controlplane.FakeNode(boot.PrivateDNS, capacity)
	node.Status.Allocatable = allocatable
	// What the kubelet and the cloud's controller know, then what the user data says.
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelArchStable:         w.Catalogue.Types[i].Arch,
		corev1.LabelInstanceTypeStable: boot.Type,
		corev1.LabelTopologyZone:       boot.Zone,
		corev1.LabelTopologyRegion:     Region,
	})
	maps.Copy(node.Labels, joining.Labels)
	node.Spec.Taints = joining.Taints
	node.Spec.ProviderID = karpenter.ProviderID{Zone: boot.Zone, InstanceID: boot.ID}.String()
	_, err = w.Kube.CoreV1().Nodes().Create(w.Ctx, node, metav1.CreateOptions{})
	return err
}

// stopHeartbeat makes kwok ignore the node and sets its conditions to unknown, as the node controller does for an
// unreachable node.
func (w *TestBed) stopHeartbeat(name string) error {
	nodes := w.Kube.CoreV1().Nodes()
	letGo, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{controlplane.NodeAnnotation: nil}}})
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(w.Ctx, name, types.MergePatchType, letGo, metav1.PatchOptions{}); err != nil {
		return ignoreMissing(err)
	}
	node, err := nodes.Get(w.Ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignoreMissing(err)
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", metav1.Now()
	}
	_, err = nodes.UpdateStatus(w.Ctx, node, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return w.stopHeartbeat(name)
	}
	return ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
