package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// clash reports whether the node already gives away a port of want. The
// wildcard address clashes with every address.
func clash(taken, want []HostPort) bool {
	return slices.ContainsFunc(want, func(port HostPort) bool { return slices.ContainsFunc(taken, port.overlaps) })
}

func (p HostPort) overlaps(other HostPort) bool {
	return p.Port == other.Port && p.protocol() == other.protocol() &&
		(p.wildcard() || other.wildcard() || p.IP == other.IP)
}

func (p HostPort) protocol() corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

func (p HostPort) wildcard() bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }

// same reports whether two ports are one and the same.
func (p HostPort) same(other HostPort) bool {
	return p.Port == other.Port && p.protocol() == other.protocol() && p.IP == other.IP
}
