package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestParseName(t *testing.T) {
	tests := []struct {
		name string
		want catalog.Name
	}{
		{"t4g.medium", catalog.Name{Family: "t4g", Size: "medium", Category: "t", Generation: "4"}},
		{"hpc7g.4xlarge", catalog.Name{Family: "hpc7g", Size: "4xlarge", Category: "hpc", Generation: "7"}},
		{"c7gn.xlarge", catalog.Name{Family: "c7gn", Size: "xlarge", Category: "c", Generation: "7"}},
		{"trn1.32xlarge", catalog.Name{Family: "trn1", Size: "32xlarge", Category: "trn", Generation: "1"}},
		{"u-6tb1.metal", catalog.Name{Family: "u-6tb1", Size: "metal", Category: "u", Generation: "1"}},
		{"u7i-12tb.224xlarge", catalog.Name{Family: "u7i-12tb", Size: "224xlarge", Category: "u", Generation: "7"}},
		{"mac2-m2pro.metal", catalog.Name{Family: "mac2-m2pro", Size: "metal", Category: "mac", Generation: "2"}},
		{"mac-m4.metal", catalog.Name{Family: "mac-m4", Size: "metal"}},
		{"m7i-flex.large", catalog.Name{Family: "m7i-flex", Size: "large", Category: "m", Generation: "7", Flex: true}},
		{"p6-b200.48xlarge", catalog.Name{Family: "p6-b200", Size: "48xlarge", Category: "p", Generation: "6"}},
		{"m7i.metal-24xl", catalog.Name{Family: "m7i", Size: "metal-24xl", Category: "m", Generation: "7"}},
		{"nonsense", catalog.Name{}},
		{"", catalog.Name{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, catalog.ParseName(test.name)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllLabelsOfOneType(t *testing.T) {
	it, _ := embeddedCatalogues(t, "ap-northeast-2").Find("t4g.medium")
	o := catalog.Offering{Zone: "ap-northeast-2a", ZoneID: "apne2-az1", CapacityType: "spot"}
	want := map[string]string{
		"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "t4g.medium",
		"topology.kubernetes.io/region": "ap-northeast-2", "topology.kubernetes.io/zone": "ap-northeast-2a",
		"topology.k8s.aws/zone-id": "apne2-az1", "karpenter.sh/capacity-type": "spot",
		"karpenter.k8s.aws/instance-category":                        "t",
		"karpenter.k8s.aws/instance-family":                          "t4g",
		"karpenter.k8s.aws/instance-generation":                      "4",
		"karpenter.k8s.aws/instance-size":                            "medium",
		"karpenter.k8s.aws/instance-capability-flex":                 "false",
		"karpenter.k8s.aws/instance-cpu":                             "2",
		"karpenter.k8s.aws/instance-cpu-manufacturer":                "aws",
		"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz":   "2500",
		"karpenter.k8s.aws/instance-memory":                          "4096",
		"karpenter.k8s.aws/instance-ebs-bandwidth":                   "2085",
		"karpenter.k8s.aws/instance-network-bandwidth":               "256",
		"karpenter.k8s.aws/instance-hypervisor":                      "nitro",
		"karpenter.k8s.aws/instance-encryption-in-transit-supported": "false",
		"karpenter.k8s.aws/instance-tenancy":                         "default",
	}
	if diff := cmp.Diff(want, catalog.Labels(it, o, "ap-northeast-2")); diff != "" {
		t.Error(diff)
	}
}

func TestOptionalLabels(t *testing.T) {
	const absent = ""
	tests := []struct{ instance, label, want string }{
		{"g5.xlarge", karpenter.LabelInstanceGPUName, "a10g"},
		{"g5.xlarge", karpenter.LabelInstanceGPUManufacturer, "nvidia"},
		{"g5.12xlarge", karpenter.LabelInstanceGPUCount, "4"},
		{"g5.12xlarge", karpenter.LabelInstanceGPUMemory, "22888"},
		{"g5.xlarge", karpenter.LabelInstanceLocalNVME, "250"},
		{"g4ad.xlarge", karpenter.LabelInstanceGPUName, "radeon-pro-v520"},
		{"m5.large", karpenter.LabelInstanceGPUName, absent},
		{"m5.large", karpenter.LabelInstanceLocalNVME, absent},
		{"trn1.32xlarge", karpenter.LabelInstanceAcceleratorName, "trainium"},
		{"trn1.32xlarge", karpenter.LabelInstanceAcceleratorManufacturer, "aws"},
		{"trn1.32xlarge", karpenter.LabelInstanceAcceleratorCount, "16"},
		{"trn1.32xlarge", karpenter.LabelInstanceGPUCount, absent},
		{"inf2.24xlarge", karpenter.LabelInstanceAcceleratorName, "inferentia2"},
		{"m7i-flex.large", karpenter.LabelInstanceCapabilityFlex, "true"},
		{"m5.metal", karpenter.LabelInstanceHypervisor, absent},
		{"t2.micro", karpenter.LabelInstanceHypervisor, "xen"},
		{"c6a.large", karpenter.LabelInstanceCPUManufacturer, "amd"},
		{"c7gn.xlarge", karpenter.LabelInstanceEncryptionInTransitSupported, "true"},
	}
	c := embeddedCatalogues(t, "us-east-1")
	for _, test := range tests {
		t.Run(test.instance+"/"+test.label, func(t *testing.T) {
			it, found := c.Find(test.instance)
			if !found {
				t.Fatalf("no type %s", test.instance)
			}
			if got := catalog.TypeLabels(it)[test.label]; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Kubernetes accepts every label on a node, and pods may require it without a definition in the NodePool.
func TestEveryLabelIsWellKnownAndValid(t *testing.T) {
	for _, it := range embeddedCatalogues(t, "us-east-1").Types {
		for key, value := range catalog.Labels(it, it.Offerings[0], "us-east-1") {
			if !karpenter.IsWellKnownLabel(key) {
				t.Errorf("%s: %s is not well-known", it.Name, key)
			}
			if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
				t.Errorf("%s: %s=%s: %v", it.Name, key, value, faults)
			}
		}
	}
}

func TestFamilyLabels(t *testing.T) {
	tests := []struct{ family, os, build string }{
		{karpenter.AMIFamilyAL2023, "linux", ""},
		{karpenter.AMIFamilyCustom, "linux", ""},
		{karpenter.AMIFamilyWindows2022, "windows", "10.0.20348"},
	}
	for _, test := range tests {
		labels := catalog.FamilyLabels(test.family)
		if labels[corev1.LabelOSStable] != test.os || labels[corev1.LabelWindowsBuild] != test.build {
			t.Errorf("%s: got %v", test.family, labels)
		}
	}
}
