package bootstrap

import (
	"net/netip"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// joins returns an error if the catalogue lacks the facts for joining the cluster.
func (n Node) joins() error {
	c := n.Cluster
	if c.Name != "" && c.Endpoint != "" && c.CABundle != "" {
		return nil
	}
	return fault.F("writing user data", fault.Invalid,
		"the catalogue has no name, endpoint and certificate authority of the cluster, which nodes need to join").
		WithHint("grant eks:DescribeCluster to the catalog service")
}

// raid0 reports whether the instance must set up a RAID of its disks.
func (n Node) raid0() bool { return n.InstanceStore == "RAID0" }

// dnsHost is the host number that EKS gives to the DNS service within the service range
// (docs.aws.amazon.com/eks, "Amazon EKS networking": the address that ends in .10, and in IPv6 in
// ::a).
const dnsHost = 10

// dns returns the addresses of the cluster's DNS: those of the class, or else the EKS default; none if
// the service range is unknown.
func (n Node) dns() []string {
	if len(n.Kubelet.ClusterDNS) > 0 {
		return n.Kubelet.ClusterDNS
	}
	services, err := netip.ParsePrefix(n.Cluster.ServiceCIDR)
	if err != nil {
		return nil
	}
	bytes := services.Masked().Addr().AsSlice()
	bytes[len(bytes)-1] += dnsHost
	address, _ := netip.AddrFromSlice(bytes)
	return []string{address.String()}
}

// ipv6 reports whether pods and services of the cluster have IPv6 addresses.
func (n Node) ipv6() bool {
	if n.Cluster.IPFamily != "" {
		return n.Cluster.IPFamily == "ipv6"
	}
	for _, text := range n.dns() {
		address, err := netip.ParseAddr(text)
		return err == nil && address.Is6()
	}
	return false
}
