package planvalidator

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// allocatable returns the resources for pods and daemons.
func (t *InstanceType) allocatable() corev1.ResourceList {
	return subtractResources(t.Capacity, t.Overhead)
}

// sumRequests sums the requests of pods and daemons. Bound daemons are among the pods, so only the rest of the
// daemons is added.
func sumRequests(pods, daemons []*pod) corev1.ResourceList {
	sum, coming := corev1.ResourceList{}, corev1.ResourceList{}
	for _, d := range daemons {
		addResources(coming, d.requests)
	}
	for _, p := range pods {
		addResources(sum, p.requests)
		if p.bound && isDaemonPod(p.Pod) {
			coming = subtractResources(coming, p.requests)
		}
	}
	for name, q := range coming {
		if q.Sign() < 0 {
			coming[name] = resource.Quantity{}
		}
	}
	addResources(sum, coming)
	return sum
}

func (n *node) checkResources(out *report) {
	want, have := sumRequests(n.pods, n.daemons), n.machine.allocatable()
	if name, over := exceededResource(want, have); over && n.hasNewPods() {
		w, h := want[name], have[name]
		out.add(Resources, n.name, "%d pods and %d daemons request %s of %s; the node has %s", len(n.pods), len(n.daemons), w.String(), name, h.String())
	}
}

// hasNewPods reports whether the plan places pods on the node.
func (n *node) hasNewPods() bool {
	for _, p := range n.pods {
		if !p.bound {
			return true
		}
	}
	return false
}

// checkSelectors checks node selectors, affinity and taints of each pod.
func (n *node) checkSelectors(out *report) {
	for _, p := range n.pods {
		if p.bound {
			continue
		}
		if !p.canRunOn(n.meta) {
			out.add(Selectors, p.key, "%s in %s, %s, of pool %s does not match its node selector", n.name, n.offering.Zone, n.offering.CapacityType, n.pool.Metadata.Name)
		}
		if taint, blocked := untoleratedTaint(n.taints, p.Spec.Tolerations); blocked {
			out.add(Taints, p.key, "the pod does not tolerate %s of %s", taint.ToString(), n.name)
		}
	}
}

// checkHostPorts checks that no two pods use the same port. Daemons that are not bound to an existing node are
// ignored.
func (n *node) checkHostPorts(out *report) {
	var taken []hostPort
	there := n.daemons
	if n.plan == nil {
		there = nil
	}
	for _, list := range [][]*pod{there, n.pods} {
		for _, p := range list {
			ports := hostPortsOf(p)
			for _, port := range ports {
				for _, other := range taken {
					if port.conflictsWith(other) && (!p.bound || !other.owner.bound) {
						out.add(HostPorts, p.key, "on %s pod %s already uses port %d", n.name, other.owner.key, port.number)
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

// hostPortsOf returns the host ports of containers and sidecars.
func hostPortsOf(p *pod) []hostPort {
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

// newHostPort applies Kubernetes' defaults: all addresses, and TCP.
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

// conflictsWith reports whether two ports cannot be bound on one node; the unspecified address is every address.
func (h hostPort) conflictsWith(other hostPort) bool {
	return h.number == other.number && h.protocol == other.protocol &&
		(h.address == other.address || h.address.IsUnspecified() || other.address.IsUnspecified())
}
