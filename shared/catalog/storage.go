package catalog

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// EphemeralStorage is the size of the disk that pods write to: the instance store if the class joins it
// into one, else the root volume that the class marks, else the family's device.
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

// familyVolume is the size that the class gives to the family's device. Of a custom image only the last device can be
// supposed to be the one.
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

// volumeSize is nil for a volume whose size its snapshot decides.
func volumeSize(device karpenter.BlockDeviceMapping) *resource.Quantity {
	if device.EBS == nil {
		return nil
	}
	return device.EBS.VolumeSize
}
