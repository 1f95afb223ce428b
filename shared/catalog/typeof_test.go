package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

func TestConvertType(t *testing.T) {
	base := func(change func(*cloud.InstanceType)) cloud.InstanceType {
		in := cloud.InstanceType{
			Name: "z99.large", Architectures: []string{"x86_64"}, VCPU: 2, MemoryMiB: 8192, Hypervisor: "nitro", Manufacturer: "Intel",
			ClockGHz: 3.1, UsageClasses: []string{"spot", "on-demand"},
			EBS:     cloud.EBS{Optimized: true, MaximumMbps: 10000, Attachments: 27},
			Network: cloud.InstanceNetwork{Interfaces: 3, IPv4: 10, Cards: 1, BaselineGbps: 0.75},
		}
		change(&in)
		return in
	}
	plain := func(change func(*catalog.InstanceType)) *catalog.InstanceType {
		out := catalog.InstanceType{
			Name: "z99.large", Arch: "amd64", OS: []string{"linux", "windows"}, VCPU: 2, MemoryMiB: 8192, Hypervisor: "nitro",
			CPUManufacturer: "Intel", ClockMHz: 3100, SupportedUsage: []string{"on-demand", "spot"}, EBSMbps: 10000,
			Network: catalog.Network{ENIs: 3, IPv4PerENI: 10, Cards: 1, Mbps: 750},
		}
		change(&out)
		return &out
	}
	for _, test := range []struct {
		name   string
		change func(*cloud.InstanceType)
		want   *catalog.InstanceType
	}{
		{"plain", func(*cloud.InstanceType) {}, plain(func(*catalog.InstanceType) {})},
		{"32 bits first", func(i *cloud.InstanceType) { i.Architectures = []string{"i386", "x86_64"} }, plain(func(*catalog.InstanceType) {})},
		{"Graviton", func(i *cloud.InstanceType) { i.Architectures = []string{"arm64"} },
			plain(func(o *catalog.InstanceType) { o.Arch, o.OS = "arm64", []string{"linux"} })},
		{"a Mac", func(i *cloud.InstanceType) { i.Architectures = []string{"arm64_mac"} }, nil},
		{"no network facts", func(i *cloud.InstanceType) { i.Network = cloud.InstanceNetwork{} }, nil},
		{"bare metal", func(i *cloud.InstanceType) { i.BareMetal = true },
			plain(func(o *catalog.InstanceType) { o.BareMetal, o.Hypervisor = true, "" })},
		{"capacity blocks only", func(i *cloud.InstanceType) { i.UsageClasses = []string{"capacity-block"} },
			plain(func(o *catalog.InstanceType) { o.SupportedUsage = nil })},
		{"more volumes", func(i *cloud.InstanceType) { i.EBS.Attachments, i.EBS.Dedicated = 128, true },
			plain(func(o *catalog.InstanceType) { o.Volumes = catalog.Attachments{Count: 128, Dedicated: true} })},
		{"without Nitro", func(i *cloud.InstanceType) { i.Hypervisor, i.EBS.Attachments = "xen", 39 },
			plain(func(o *catalog.InstanceType) {
				o.Hypervisor, o.Volumes = "xen", catalog.Attachments{Count: 39, Dedicated: true}
			})},
		{"EBS on request", func(i *cloud.InstanceType) { i.EBS.Optimized = false }, plain(func(o *catalog.InstanceType) { o.EBSMbps = 0 })},
		{"a GPU", func(i *cloud.InstanceType) {
			i.GPUs = []cloud.Device{{Name: "T4", Manufacturer: "NVIDIA", Count: 1, MemoryMiB: 16384}}
		}, plain(func(o *catalog.InstanceType) {
			o.GPUs = []catalog.GPU{{Name: "T4", Manufacturer: "NVIDIA", Count: 1, MemoryMiB: 16384}}
		})},
		{"Neuron in both lists", func(i *cloud.InstanceType) {
			i.Inference = []cloud.Device{{Name: "Inferentia", Manufacturer: "AWS", Count: 1}}
			i.Neuron = []cloud.Device{{Name: "Inferentia", Manufacturer: "AWS", Count: 1, Cores: 4}}
		}, plain(func(o *catalog.InstanceType) {
			o.Accelerators = []catalog.Accelerator{{Name: "Inferentia", Manufacturer: "AWS", Count: 1, CoresPerDevice: 4}}
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := catalog.ConvertType(base(test.change))
			if ok != (test.want != nil) {
				t.Fatalf("usable for nodes: %t", ok)
			}
			if ok {
				if diff := cmp.Diff(*test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// ConvertType adds embedded data that EC2 does not return.
func TestConvertTypeAddsEmbeddedFacts(t *testing.T) {
	got, ok := catalog.ConvertType(cloud.InstanceType{
		Name: "m5.large", Architectures: []string{"x86_64"}, VCPU: 2, MemoryMiB: 8192, Network: cloud.InstanceNetwork{Interfaces: 3, IPv4: 10},
	})
	if !ok || got.Network.BranchENIs != 9 || got.Network.Mbps != 750 {
		t.Errorf("%t, %+v", ok, got.Network)
	}
}
