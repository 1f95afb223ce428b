package catalog_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Made-up hardware, so that the results do not depend on the embedded data.
var (
	// 8192 MiB − ceil(7.5 % = 614.4) = 7577 MiB; 3 interfaces × 9 addresses + 2 = 29 pods.
	x86 = catalog.InstanceType{
		Name: "m5.large", Arch: catalog.AMD64, VCPU: 2, MemoryMiB: 8192,
		Network: catalog.Network{ENIs: 3, IPv4PerENI: 10, BranchENIs: 9},
	}
	// 4096 − 64 = 4032 MiB, − ceil(7.5 % = 302.4) = 3729 MiB; 3 × 5 + 2 = 17 pods.
	arm = catalog.InstanceType{
		Name: "t4g.medium", Arch: catalog.ARM64, VCPU: 2, MemoryMiB: 4096,
		Network: catalog.Network{ENIs: 3, IPv4PerENI: 6},
	}
	big = catalog.InstanceType{
		Name: "m5.24xlarge", Arch: catalog.AMD64, VCPU: 96, MemoryMiB: 393216,
		Network: catalog.Network{ENIs: 15, IPv4PerENI: 50},
	}
	gpu = catalog.InstanceType{
		Name: "p4d.24xlarge", Arch: catalog.AMD64, VCPU: 96, MemoryMiB: 1179648,
		Storage: catalog.LocalStorage{Disks: 8, TotalGB: 8000, NVMe: true},
		GPUs:    []catalog.GPU{{Name: "A100", Manufacturer: "NVIDIA", Count: 8, MemoryMiB: 40960}},
		Network: catalog.Network{ENIs: 15, IPv4PerENI: 50, Cards: 4, EFAs: 4},
	}
	chip = catalog.InstanceType{
		Name: "trn1.32xlarge", Arch: catalog.AMD64, VCPU: 128, MemoryMiB: 524288,
		Accelerators: []catalog.Accelerator{{Name: "Trainium", Manufacturer: "AWS", Count: 16, CoresPerDevice: 2}},
		Network:      catalog.Network{ENIs: 5, IPv4PerENI: 50, Cards: 8, EFAs: 8},
	}
	gaudi = catalog.InstanceType{
		Name: "dl1.24xlarge", Arch: catalog.AMD64, VCPU: 96, MemoryMiB: 786432,
		GPUs:    []catalog.GPU{{Name: "Gaudi HL-205", Manufacturer: "Habana", Count: 8}},
		Network: catalog.Network{ENIs: 15, IPv4PerENI: 50},
	}
)

type want map[corev1.ResourceName]string

// check compares the wanted resources; "" means that the resource is absent.
func check(t *testing.T, kind string, got corev1.ResourceList, wanted want) {
	t.Helper()
	for name, text := range wanted {
		quantity, found := got[name]
		switch {
		case text == "" && found:
			t.Errorf("%s %s: got %s, want none", kind, name, quantity.String())
		case text != "" && quantity.Cmp(resource.MustParse(text)) != 0:
			t.Errorf("%s %s: got %s, want %s", kind, name, quantity.String(), text)
		}
	}
}

func al2023(change func(*catalog.NodeConfig)) catalog.NodeConfig {
	cfg := catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func kubelet(k karpenter.ParsedKubelet) catalog.NodeConfig {
	return al2023(func(cfg *catalog.NodeConfig) { cfg.Kubelet = k })
}

type resourcesCase struct {
	name                            string
	instance                        catalog.InstanceType
	cfg                             catalog.NodeConfig
	capacity, overhead, allocatable want
}

func run(t *testing.T, tests []resourcesCase) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			capacity, overhead, allocatable := catalog.NodeResources(test.instance, test.cfg)
			check(t, "capacity", capacity, test.capacity)
			check(t, "overhead", overhead, test.overhead)
			check(t, "allocatable", allocatable, test.allocatable)
		})
	}
}

