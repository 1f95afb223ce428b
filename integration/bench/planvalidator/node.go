package planvalidator

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allocatable is what pods and daemons may take of a machine.
func (t *InstanceType) allocatable() corev1.ResourceList { return less(t.Capacity, t.Overhead) }

// demand is what the pods and the daemons of a node take. Daemons that are bound
// already are among the pods, and only the rest of them is still to come.
func demand(pods, daemons []*pod) corev1.ResourceList {
	sum, coming := corev1.ResourceList{}, corev1.ResourceList{}
	for _, d := range daemons {
		add(coming, d.requests)
	}
	for _, p := range pods {
		add(sum, p.requests)
		if p.bound && metav1.GetControllerOf(p.Pod) != nil && metav1.GetControllerOf(p.Pod).Kind == "DaemonSet" {
			coming = less(coming, p.requests)
		}
	}
	for name, q := range coming {
		if q.Sign() < 0 {
			coming[name] = resource.Quantity{}
		}
	}
	add(sum, coming)
	return sum
}

func (n *node) resources(out *report) {
	want, have := demand(n.pods, n.daemons), n.machine.allocatable()
	if name, over := exceeds(want, have); over && n.changed() {
		w, h := want[name], have[name]
		out.add(Resources, n.name, "%d pods and %d daemons take %s of %s, and it has %s", len(n.pods), len(n.daemons), w.String(), name, h.String())
	}
}

// changed reports whether the plan puts any pod there.
func (n *node) changed() bool {
	for _, p := range n.pods {
		if !p.bound {
			return true
		}
	}
	return false
}

// selectors asks each pod whether it may be on such a node.
func (n *node) selectors(out *report) {
	for _, p := range n.pods {
		if p.bound {
			continue
		}
		if !p.selects(n.meta) {
			out.add(Selectors, p.key, "%s in %s, %s, of pool %s is not what it selects", n.name, n.place.offering.Zone, n.place.offering.CapacityType, n.pool.Metadata.Name)
		}
		if taint, blocked := blocking(n.taints, p.Spec.Tolerations); blocked {
			out.add(Taints, p.key, "it does not tolerate %s of %s", taint.ToString(), n.name)
		}
	}
}

// hostPorts looks for two pods that want the same port of the node. A daemon that
// is not on a node which exists may never have been.
func (n *node) hostPorts(out *report) {
	var taken []hostPort
	there := n.daemons
	if n.plan == nil {
		there = nil
	}
	for _, list := range [][]*pod{there, n.pods} {
		for _, p := range list {
			ports := portsOf(p)
			for _, port := range ports {
				for _, other := range taken {
					if port.conflicts(other) && (!p.bound || !other.owner.bound) {
						out.add(HostPorts, p.key, "%s has %s on its port %d already", n.name, other.owner.key, port.number)
					}
				}
			}
			taken = append(taken, ports...)
		}
	}
}

type hostPort struct {
	owner    *pod
	address  netip.Addr
	number   int32
	protocol corev1.Protocol
}

// portsOf are the host ports of containers and of sidecars, which run as long.
func portsOf(p *pod) []hostPort {
	running := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running = append(running, c)
		}
	}
	var all []hostPort
	for _, c := range running {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				all = append(all, newHostPort(p, port))
			}
		}
	}
	return all
}

// newHostPort fills in Kubernetes' defaults: every address, and TCP.
func newHostPort(owner *pod, port corev1.ContainerPort) hostPort {
	out := hostPort{owner: owner, address: netip.IPv4Unspecified(), number: port.HostPort, protocol: corev1.ProtocolTCP}
	if address, err := netip.ParseAddr(port.HostIP); err == nil {
		out.address = address.Unmap()
	}
	if port.Protocol != "" {
		out.protocol = port.Protocol
	}
	return out
}

// conflicts reports whether two ports cannot be bound on one node; the
// unspecified address is every address.
func (h hostPort) conflicts(other hostPort) bool {
	return h.number == other.number && h.protocol == other.protocol &&
		(h.address == other.address || h.address.IsUnspecified() || other.address.IsUnspecified())
}
