package solver

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// projectSnapshot returns the snapshot as it is after all commits have happened.
func (st *baseline) projectSnapshot(was planning.Snapshot) planning.Snapshot {
	out := was
	out.Nodes, out.PendingPods, out.Devices = nil, slices.Clone(st.committed.left), st.projectDevices(&was)
	for j := range was.Nodes {
		i := st.nodeIndexes[j]
		if i < 0 || st.removedNodes.Has(i) {
			continue
		}
		node := was.Nodes[j]
		if runs := st.committed.onto[i]; len(runs) > 0 {
			bindPods(&node, runs)
			node.LastPodEvent = was.TakenAt
		}
		out.Nodes = append(out.Nodes, node)
	}
	for k := range st.committed.nodes {
		out.Nodes = append(out.Nodes, st.newJoinedNode(&st.committed.nodes[k], &was))
	}
	return out
}

// bindPods adds the pods to the node. It may change the node, but not its shared lists.
func bindPods(n *planning.Node, runs []kindPods) {
	n.Used, n.Pods, n.HostPorts = maps.Clone(n.Used), slices.Clip(n.Pods), slices.Clip(n.HostPorts)
	if n.Used == nil {
		n.Used = corev1.ResourceList{}
	}
	for _, one := range runs {
		pods := slices.DeleteFunc(slices.Clone(one.pods), func(p planning.PodRef) bool { return p.Buffer != "" })
		if len(pods) == 0 {
			continue // Buffer pods do not exist.
		}
		n.Pods = append(n.Pods, planning.PodClass{Spec: *one.kind.spec, Pods: pods})
		for name, quantity := range (kindPods{one.kind, pods}).sumRequests() {
			n.Used[name] = addQuantity(n.Used[name], quantity)
		}
		for range pods {
			n.HostPorts = append(n.HostPorts, one.kind.spec.HostPorts...)
		}
	}
}

// sumRequests returns the requests of all pods, including attached volumes.
func (r kindPods) sumRequests() corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range r.kind.spec.Requests {
		for range r.pods {
			out[name] = addQuantity(out[name], quantity)
		}
	}
	var volumes []planning.Volume
	for _, v := range r.kind.spec.Volumes {
		volumes = append(volumes, v)
		for range len(r.pods) - 1 {
			volumes = append(volumes, v)
		}
	}
	maps.Copy(out, planning.CountAttachments(volumes...))
	return out
}

func addQuantity(a, b resource.Quantity) resource.Quantity {
	sum := a.DeepCopy()
	sum.Add(b)
	return sum
}

// newJoinedNode returns a planned node as an initialized node of its cheapest offering.
func (st *baseline) newJoinedNode(a *committedNode, was *planning.Snapshot) planning.Node {
	planned, name := &a.planned, a.name
	option := planned.Offerings[0]
	out := planning.Node{
		Name: name, Claim: name, ClaimUID: name, NodePool: planned.NodePool, Labels: planned.Requirements.Labels(),
		Launched: true, Registered: true, Initialized: true, Ready: true,
		InitializedAt: was.TakenAt, LastPodEvent: was.TakenAt, Created: was.TakenAt, PricePerHour: option.PricePerHour,
	}
	if t := st.plannedTypes(planned)[option.InstanceType]; t != nil {
		maps.Copy(out.Labels, t.Labels)
		out.Allocatable, out.Capacity = t.Allocatable, t.Capacity
		id, _ := planned.Requirements[karpenter.LabelCapacityReservationID].SingleValue()
		if i := slices.IndexFunc(t.Offerings, func(o instancetypes.InstanceOffering) bool { return id != "" && o.Reservation == id }); i >= 0 {
			maps.Copy(out.Labels, t.Offerings[i].Labels)
		}
	}
	maps.Copy(out.Labels, planning.RegistrationLabels.Labels())
	maps.Copy(out.Labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: option.InstanceType, corev1.LabelTopologyZone: option.Zone,
		karpenter.LabelTopologyZoneID: option.ZoneID, karpenter.CapacityTypeLabelKey: option.CapacityType,
		karpenter.LabelInstanceTenancy: planning.InstanceTenancy(planned.Requirements),
	})
	if _, known := out.Labels[karpenter.LabelPlacementGroupPartition]; !known && st.types.Partitions[planned.NodeClass] > 0 {
		out.Labels[karpenter.LabelPlacementGroupPartition] = "" // EC2 chooses the partition.
	}
	i := slices.IndexFunc(was.NodePools, func(np karpenter.NodePool) bool { return np.Name == planned.NodePool })
	template := &was.NodePools[i].Spec.Template.Spec
	out.Taints, out.HasTerminationGracePeriod = template.Taints, template.TerminationGracePeriod != nil
	if !template.ExpireAfter.IsNever() {
		out.ExpiresAt = was.TakenAt.Add(*template.ExpireAfter.Duration)
	}
	out.DaemonRequests, out.HostPorts = st.daemonRequests(&existingNode{node: &out, taints: out.Taints})
	out.Used = out.DaemonRequests
	bindPods(&out, a.runs)
	return out
}

// newNodeName returns a unique node name. It derives from the removed nodes and the placed pods, so no
// two commits get the same name.
func (st *baseline) newNodeName(planned *planning.PlannedNode, removed []string) string {
	parts := append(slices.Clone(removed), strconv.Itoa(len(st.committed.nodes)))
	for _, placed := range planned.Pods {
		parts = append(parts, placed.Pod.UID)
	}
	hash := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return planned.NodePool + "-" + hex.EncodeToString(hash[:5])
}
