package ec2

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// instanceType is the part of EC2's description of a type that Joist reads. Features that
// a type lacks have no element, as in EC2.
type instanceType struct {
	Name         string       `xml:"instanceType"`
	Usage        []string     `xml:"supportedUsageClasses>item"`
	BareMetal    bool         `xml:"bareMetal"`
	Burstable    bool         `xml:"burstablePerformanceSupported"`
	Hypervisor   string       `xml:"hypervisor,omitempty"`
	Machines     []string     `xml:"processorInfo>supportedArchitectures>item"`
	Clock        float64      `xml:"processorInfo>sustainedClockSpeedInGhz,omitempty"`
	Manufacturer string       `xml:"processorInfo>manufacturer"`
	Features     []string     `xml:"processorInfo>supportedFeatures>item"`
	Enclaves     string       `xml:"nitroEnclavesSupport"`
	VCPU         int64        `xml:"vCpuInfo>defaultVCpus"`
	Memory       int64        `xml:"memoryInfo>sizeInMiB"`
	Storage      *store       `xml:"instanceStorageInfo"`
	EBS          ebs          `xml:"ebsInfo"`
	Network      typeNetwork  `xml:"networkInfo"`
	GPUs         *gpus        `xml:"gpuInfo"`
	Inference    *accelerator `xml:"inferenceAcceleratorInfo"`
	Neuron       *neuron      `xml:"neuronInfo"`
}

type store struct {
	Total int64  `xml:"totalSizeInGB"`
	Disks []disk `xml:"disks>item"`
	NVMe  string `xml:"nvmeSupport"`
}

type disk struct {
	Count int64 `xml:"count"`
}

type ebs struct {
	Optimized   string     `xml:"ebsOptimizedSupport"`
	Bandwidth   *bandwidth `xml:"ebsOptimizedInfo"`
	Attachments int64      `xml:"maximumEbsAttachments,omitempty"`
	Limit       string     `xml:"attachmentLimitType,omitempty"`
}

type bandwidth struct {
	Maximum int64 `xml:"maximumBandwidthInMbps"`
}

type typeNetwork struct {
	Default    int    `xml:"defaultNetworkCardIndex"`
	Interfaces int64  `xml:"maximumNetworkInterfaces"`
	IPv4       int64  `xml:"ipv4AddressesPerInterface"`
	Encrypted  bool   `xml:"encryptionInTransitSupported"`
	Cards      []card `xml:"networkCards>item"`
	EFA        *efa   `xml:"efaInfo"`
}

type card struct {
	Index      int64   `xml:"networkCardIndex"`
	Interfaces int64   `xml:"maximumNetworkInterfaces"`
	Baseline   float64 `xml:"baselineBandwidthInGbps,omitempty"`
}

type efa struct {
	Interfaces int64 `xml:"maximumEfaInterfaces"`
}

type gpus struct {
	Items []device `xml:"gpus>item"`
}

type accelerator struct {
	Items []device `xml:"accelerators>item"`
}

type neuron struct {
	Items []device `xml:"neuronDevices>item"`
}

type device struct {
	Name         string `xml:"name"`
	Manufacturer string `xml:"manufacturer,omitempty"`
	Count        int64  `xml:"count"`
	Memory       int64  `xml:"memoryInfo>sizeInMiB,omitempty"`
	Cores        int64  `xml:"coreInfo>count,omitempty"`
}

func typeOf(t cloud.InstanceType) instanceType {
	out := instanceType{
		Name: t.Name, Usage: t.UsageClasses, BareMetal: t.BareMetal, Burstable: t.Burstable, Hypervisor: t.Hypervisor,
		Machines: t.Architectures, Clock: t.ClockGHz, Manufacturer: t.Manufacturer, VCPU: t.VCPU, Memory: t.MemoryMiB,
		EBS: ebsOf(t.EBS), Network: networkOf(t.Network), Enclaves: "unsupported",
	}
	if t.Enclaves {
		out.Enclaves = "supported"
	}
	if t.NestedVirtualization {
		out.Features = []string{"nested-virtualization"}
	}
	if t.Storage.TotalGB > 0 {
		out.Storage = &store{Total: t.Storage.TotalGB, Disks: []disk{{t.Storage.Disks}}, NVMe: "unsupported"}
		if t.Storage.NVMe {
			out.Storage.NVMe = "required"
		}
	}
	if len(t.GPUs) > 0 {
		out.GPUs = &gpus{cards(t.GPUs)}
	}
	if len(t.Inference) > 0 {
		out.Inference = &accelerator{cards(t.Inference)}
	}
	if len(t.Neuron) > 0 {
		out.Neuron = &neuron{cards(t.Neuron)}
	}
	return out
}

func ebsOf(e cloud.EBS) ebs {
	out := ebs{Optimized: "unsupported", Attachments: e.Attachments}
	if e.Optimized {
		out.Optimized, out.Bandwidth = "default", &bandwidth{e.MaximumMbps}
	}
	switch {
	case e.Dedicated:
		out.Limit = "dedicated"
	case e.Attachments > 0:
		out.Limit = "shared"
	}
	return out
}

func networkOf(n cloud.InstanceNetwork) typeNetwork {
	out := typeNetwork{Interfaces: n.Interfaces, IPv4: n.IPv4, Encrypted: n.EncryptionInTransit}
	for i := range n.Cards {
		out.Cards = append(out.Cards, card{Index: i, Interfaces: n.Interfaces, Baseline: baseline(n)})
	}
	if n.EFAs > 0 {
		out.EFA = &efa{n.EFAs}
	}
	return out
}

func cards(all []cloud.Device) []device {
	var out []device
	for _, d := range all {
		out = append(out, device{d.Name, d.Manufacturer, d.Count, d.MemoryMiB, d.Cores})
	}
	return out
}
