package planning

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// PortsConflict reports whether a wanted port conflicts with one in use. The wildcard address
// conflicts with every address.
func PortsConflict(taken, want []HostPort) bool {
	return slices.ContainsFunc(want, func(port HostPort) bool { return slices.ContainsFunc(taken, port.Overlaps) })
}

// Overlaps reports whether two containers cannot use the two ports on one node.
func (p HostPort) Overlaps(other HostPort) bool {
	return p.Port == other.Port && p.EffectiveProtocol() == other.EffectiveProtocol() &&
		(p.isWildcard() || other.isWildcard() || p.IP == other.IP)
}

// EffectiveProtocol is the protocol, which is TCP by default.
func (p HostPort) EffectiveProtocol() corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

func (p HostPort) isWildcard() bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }

// Equals reports whether two ports are equal.
func (p HostPort) Equals(other HostPort) bool {
	return p.Port == other.Port && p.EffectiveProtocol() == other.EffectiveProtocol() && p.IP == other.IP
}
