package catalog_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestVolumeLimit(t *testing.T) {
	disks := func(count int) func(*catalog.NodeConfig) {
		return func(cfg *catalog.NodeConfig) {
			for range count {
				cfg.BlockDevices = append(cfg.BlockDevices, karpenter.BlockDeviceMapping{EBS: &karpenter.BlockDevice{}})
			}
			cfg.BlockDevices = append(cfg.BlockDevices, karpenter.BlockDeviceMapping{}) // no volume: an instance store
		}
	}
	family := func(name string) func(*catalog.NodeConfig) {
		return func(cfg *catalog.NodeConfig) { cfg.AMIFamily = name }
	}
	interfaces := func(count int) func(*catalog.NodeConfig) {
		return func(cfg *catalog.NodeConfig) { cfg.NetworkInterfaces = make([]karpenter.NetworkInterface, count) }
	}
	dedicated := func(count int64) catalog.InstanceType {
		return catalog.InstanceType{Volumes: catalog.Attachments{Count: count, Dedicated: true}, Network: catalog.Network{ENIs: 15}}
	}
	shared := func(count, enis int64) catalog.InstanceType {
		return catalog.InstanceType{Volumes: catalog.Attachments{Count: count}, Network: catalog.Network{ENIs: enis}}
	}
	for _, tt := range []struct {
		name     string
		instance catalog.InstanceType
		cfg      catalog.NodeConfig
		want     int64
	}{
		{"most types: 27, a root volume, a second interface", x86, al2023(nil), 25},
		{"a single interface", shared(27, 1), al2023(nil), 26},
		{"an instance store uses attachments", shared(26, 4), al2023(nil), 24},
		{"interfaces of the class", shared(27, 15), al2023(interfaces(4)), 23},
		{"a dedicated limit", dedicated(32), al2023(nil), 31},
		{"a dedicated limit with interfaces", dedicated(32), al2023(interfaces(4)), 31},
		{"one disk of the class", dedicated(32), al2023(disks(1)), 31},
		{"three disks of the class", dedicated(32), al2023(disks(3)), 29},
		{"Bottlerocket has two disks", dedicated(32), al2023(family(karpenter.AMIFamilyBottlerocket)), 30},
		{"at least one", shared(3, 8), al2023(disks(5)), 1},
	} {
		if got := catalog.VolumeLimit(tt.instance, tt.cfg); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Some types of the embedded catalogue, with the limits in EC2's user guide.
func TestEmbeddedVolumes(t *testing.T) {
	cat, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]catalog.Attachments{
		"m5.large": {}, "c5d.24xlarge": {Count: 23}, "m6g.metal": {Count: 31}, "g5.48xlarge": {Count: 9},
		"t2.micro": {Count: 39, Dedicated: true}, "c7i.large": {Count: 32, Dedicated: true}, "m7a.48xlarge": {Count: 128, Dedicated: true},
	} {
		instance, found := cat.Find(name)
		if !found || instance.Volumes != want {
			t.Errorf("%s (found %t): %+v, want %+v", name, found, instance.Volumes, want)
		}
	}
}
