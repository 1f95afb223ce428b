package catalog

import (
	"maps"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The kubelet's reserve, as the EKS images compute it.
const (
	reservedMiBPerPod   = 11
	reservedMiBFixed    = 255
	reservedStorageGi   = 1
	evictionMemoryMiB   = 100
	evictionStoragePart = 10 // percent of the disk
)

// reservedCPU is the part of each range of CPU that is reserved, in parts of ten thousand.
var reservedCPU = []struct{ fromMilli, toMilli, share int64 }{
	{0, 1000, 600},
	{1000, 2000, 100},
	{2000, 4000, 50},
	{4000, math.MaxInt64, 25},
}

func kubeReserved(t InstanceType, cfg NodeConfig) corev1.ResourceList {
	pods := MaxPods(t, cfg)
	if familyOf(cfg.AMIFamily).eniReserve {
		// These images reserve by type only: maxPods and ReservedENIs do not lower it.
		pods = addressablePods(t, cfg, 0)
	}
	var milli int64
	for _, r := range reservedCPU {
		milli += max(0, min(t.VCPU*1000, r.toMilli)-r.fromMilli) * r.share / 10000
	}
	reserved := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity((reservedMiBPerPod*pods+reservedMiBFixed)*mebibyte, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(reservedStorageGi<<30, resource.BinarySI),
	}
	maps.Copy(reserved, parseQuantities(cfg.Kubelet.KubeReserved))
	return reserved
}

func systemReserved(cfg NodeConfig) corev1.ResourceList {
	return parseQuantities(cfg.Kubelet.SystemReserved)
}

// evictionThreshold returns the kubelet's hard eviction thresholds. Soft thresholds do not lower a node's allocatable
// resources.
func evictionThreshold(memory, storage resource.Quantity, cfg NodeConfig) corev1.ResourceList {
	hard := cfg.Kubelet.EvictionHard
	threshold := corev1.ResourceList{
		corev1.ResourceMemory:           *resource.NewQuantity(evictionMemoryMiB*mebibyte, resource.BinarySI),
		corev1.ResourceEphemeralStorage: percentOf(storage, evictionStoragePart),
	}
	for signal, of := range map[string]struct {
		name     corev1.ResourceName
		capacity resource.Quantity
	}{
		"memory.available": {corev1.ResourceMemory, memory},
		"nodefs.available": {corev1.ResourceEphemeralStorage, storage},
	} {
		if text, set := hard[signal]; set && parseThreshold(text) == nil {
			threshold[of.name] = parseThresholdQuantity(of.capacity, text)
		}
	}
	return threshold
}

// parseThresholdQuantity parses a threshold that parseThreshold accepted. For the kubelet 100% means no threshold.
func parseThresholdQuantity(capacity resource.Quantity, text string) resource.Quantity {
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		return resource.MustParse(text)
	}
	part, _ := strconv.ParseFloat(percent, 64)
	if part == 100 {
		part = 0
	}
	return percentOf(capacity, part)
}

// percentOf returns a percentage of a quantity, rounded up to a whole byte.
func percentOf(of resource.Quantity, percent float64) resource.Quantity {
	return *resource.NewQuantity(int64(math.Ceil(of.AsApproximateFloat64()/100*percent)), of.Format)
}

// parseQuantities parses configured quantities and omits invalid ones, which Validate reports.
func parseQuantities(texts map[string]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range texts {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			list[corev1.ResourceName(name)] = quantity
		}
	}
	return list
}
