package catalog_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func device(name, size string) karpenter.BlockDeviceMapping {
	d := karpenter.BlockDeviceMapping{DeviceName: &name, EBS: &karpenter.BlockDevice{}}
	if size != "" {
		d.EBS.VolumeSize = new(resource.MustParse(size))
	}
	return d
}

func root(d karpenter.BlockDeviceMapping) karpenter.BlockDeviceMapping {
	d.RootVolume = true
	return d
}

func TestEphemeralStorage(t *testing.T) {
	bare := device("/dev/xvda", "")
	bare.EBS = nil
	type devices = []karpenter.BlockDeviceMapping
	tests := []struct {
		name, family string
		instance     catalog.InstanceType
		devices      devices
		policy       karpenter.InstanceStorePolicy
		want         string
	}{
		{"AL2", "AL2", x86, nil, "", "20Gi"},
		{"AL2023", "AL2023", x86, nil, "", "20Gi"},
		{"custom", "Custom", x86, nil, "", "20Gi"},
		{"Bottlerocket's data volume", "Bottlerocket", x86, nil, "", "20Gi"},
		{"Windows", "Windows2022", x86, nil, "", "50Gi"},
		{"the family's device", "AL2023", x86, devices{device("/dev/xvdb", "99Gi"), device("/dev/xvda", "80Gi")}, "", "80Gi"},
		{"Bottlerocket's device", "Bottlerocket", x86, devices{device("/dev/xvda", "9Gi"), device("/dev/xvdb", "80Gi")}, "", "80Gi"},
		{"Windows' device", "Windows2022", x86, devices{device("/dev/sda1", "100Gi")}, "", "100Gi"},
		{"other devices only", "AL2023", x86, devices{device("/dev/xvdb", "99Gi")}, "", "20Gi"},
		{"size from a snapshot", "AL2023", x86, devices{device("/dev/xvda", "")}, "", "20Gi"},
		{"no volume", "AL2023", x86, devices{bare}, "", "20Gi"},
		{"the root volume wins", "AL2023", x86, devices{device("/dev/xvda", "80Gi"), root(device("/dev/xvdc", "30Gi"))}, "", "30Gi"},
		{"a root volume without size does not", "AL2023", x86, devices{device("/dev/xvda", "80Gi"), root(device("/dev/xvdc", ""))}, "", "80Gi"},
		{"custom: the last", "Custom", x86, devices{device("/dev/a", "30Gi"), device("/dev/b", "40Gi")}, "", "40Gi"},
		{"custom: the last has no size", "Custom", x86, devices{device("/dev/a", "30Gi"), device("/dev/b", "")}, "", "20Gi"},
		{"the instance store", "AL2023", gpu, devices{device("/dev/xvda", "80Gi")}, "RAID0", "8000G"},
		{"disks without the policy", "AL2023", gpu, nil, "", "20Gi"},
		{"the policy without disks", "AL2023", x86, devices{device("/dev/xvda", "80Gi")}, "RAID0", "80Gi"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := catalog.NodeConfig{AMIFamily: test.family, BlockDevices: test.devices, InstanceStorePolicy: test.policy}
			if got := catalog.EphemeralStorage(test.instance, cfg); got.Cmp(resource.MustParse(test.want)) != 0 {
				t.Errorf("got %s, want %s", got.String(), test.want)
			}
		})
	}
}
