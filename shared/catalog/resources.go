package catalog

import (
	"maps"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const mebibyte = 1 << 20

// gravitonReserveMiB is memory that the kernel reserves for contiguous allocation on arm64.
const gravitonReserveMiB = 64

// NodeResources returns the capacity that a node of type t will report, the part reserved from pods, and the part
// left for them. Device resources that the type lacks are omitted from capacity.
func NodeResources(t InstanceType, cfg NodeConfig) (capacity, overhead, allocatable corev1.ResourceList) {
	memory, storage := estimatedMemory(t, cfg), EphemeralStorage(t, cfg)
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(t.VCPU, resource.DecimalSI),
		corev1.ResourceMemory:           memory,
		corev1.ResourceEphemeralStorage: storage,
		corev1.ResourcePods:             *resource.NewQuantity(MaxPods(t, cfg), resource.DecimalSI),
	}
	if cfg.DiscoveredMemory != nil {
		capacity[corev1.ResourceMemory] = cfg.DiscoveredMemory.DeepCopy()
	}
	maps.Copy(capacity, deviceResources(t, cfg))
	// Thresholds use the estimate even if the real memory is known, so that the overhead does not depend on
	// observations.
	overhead = karpenter.SumResources(kubeReserved(t, cfg), systemReserved(cfg), evictionThreshold(memory, storage, cfg))
	return capacity, overhead, Allocatable(capacity, overhead)
}

// Allocatable returns capacity without overhead, and without the memory of huge pages.
func Allocatable(capacity, overhead corev1.ResourceList) corev1.ResourceList {
	left := make(corev1.ResourceList, len(capacity))
	for name, quantity := range capacity {
		rest := quantity.DeepCopy()
		rest.Sub(overhead[name])
		left[name] = rest
	}
	for name, quantity := range capacity {
		if !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			continue
		}
		memory := left[corev1.ResourceMemory]
		memory.Sub(quantity)
		if memory.Sign() < 0 {
			memory = *resource.NewQuantity(0, resource.BinarySI)
		}
		left[corev1.ResourceMemory] = memory
	}
	return left
}

// estimatedMemory returns the hardware's memory without the overhead, rounded down to a MiB.
func estimatedMemory(t InstanceType, cfg NodeConfig) resource.Quantity {
	mib := t.MemoryMiB
	if t.Arch == ARM64 {
		mib -= gravitonReserveMiB
	}
	share := DefaultVMMemoryOverheadPercent
	if cfg.VMMemoryOverheadPercent != nil {
		share = *cfg.VMMemoryOverheadPercent
	}
	mib -= int64(math.Ceil(float64(mib*mebibyte) * share / 1024 / 1024))
	return *resource.NewQuantity(mib*mebibyte, resource.BinarySI)
}

// deviceResources returns the resources that only some types have.
func deviceResources(t InstanceType, cfg NodeConfig) corev1.ResourceList {
	counts := map[corev1.ResourceName]int64{
		karpenter.ResourceAWSPodENI: t.Network.BranchENIs,
		karpenter.ResourceEFA:       countEFAs(t, cfg),
	}
	for _, g := range t.GPUs {
		counts[gpuResources[g.Manufacturer]] += g.Count
	}
	for _, a := range t.Accelerators {
		if a.CoresPerDevice > 0 {
			counts[karpenter.ResourceAWSNeuron] += a.Count
			counts[karpenter.ResourceAWSNeuronCore] += a.Count * a.CoresPerDevice
		}
	}
	if familyOf(cfg.AMIFamily).windows && t.Arch == AMD64 {
		counts[karpenter.ResourcePrivateIPv4Address] = t.Network.IPv4PerENI - 1
	}
	list := corev1.ResourceList{}
	for name, count := range counts {
		if name != "" && count > 0 {
			list[name] = *resource.NewQuantity(count, resource.DecimalSI)
		}
	}
	return list
}

// gpuResources maps EC2's manufacturers to resources. EC2 lists Gaudi among the GPUs.
var gpuResources = map[string]corev1.ResourceName{
	"NVIDIA": karpenter.ResourceNVIDIAGPU,
	"AMD":    karpenter.ResourceAMDGPU,
	"Habana": karpenter.ResourceHabanaGaudi,
}

// countEFAs returns the EFAs that the class configures, or all of the type's if it configures no interfaces.
func countEFAs(t InstanceType, cfg NodeConfig) int64 {
	if cfg.NetworkInterfaces == nil {
		return t.Network.EFAs
	}
	var count int64
	for _, n := range cfg.NetworkInterfaces {
		if n.InterfaceType == karpenter.InterfaceTypeEFAOnly {
			count++
		}
	}
	return count
}
