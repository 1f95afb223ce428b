package ec2cloud

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// The file has EC2's responses for seventeen types, from Karpenter's tests (karpenter-provider-aws v1.14.0,
// Apache-2.0). Their conversion must equal the embedded catalogue, which has other sources. The file omits the number
// of disks.
func TestInstanceTypesMatchEmbedded(t *testing.T) {
	text, err := os.ReadFile("testdata/instance-types.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers []types.InstanceTypeInfo
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	embedded, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		t.Run(string(answer.InstanceType), func(t *testing.T) {
			got, ok := catalog.ConvertType(fromInstanceType(answer))
			if !ok {
				t.Fatal("no node can run on the type")
			}
			want, ok := embedded.Find(got.Name)
			if !ok {
				t.Fatal("the type is missing in the embedded catalogue")
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(catalog.InstanceType{}, "Offerings", "Storage.Disks", "PlacementStrategies")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// EC2 omits what a type lacks, and a response may be from an older API.
func TestInstanceTypeWithMissingFields(t *testing.T) {
	got := fromInstanceType(types.InstanceTypeInfo{InstanceType: "x"})
	if diff := cmp.Diff(cloud.InstanceType{Name: "x"}, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := catalog.ConvertType(got); ok {
		t.Error("a type without facts is usable for nodes")
	}
}

// Only EC2's responses have these features; the words are EC2's.
func TestInstanceTypeFeatures(t *testing.T) {
	for _, tt := range []struct {
		enclaves         types.NitroEnclavesSupport
		features         []types.SupportedAdditionalProcessorFeature
		secured, virtual bool
	}{
		{"supported", []types.SupportedAdditionalProcessorFeature{"amd-sev-snp", "nested-virtualization"}, true, true},
		{"unsupported", []types.SupportedAdditionalProcessorFeature{"amd-sev-snp"}, false, false},
		{"", nil, false, false},
	} {
		in := types.InstanceTypeInfo{NitroEnclavesSupport: tt.enclaves, ProcessorInfo: &types.ProcessorInfo{SupportedFeatures: tt.features}}
		got := fromInstanceType(in)
		if got.Enclaves != tt.secured || got.NestedVirtualization != tt.virtual {
			t.Errorf("%v: enclaves %t, nested virtualization %t", tt, got.Enclaves, got.NestedVirtualization)
		}
	}
}

func TestInstanceTypeWithManyCards(t *testing.T) {
	card := func(index, interfaces int32, gbps float64) types.NetworkCardInfo {
		return types.NetworkCardInfo{NetworkCardIndex: &index, MaximumNetworkInterfaces: &interfaces, BaselineBandwidthInGbps: &gbps}
	}
	got := fromNetwork(&types.NetworkInfo{
		DefaultNetworkCardIndex: new(int32(1)), MaximumNetworkInterfaces: new(int32(30)), Ipv4AddressesPerInterface: new(int32(50)),
		NetworkCards: []types.NetworkCardInfo{card(0, 7, 100), card(1, 15, 100)},
		EfaInfo:      &types.EfaInfo{MaximumEfaInterfaces: new(int32(2))},
	})
	want := cloud.InstanceNetwork{Interfaces: 15, IPv4: 50, Cards: 2, EFAs: 2, BaselineGbps: 200}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	disks := fromStore(&types.InstanceStorageInfo{
		TotalSizeInGB: new(int64(7600)), NvmeSupport: types.EphemeralNvmeSupportRequired,
		Disks: []types.DiskInfo{{Count: new(int32(4)), SizeInGB: new(int64(1900))}},
	})
	if diff := cmp.Diff(cloud.InstanceStore{Disks: 4, TotalGB: 7600, NVMe: true}, disks); diff != "" {
		t.Error(diff)
	}
	ebs := fromEBS(&types.EbsInfo{MaximumEbsAttachments: new(int32(128)), AttachmentLimitType: types.AttachmentLimitTypeDedicated})
	if diff := cmp.Diff(cloud.EBS{Attachments: 128, Dedicated: true}, ebs); diff != "" {
		t.Error(diff)
	}
}
