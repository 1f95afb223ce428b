package catalog_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// EC2 says which strategies of placement groups accept a type. An embedded catalogue does not: burstable types are not
// accepted by cluster groups.
func TestAcceptsPlacement(t *testing.T) {
	for _, tt := range []struct {
		name      string
		supported []string
		burstable bool
		strategy  string
		want      bool
	}{
		{"no group", nil, true, "", true},
		{"a supported strategy", []string{"cluster", "spread"}, false, "cluster", true},
		{"another strategy", []string{"partition", "spread"}, false, "cluster", false},
		{"EC2 comes before the rule", []string{"cluster"}, true, "cluster", true},
		{"embedded, burstable, cluster", nil, true, "cluster", false},
		{"embedded, burstable, spread", nil, true, "spread", true},
		{"embedded, cluster", nil, false, "cluster", true},
	} {
		typ := catalog.InstanceType{PlacementStrategies: tt.supported, Burstable: tt.burstable}
		if got := typ.AcceptsPlacement(tt.strategy); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// Types that cannot be launched with a class are excluded.
func TestIsCompatible(t *testing.T) {
	large := catalog.InstanceType{Name: "p5.48xlarge", Hypervisor: "nitro", Network: catalog.Network{ENIs: 2, Cards: 32, EFAs: 32}}
	small := catalog.InstanceType{Name: "m6i.large", Hypervisor: "nitro", Network: catalog.Network{ENIs: 3}}
	old := catalog.InstanceType{Name: "m4.large", Hypervisor: "xen", Network: catalog.Network{ENIs: 2}}
	metal := catalog.InstanceType{Name: "m5.metal", BareMetal: true, Network: catalog.Network{ENIs: 15}}
	first := catalog.InstanceType{Name: "a1.large", Hypervisor: "nitro", Network: catalog.Network{ENIs: 3}}
	on := func(card, device int32, kind karpenter.InterfaceType) karpenter.NetworkInterface {
		return karpenter.NetworkInterface{NetworkCardIndex: card, DeviceIndex: device, InterfaceType: kind}
	}
	ordinary, efa := karpenter.InterfaceTypeInterface, karpenter.InterfaceTypeEFAOnly
	secure := catalog.InstanceType{Name: "m6i.xlarge", Hypervisor: "nitro", Network: catalog.Network{ENIs: 4}, Enclaves: true}
	nested := catalog.InstanceType{Name: "m8i.large", Hypervisor: "nitro", Network: catalog.Network{ENIs: 3}, NestedVirtualization: true}
	enclaves := func(enabled bool) func(*karpenter.EC2NodeClass) {
		return func(c *karpenter.EC2NodeClass) { c.Spec.EnclaveOptions = &karpenter.EnclaveOptions{Enabled: enabled} }
	}
	virtualizes := func(text string) func(*karpenter.EC2NodeClass) {
		return func(c *karpenter.EC2NodeClass) {
			c.Spec.CPUOptions = &karpenter.CPUOptions{NestedVirtualization: &text}
		}
	}
	tracks := func(c *karpenter.EC2NodeClass) { c.Spec.ConnectionTracking = &karpenter.ConnectionTracking{} }
	has := func(interfaces ...karpenter.NetworkInterface) func(*karpenter.EC2NodeClass) {
		return func(c *karpenter.EC2NodeClass) { c.Spec.NetworkInterfaces = interfaces }
	}
	for _, tt := range []struct {
		name   string
		typ    catalog.InstanceType
		family string
		class  func(*karpenter.EC2NodeClass)
		want   bool
	}{
		{"a plain class", small, karpenter.AMIFamilyAL2023, has(), true},
		{"a1 with AL2023", first, karpenter.AMIFamilyAL2023, has(), false},
		{"a1 with Bottlerocket", first, karpenter.AMIFamilyBottlerocket, has(), true},
		{"connection tracking on Nitro", small, karpenter.AMIFamilyAL2023, tracks, true},
		{"connection tracking on Xen", old, karpenter.AMIFamilyAL2023, tracks, false},
		{"connection tracking on bare metal", metal, karpenter.AMIFamilyAL2023, tracks, false},
		{"an interface on the first card", small, karpenter.AMIFamilyAL2023, has(on(0, 2, ordinary)), true},
		{"one more than the card takes", small, karpenter.AMIFamilyAL2023, has(on(0, 3, ordinary)), false},
		{"a second card", small, karpenter.AMIFamilyAL2023, has(on(0, 0, ordinary), on(1, 1, ordinary)), false},
		{"a second card that is there", large, karpenter.AMIFamilyAL2023, has(on(0, 0, ordinary), on(1, 1, efa)), true},
		{"an EFA that is not", small, karpenter.AMIFamilyAL2023, has(on(0, 0, ordinary), on(0, 1, efa)), false},
		{"enclaves", secure, karpenter.AMIFamilyAL2023, enclaves(true), true},
		{"enclaves on a type without", small, karpenter.AMIFamilyAL2023, enclaves(true), false},
		{"enclaves disabled", small, karpenter.AMIFamilyAL2023, enclaves(false), true},
		{"nested virtualization", nested, karpenter.AMIFamilyAL2023, virtualizes("enabled"), true},
		{"nested virtualization on a type without", small, karpenter.AMIFamilyAL2023, virtualizes("enabled"), false},
		{"nested virtualization disabled", small, karpenter.AMIFamilyAL2023, virtualizes("disabled"), true},
	} {
		class := &karpenter.EC2NodeClass{}
		tt.class(class)
		if got := catalog.IsCompatible(tt.typ, class, tt.family); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
