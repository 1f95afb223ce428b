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

// gravitonReserveMiB is memory that the kernel keeps for contiguous allocation on arm64.
const gravitonReserveMiB = 64

// NodeResources is what a node of type t will report as capacity, what is kept from pods, and what is left for them.
// NodeResources that the type has none of are left out of capacity.
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
	// Thresholds go by the estimate even when the true memory is known, so that overhead does not move with what was seen.
	overhead = sumResources(kubeReserved(t, cfg), systemReserved(cfg), evictionThreshold(memory, storage, cfg))
	return capacity, overhead, Allocatable(capacity, overhead)
}

// Allocatable is capacity without overhead, and without the memory that huge pages take.
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

// estimatedMemory is the hardware's memory less what the machine keeps, rounded in the node's disfavour to a MiB.
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

// deviceResources are the resources that only some types have.
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

// gpuResources goes by manufacturer as EC2 writes it, which lists Gaudi cards among the GPUs.
var gpuResources = map[string]corev1.ResourceName{
	"NVIDIA": karpenter.ResourceNVIDIAGPU,
	"AMD":    karpenter.ResourceAMDGPU,
	"Habana": karpenter.ResourceHabanaGaudi,
}

// countEFAs are those that the class asks for, or else all that the type has.
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

func sumResources(lists ...corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			so := total[name]
			so.Add(quantity)
			total[name] = so
		}
	}
	return total
}
