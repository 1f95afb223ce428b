package launchspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestPlacement(t *testing.T) {
	partitions := func(values ...string) planning.Requirements {
		return planning.Requirements{karpenter.LabelPlacementGroupPartition: planning.In(values...)}
	}
	named, byID := &karpenter.PlacementGroupSelector{Name: new("tight")}, &karpenter.PlacementGroupSelector{ID: new("pg-2")}
	for _, tt := range []struct {
		name     string
		selector *karpenter.PlacementGroupSelector
		reqs     planning.Requirements
		want     *cloud.Placement
		labels   map[string]string
	}{
		{"none", nil, partitions("1"), nil, map[string]string{"a": "b"}},
		{"by name: EC2 knows groups of other accounts by id only", named, nil, &cloud.Placement{GroupID: "pg-1"}, map[string]string{"a": "b"}},
		{"by id", byID, nil, &cloud.Placement{GroupID: "pg-2"}, map[string]string{"a": "b"}},
		{"the lowest partition by number", byID, partitions("10", "9"), &cloud.Placement{GroupID: "pg-2", Partition: 9},
			map[string]string{"a": "b", karpenter.LabelPlacementGroupPartition: "9"}},
		{"EC2 chooses the partition", &karpenter.PlacementGroupSelector{Name: new("racks")}, nil, &cloud.Placement{GroupID: "pg-9"},
			map[string]string{"a": "b", karpenter.LabelPlacementGroupPartition: ""}},
		{"EC2 chooses the partition of a group by id", &karpenter.PlacementGroupSelector{ID: new("pg-9")}, nil, &cloud.Placement{GroupID: "pg-9"},
			map[string]string{"a": "b", karpenter.LabelPlacementGroupPartition: ""}},
		{"an invalid partition", byID, partitions("first"), &cloud.Placement{GroupID: "pg-2"}, map[string]string{"a": "b"}},
		{"an unknown group name", &karpenter.PlacementGroupSelector{Name: new("lost")}, nil, &cloud.Placement{Group: "lost"}, map[string]string{"a": "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &recipe{class: &karpenter.EC2NodeClass{}, requirements: tt.reqs}
			g.class.Spec.PlacementGroupSelector = tt.selector
			g.catalogue.PlacementGroups = []catalog.PlacementGroup{
				{ID: "pg-1", Name: "tight", Strategy: "cluster"}, {ID: "pg-9", Name: "racks", Strategy: "partition", Partitions: 7},
			}
			if diff := cmp.Diff(tt.want, placement(g.class, g.catalogue, tt.reqs)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.labels, g.grouped(map[string]string{"a": "b"})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	set := &karpenter.MetadataOptions{HTTPEndpoint: new("disabled"), HTTPProtocolIPv6: new("enabled"), HTTPPutResponseHopLimit: new(int64(2)), HTTPTokens: new("optional")}
	for _, tt := range []struct {
		name, region string
		options      *karpenter.MetadataOptions
		want         cloud.Metadata
	}{
		{"defaults of the schema", "eu-west-1", nil, cloud.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required", Tags: "disabled"}},
		{"settings of the class", "eu-west-1", set, cloud.Metadata{Endpoint: "disabled", IPv6: "enabled", HopLimit: 2, Tokens: "optional", Tags: "disabled"}},
		{"an isolated region", "us-iso-east-1", set, cloud.Metadata{Endpoint: "disabled", HopLimit: 2, Tokens: "optional", Tags: "disabled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Metadata(tt.options, tt.region)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	encrypted := func(device string, size int64) cloud.BlockDevice {
		return cloud.BlockDevice{Device: device, SizeGiB: size, Type: "gp3", Encrypted: new(true)}
	}
	for family, want := range map[string][]cloud.BlockDevice{
		karpenter.AMIFamilyAL2: {encrypted("/dev/xvda", 20)}, karpenter.AMIFamilyAL2023: {encrypted("/dev/xvda", 20)},
		karpenter.AMIFamilyBottlerocket: {encrypted("/dev/xvda", 6), encrypted("/dev/xvdb", 20)}, karpenter.AMIFamilyCustom: nil,
		karpenter.AMIFamilyWindows2019: {encrypted("/dev/sda1", 50)}, karpenter.AMIFamilyWindows2025: {encrypted("/dev/sda1", 50)},
	} {
		if diff := cmp.Diff(want, BlockDevices(&karpenter.EC2NodeClass{}, family)); diff != "" {
			t.Errorf("%s: %s", family, diff)
		}
	}
}
