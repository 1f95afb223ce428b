package ec2cloud

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// TestPrefixesOfInterfaces checks that every interface with addresses gets the prefixes: pods use the addresses of all
// network cards (Karpenter's AWS provider: pkg/providers/launchtemplate/launchtemplate.go, generateNetworkInterfaces).
func TestPrefixesOfInterfaces(t *testing.T) {
	interfaces := []cloud.NetworkInterface{
		{Kind: "interface"}, {Device: 1, Kind: cloud.InterfaceEFAOnly}, {Card: 1, Device: 1, Kind: "interface"}, {Card: 2, Device: 1, Kind: cloud.InterfaceEFA},
	}
	for _, ipv6 := range []bool{false, true} {
		got := toInterfaces(cloud.Template{Interfaces: interfaces, PrefixCount: new(int32(2)), PublicIP: new(true), IPv6: ipv6})
		for i, one := range got {
			want := int32(2)
			if interfaces[i].Kind == cloud.InterfaceEFAOnly {
				want = 0
			}
			v4, v6 := aws.ToInt32(one.Ipv4PrefixCount), aws.ToInt32(one.Ipv6PrefixCount)
			if ipv6 {
				v4, v6 = v6, v4
			}
			if v4 != want || v6 != 0 {
				t.Errorf("IPv6 %t, interface %d: got %d prefixes of the family and %d of the other, want %d and none", ipv6, i, v4, v6, want)
			}
			if first := i == 0; first != (one.AssociatePublicIpAddress != nil) {
				t.Errorf("interface %d: the public address is set: %t, want %t", i, !first, first)
			}
		}
	}
}
