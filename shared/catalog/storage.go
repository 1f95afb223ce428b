package catalog

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// EphemeralStorage returns the size of the disk for pods: the instance store if the class combines it with RAID0,
// else the class's root volume, else the family's device.
func EphemeralStorage(t InstanceType, cfg NodeConfig) resource.Quantity {
	if cfg.InstanceStorePolicy == karpenter.InstanceStorePolicyRAID0 && t.Storage.TotalGB > 0 {
		return *resource.NewScaledQuantity(t.Storage.TotalGB, resource.Giga)
	}
	f := familyOf(cfg.AMIFamily)
	for _, device := range cfg.BlockDevices {
		if size := volumeSize(device); device.RootVolume && size != nil {
			return size.DeepCopy()
		}
	}
	if size := familyVolume(f, cfg.BlockDevices); size != nil {
		return size.DeepCopy()
	}
	return *resource.NewQuantity(f.ephemeralGi<<30, resource.BinarySI)
}

// familyVolume returns the size that the class configures for the family's device. For a custom image it uses the
// last device.
func familyVolume(f family, devices []karpenter.BlockDeviceMapping) *resource.Quantity {
	if len(devices) == 0 {
		return nil
	}
	if f.ephemeralDevice == "" {
		return volumeSize(devices[len(devices)-1])
	}
	for _, device := range devices {
		if device.DeviceName != nil && *device.DeviceName == f.ephemeralDevice {
			return volumeSize(device)
		}
	}
	return nil
}

// volumeSize returns nil if the size depends on the snapshot.
func volumeSize(device karpenter.BlockDeviceMapping) *resource.Quantity {
	if device.EBS == nil {
		return nil
	}
	return device.EBS.VolumeSize
}
