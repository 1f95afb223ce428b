package ec2cloud

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// fromInstanceType converts one type. EC2 omits structures that do not apply to a type.
func fromInstanceType(i types.InstanceTypeInfo) cloud.InstanceType {
	out := cloud.InstanceType{
		Name: string(i.InstanceType), BareMetal: aws.ToBool(i.BareMetal), Hypervisor: string(i.Hypervisor),
		Burstable: aws.ToBool(i.BurstablePerformanceSupported), UsageClasses: words(i.SupportedUsageClasses),
		Storage: fromStore(i.InstanceStorageInfo), EBS: fromEBS(i.EbsInfo), Network: fromNetwork(i.NetworkInfo),
		Enclaves: i.NitroEnclavesSupport == types.NitroEnclavesSupportSupported,
	}
	if g := i.PlacementGroupInfo; g != nil {
		out.PlacementStrategies = words(g.SupportedStrategies)
	}
	if v := i.VCpuInfo; v != nil {
		out.VCPU = integer(v.DefaultVCpus)
	}
	if m := i.MemoryInfo; m != nil {
		out.MemoryMiB = aws.ToInt64(m.SizeInMiB)
	}
	if p := i.ProcessorInfo; p != nil {
		out.Architectures, out.Manufacturer = words(p.SupportedArchitectures), aws.ToString(p.Manufacturer)
		out.ClockGHz = aws.ToFloat64(p.SustainedClockSpeedInGhz)
		out.NestedVirtualization = slices.Contains(p.SupportedFeatures, types.SupportedAdditionalProcessorFeatureNestedVirtualization)
	}
	out.GPUs, out.Inference, out.Neuron = fromGPUs(i.GpuInfo), fromInference(i.InferenceAcceleratorInfo), fromNeuron(i.NeuronInfo)
	return out
}

func fromGPUs(info *types.GpuInfo) []cloud.Device {
	if info == nil {
		return nil
	}
	var out []cloud.Device
	for _, g := range info.Gpus {
		d := cloud.Device{Name: aws.ToString(g.Name), Manufacturer: aws.ToString(g.Manufacturer), Count: integer(g.Count)}
		if g.MemoryInfo != nil {
			d.MemoryMiB = integer(g.MemoryInfo.SizeInMiB)
		}
		out = append(out, d)
	}
	return out
}

func fromInference(info *types.InferenceAcceleratorInfo) []cloud.Device {
	if info == nil {
		return nil
	}
	var out []cloud.Device
	for _, a := range info.Accelerators {
		d := cloud.Device{Name: aws.ToString(a.Name), Manufacturer: aws.ToString(a.Manufacturer), Count: integer(a.Count)}
		if a.MemoryInfo != nil {
			d.MemoryMiB = integer(a.MemoryInfo.SizeInMiB)
		}
		out = append(out, d)
	}
	return out
}

func fromNeuron(info *types.NeuronInfo) []cloud.Device {
	if info == nil {
		return nil
	}
	var out []cloud.Device
	for _, n := range info.NeuronDevices {
		d := cloud.Device{Name: aws.ToString(n.Name), Manufacturer: "AWS", Count: integer(n.Count)}
		if n.MemoryInfo != nil {
			d.MemoryMiB = integer(n.MemoryInfo.SizeInMiB)
		}
		if n.CoreInfo != nil {
			d.Cores = integer(n.CoreInfo.Count)
		}
		out = append(out, d)
	}
	return out
}

func fromStore(info *types.InstanceStorageInfo) cloud.InstanceStore {
	if info == nil {
		return cloud.InstanceStore{}
	}
	out := cloud.InstanceStore{TotalGB: aws.ToInt64(info.TotalSizeInGB), NVMe: info.NvmeSupport != types.EphemeralNvmeSupportUnsupported}
	for _, d := range info.Disks {
		out.Disks += integer(d.Count)
	}
	return out
}

func fromEBS(info *types.EbsInfo) cloud.EBS {
	if info == nil {
		return cloud.EBS{}
	}
	out := cloud.EBS{
		Optimized:   info.EbsOptimizedSupport == types.EbsOptimizedSupportDefault,
		Attachments: integer(info.MaximumEbsAttachments), Dedicated: info.AttachmentLimitType == types.AttachmentLimitTypeDedicated,
	}
	if o := info.EbsOptimizedInfo; o != nil {
		out.MaximumMbps = integer(o.MaximumBandwidthInMbps)
	}
	return out
}

func fromNetwork(info *types.NetworkInfo) cloud.InstanceNetwork {
	if info == nil {
		return cloud.InstanceNetwork{}
	}
	out := cloud.InstanceNetwork{
		Interfaces: integer(info.MaximumNetworkInterfaces), IPv4: integer(info.Ipv4AddressesPerInterface),
		Cards: int64(len(info.NetworkCards)), EncryptionInTransit: aws.ToBool(info.EncryptionInTransitSupported),
	}
	for _, card := range info.NetworkCards {
		out.BaselineGbps += aws.ToFloat64(card.BaselineBandwidthInGbps)
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(info.DefaultNetworkCardIndex) && card.MaximumNetworkInterfaces != nil {
			out.Interfaces = integer(card.MaximumNetworkInterfaces)
		}
	}
	if e := info.EfaInfo; e != nil {
		out.EFAs = integer(e.MaximumEfaInterfaces)
	}
	return out
}

func integer(n *int32) int64 { return int64(aws.ToInt32(n)) }

func words[T ~string](list []T) []string {
	var out []string
	for _, word := range list {
		out = append(out, string(word))
	}
	return out
}