func TestResourcesMemoryAndReserve(t *testing.T) {
	none, tenth := 0.0, 0.1
	seen := resource.MustParse("7800Mi")
	run(t, []resourcesCase{
		{"amd64", x86, al2023(nil),
			want{"memory": "7577Mi", "cpu": "2"}, nil, nil},
		{"arm64 reserves 64 MiB more", arm, al2023(nil),
			want{"memory": "3729Mi"}, nil, nil},
		{"no machine overhead", x86, al2023(func(c *catalog.NodeConfig) { c.VMMemoryOverheadPercent = &none }),
			want{"memory": "8192Mi"}, nil, nil},
		{"a tenth, rounded up", x86, al2023(func(c *catalog.NodeConfig) { c.VMMemoryOverheadPercent = &tenth }),
			want{"memory": "7372Mi"}, nil, nil},
		{"discovered memory wins", x86, al2023(func(c *catalog.NodeConfig) { c.DiscoveredMemory = &seen }),
			want{"memory": "7800Mi"}, nil, want{"memory": "7126Mi"}}, // 7800 − 574 − 100
		{"two cores", x86, al2023(nil), // 60 + 10 m; 11 × 29 + 255 = 574, + 100 MiB; 1 + 2 Gi
			nil, want{"cpu": "70m", "memory": "674Mi", "ephemeral-storage": "3Gi"},
			want{"cpu": "1930m", "memory": "6903Mi", "ephemeral-storage": "17Gi", "pods": "29"}},
		{"arm64", arm, al2023(nil), // 11 × 17 + 255 = 442
			nil, nil, want{"cpu": "1930m", "memory": "3187Mi", "pods": "17"}},
		{"96 cores", big, al2023(nil), // 60 + 10 + 10 + 230 m; 15 × 49 + 2 = 737 pods
			nil, want{"cpu": "310m", "memory": "8462Mi"}, nil}, // 11 × 737 + 255 + 100
		{"the reserve ignores maxPods", x86, kubelet(karpenter.ParsedKubelet{MaxPods: new(intstr.FromInt32(110))}),
			want{"pods": "110"}, want{"memory": "674Mi"}, nil},
		{"Bottlerocket's reserve uses maxPods", x86,
			catalog.NodeConfig{AMIFamily: "Bottlerocket", Kubelet: karpenter.ParsedKubelet{MaxPods: new(intstr.FromInt32(110))}},
			want{"pods": "110"}, want{"memory": "1565Mi"}, nil}, // 11 × 110 + 255 + 100
		{"kubeReserved and systemReserved", x86, kubelet(karpenter.ParsedKubelet{
			KubeReserved:   map[string]string{"cpu": "200m", "memory": "1Gi"},
			SystemReserved: map[string]string{"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "2Gi"},
		}), nil, want{"cpu": "300m", "memory": "1224Mi", "ephemeral-storage": "5Gi"}, nil},
		{"settings that do not parse count as unset", x86, kubelet(karpenter.ParsedKubelet{
			KubeReserved: map[string]string{"cpu": "much"}, EvictionHard: map[string]string{"memory.available": "x%"},
		}), nil, want{"cpu": "70m", "memory": "674Mi"}, nil},
	})
}

func TestResourcesEviction(t *testing.T) {
	hard := func(memory, disk string) catalog.NodeConfig {
		return kubelet(karpenter.ParsedKubelet{EvictionHard: map[string]string{"memory.available": memory, "nodefs.available": disk}})
	}
	run(t, []resourcesCase{
		{"quantities", x86, hard("500Mi", "3Gi"), nil, want{"memory": "1074Mi", "ephemeral-storage": "4Gi"}, nil},
		// 10 % of 7577 MiB (7945060352) is 794506036 bytes, rounded up; 574 MiB is 601882624.
		{"percentages", x86, hard("10%", "25%"), nil, want{"memory": "1396388660", "ephemeral-storage": "6Gi"}, nil},
		{"100% switches off", x86, hard("100%", "100%"), nil, want{"memory": "574Mi", "ephemeral-storage": "1Gi"}, nil},
		{"soft thresholds do not count", x86,
			kubelet(karpenter.ParsedKubelet{EvictionSoft: map[string]string{"memory.available": "2Gi"}}),
			nil, want{"memory": "674Mi"}, nil},
	})
}

func TestResourcesDevices(t *testing.T) {
	efaOnly := []karpenter.NetworkInterface{
		{NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: karpenter.InterfaceTypeInterface},
		{NetworkCardIndex: 0, DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly},
		{NetworkCardIndex: 1, DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly},
	}
	run(t, []resourcesCase{
		{"none", arm, al2023(nil), want{
			"nvidia.com/gpu": "", "aws.amazon.com/neuron": "", "vpc.amazonaws.com/efa": "", "vpc.amazonaws.com/pod-eni": "",
			"vpc.amazonaws.com/PrivateIPv4Address": "",
		}, nil, nil},
		{"branch interfaces", x86, al2023(nil), want{"vpc.amazonaws.com/pod-eni": "9"}, nil, nil},
		{"GPUs and adapters", gpu, al2023(nil), want{"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4"}, nil,
			want{"nvidia.com/gpu": "8"}},
		{"Neuron", chip, al2023(nil), want{
			"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32", "vpc.amazonaws.com/efa": "8", "pods": "247",
		}, nil, nil},
		{"Gaudi is not NVIDIA", gaudi, al2023(nil), want{"habana.ai/gaudi": "8", "nvidia.com/gpu": ""}, nil, nil},
		{"Windows addresses", x86, catalog.NodeConfig{AMIFamily: "Windows2022"},
			want{"vpc.amazonaws.com/PrivateIPv4Address": "9"}, nil, nil},
		{"efa-only interfaces replace the type's", gpu, al2023(func(c *catalog.NodeConfig) { c.NetworkInterfaces = efaOnly }),
			want{"vpc.amazonaws.com/efa": "2", "pods": "688"}, nil, nil}, // 14 × 49 + 2: one of them sits on the default card
	})
}

func TestHugePages(t *testing.T) {
	capacity := corev1.ResourceList{"memory": resource.MustParse("4Gi"), "hugepages-2Mi": resource.MustParse("1Gi")}
	overhead := corev1.ResourceList{"memory": resource.MustParse("512Mi")}
	check(t, "allocatable", catalog.Allocatable(capacity, overhead), want{"memory": "2560Mi", "hugepages-2Mi": "1Gi"})

	capacity["hugepages-1Gi"] = resource.MustParse("4Gi")
	check(t, "allocatable below zero", catalog.Allocatable(capacity, overhead), want{"memory": "0"})
	check(t, "capacity is unchanged", capacity, want{"memory": "4Gi"})
}
