package memworkload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

var one = apiresource.MustParse("1")

// hostPort is a port of the node that a container uses.
type hostPort struct {
	protocol corev1.Protocol
	ip       string
	number   int32
}

const anyIP = "0.0.0.0"

// hostPorts returns the host ports of a pod's sidecars and containers.
func hostPorts(pod *corev1.Pod) []hostPort {
	var ports []hostPort
	running := slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	for _, container := range append(running, pod.Spec.Containers...) {
		for _, p := range container.Ports {
			if p.HostPort == 0 {
				continue
			}
			taken := hostPort{p.Protocol, p.HostIP, p.HostPort}
			if taken.protocol == "" {
				taken.protocol = corev1.ProtocolTCP
			}
			if taken.ip == "" {
				taken.ip = anyIP
			}
			ports = append(ports, taken)
		}
	}
	return ports
}

// conflictsWith reports whether two containers cannot use these ports on one node.
func (p hostPort) conflictsWith(q hostPort) bool {
	return p.number == q.number && p.protocol == q.protocol && (p.ip == q.ip || p.ip == anyIP || q.ip == anyIP)
}
