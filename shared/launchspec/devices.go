package launchspec

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const gibibyte = 1 << 30

// BlockDevices returns the class's block devices, or the family's defaults if it has none.
func BlockDevices(class *karpenter.EC2NodeClass, family string) []cloud.BlockDevice {
	if len(class.Spec.BlockDeviceMappings) == 0 {
		return defaultDevices(family)
	}
	var out []cloud.BlockDevice
	for _, mapping := range class.Spec.BlockDeviceMappings {
		out = append(out, blockDevice(mapping))
	}
	return out
}

func blockDevice(mapping karpenter.BlockDeviceMapping) cloud.BlockDevice {
	device := cloud.BlockDevice{Device: value(mapping.DeviceName)}
	ebs := mapping.EBS
	if ebs == nil {
		return device
	}
	device.Type = value(ebs.VolumeType)
	device.IOPS = value(ebs.IOPS)
	device.ThroughputMiBps = value(ebs.Throughput)
	device.Encrypted = ebs.Encrypted
	device.KMSKey = value(ebs.KMSKeyID)
	device.Snapshot = value(ebs.SnapshotID)
	device.DeleteOnTermination = ebs.DeleteOnTermination
	device.InitializationRate = value(ebs.VolumeInitializationRate)
	if ebs.VolumeSize != nil {
		// EC2 takes whole GiB; round up so that the volume is not too small.
		device.SizeGiB = (ebs.VolumeSize.Value() + gibibyte - 1) / gibibyte
	}
	return device
}

// defaultDevices returns the default block devices of a family; none for Custom.
func defaultDevices(family string) []cloud.BlockDevice {
	gp3 := func(device string, sizeGiB int64) cloud.BlockDevice {
		return cloud.BlockDevice{Device: device, SizeGiB: sizeGiB, Type: "gp3", Encrypted: new(true)}
	}
	switch family {
	case karpenter.AMIFamilyAL2, karpenter.AMIFamilyAL2023:
		return []cloud.BlockDevice{gp3("/dev/xvda", 20)}
	case karpenter.AMIFamilyBottlerocket:
		return []cloud.BlockDevice{gp3("/dev/xvda", 6), gp3("/dev/xvdb", 20)}
	case karpenter.AMIFamilyWindows2019, karpenter.AMIFamilyWindows2022, karpenter.AMIFamilyWindows2025:
		return []cloud.BlockDevice{gp3("/dev/sda1", 50)}
	default:
		return nil
	}
}

// Metadata applies the defaults of the schema, for a class that is older than the field. Instance tags
// in metadata are always disabled, regardless of the account's default: the tag keys contain slashes, for
// which EC2 would reject the launch. Isolated regions do not support the IPv6 setting.
func Metadata(options *karpenter.MetadataOptions, region string) cloud.Metadata {
	out := cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required", Tags: "disabled"}
	if options == nil {
		options = &karpenter.MetadataOptions{}
	}
	replace(&out.Endpoint, options.HTTPEndpoint)
	replace(&out.IPv6, options.HTTPProtocolIPv6)
	replace(&out.HopLimit, options.HTTPPutResponseHopLimit)
	replace(&out.Tokens, options.HTTPTokens)
	if strings.HasPrefix(region, "us-iso") {
		out.IPv6 = ""
	}
	return out
}

func replace[T any](to *T, by *T) {
	if by != nil {
		*to = *by
	}
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
