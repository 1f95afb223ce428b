package scenario

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// nodeOf returns an existing, ready node with the labels and taints of its pool and type.
func (s *Scenario) nodeOf(n *node, types map[string]*instancetypes.Type) Node {
	kind := types[n.InstanceType]
	out := Node{NodePool: n.NodePool}
	out.bare = planning.Node{
		Name: n.Name, NodePool: n.NodePool, Labels: maps.Clone(kind.Labels),
		Allocatable: kind.Allocatable, Capacity: kind.Capacity,
		Launched: true, Registered: true, Initialized: true, Ready: true, InitializedAt: taken, Created: taken,
	}
	labels := out.bare.Labels
	if i := slices.IndexFunc(s.NodePools, func(p karpenter.NodePool) bool { return p.Name == n.NodePool }); i >= 0 {
		out.bare.Claim, out.bare.ClaimUID = n.Name, "scenario-"+n.Name
		out.bare.Taints = s.NodePools[i].Spec.Template.Spec.Taints
		ofPool(labels, &s.NodePools[i])
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname:           n.Name,
		corev1.LabelTopologyRegion:     s.stock.Region,
		corev1.LabelTopologyZone:       n.Zone,
		karpenter.CapacityTypeLabelKey: n.CapacityType,
	})
	for _, o := range kind.Offerings {
		if o.Zone == n.Zone && o.ZoneID != "" {
			labels[karpenter.LabelTopologyZoneID] = o.ZoneID
		}
	}
	for i := range n.Pods {
		pod := &n.Pods[i]
		pod.Spec.NodeName, pod.UID = n.Name, uid(podsMax+s.bound)
		s.bound++
		settle(pod)
		out.Pods = append(out.Pods, pod)
	}
	return out
}

// ofPool adds the labels that a pool sets on its nodes.
func ofPool(labels map[string]string, pool *karpenter.NodePool) {
	maps.Copy(labels, pool.Spec.Template.Labels)
	labels[karpenter.NodePoolLabelKey] = pool.Name
	labels[karpenter.NodeRegisteredLabelKey], labels[karpenter.NodeInitializedLabelKey] = "true", "true"
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		labels[karpenter.LabelEC2NodeClass] = ref.Name
	}
}

// filled returns the node with the resources of its pods, and with their claims.
func (n *Node) filled(named podspec.SelectorKeys, claims *podspec.Claims) planning.Node {
	out := n.bare
	podspec.SetBoundPods(&out, n.Pods, named, nil, claims)
	return out
}
