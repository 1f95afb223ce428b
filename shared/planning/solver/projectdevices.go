package solver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// projectDevices returns the devices after all commits have happened: the slices of removed nodes are
// gone, the drivers of joined nodes have published the devices of their instance types, and the claims of
// planned nodes are allocated on the joined nodes.
func (st *baseline) projectDevices(was *planning.Snapshot) planning.DeviceState {
	out := st.state.snapshot.Devices
	if !was.Settings.PlanDRARequests {
		return out
	}
	removed := map[string]bool{}
	for j := range was.Nodes {
		if i := st.nodeIndexes[j]; i < 0 || st.removedNodes.Has(i) {
			removed[was.Nodes[j].Name] = true
		}
	}
	out.Slices = slices.DeleteFunc(slices.Clone(out.Slices), func(s resourcev1.ResourceSlice) bool {
		return slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" && removed[o.Name] })
	})
	out.Claims = slices.Clone(out.Claims)
	for k := range st.committed.nodes {
		n := &st.committed.nodes[k]
		joinedType := n.planned.Offerings[0].InstanceType
		if t := st.plannedTypes(&n.planned)[joinedType]; t != nil {
			out.Slices = append(out.Slices, newJoinedSlices(n.name, t)...)
		}
		for i := range n.allocations {
			pinClaim(out.Claims, &n.allocations[i], n.name, joinedType)
		}
	}
	return out
}

// newJoinedSlices returns the slices that the drivers publish on a node of the instance type. Devices that
// will share the unknown value of an attribute get one made-up value.
func newJoinedSlices(node string, t *instancetypes.Type) (out []resourcev1.ResourceSlice) {
	perPool := map[[2]string]int64{}
	for i := range t.DeviceTemplates {
		perPool[[2]string{t.DeviceTemplates[i].Driver, t.DeviceTemplates[i].Pool}]++
	}
	for i := range t.DeviceTemplates {
		template := &t.DeviceTemplates[i]
		s := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint(node, "-", i), OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: node}},
		}}
		s.Spec = resourcev1.ResourceSliceSpec{
			Driver: template.Driver, NodeName: &node, SharedCounters: template.SharedCounters,
			Pool: resourcev1.ResourcePool{Name: joinedPool(node, template.Pool), Generation: 1, ResourceSliceCount: perPool[[2]string{template.Driver, template.Pool}]},
		}
		for j := range template.Devices {
			s.Spec.Devices = append(s.Spec.Devices, *template.Devices[j].DeepCopy())
			addBoundAttributes(&s.Spec.Devices[j], template.Driver, template.Pool, t)
		}
		out = append(out, s)
	}
	return out
}

// joinedPool names a pool of a joined node. An instance type may have several pools of one driver.
func joinedPool(node, pool string) string { return node + "/" + pool }

// addBoundAttributes sets the attributes whose values the driver publishes.
func addBoundAttributes(d *resourcev1.Device, driver, pool string, t *instancetypes.Type) {
	for number, binding := range t.DeviceBindings {
		for _, id := range binding.Devices {
			if _, known := d.Attributes[binding.Attribute]; known || id.Driver != driver || id.Pool != pool || id.Device != d.Name {
				continue
			}
			if d.Attributes == nil {
				d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			}
			d.Attributes[binding.Attribute] = resourcev1.DeviceAttribute{StringValue: new(fmt.Sprint("published-", number))}
		}
	}
}

// pinClaim allocates a claim of a planned node on the joined node. A claim that a later commit allocated
// elsewhere is not changed.
func pinClaim(claims []resourcev1.ResourceClaim, one *planning.ClaimAllocation, node, joinedType string) {
	at := slices.IndexFunc(claims, func(c resourcev1.ResourceClaim) bool { return c.Namespace == one.Namespace && c.Name == one.Claim })
	if at < 0 || claims[at].Status.Allocation == nil || !isOnPlannedNode(claims[at].Status.Allocation) {
		return
	}
	holders := claims[at].Status.ReservedFor
	pinned := planning.ClaimAllocation{Namespace: one.Namespace, Claim: one.Claim, Node: node}
	for _, d := range one.Devices {
		if d.InstanceType != joinedType {
			continue
		}
		if d.Template {
			d.Pool, d.Template = joinedPool(node, d.Pool), false
		}
		pinned.Devices = append(pinned.Devices, d)
	}
	claims[at].Status = newClaimStatus(&pinned, nil)
	claims[at].Status.ReservedFor = holders
}

// isOnPlannedNode reports whether only a planned node can use the devices of an allocation.
func isOnPlannedNode(a *resourcev1.AllocationResult) bool {
	return slices.ContainsFunc(a.NodeSelector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool { return slices.Contains(f.Values, plannedHostname) })
	})
}
