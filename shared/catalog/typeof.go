package catalog

import (
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// architectures maps EC2's names to Kubernetes'.
var architectures = map[string]string{"x86_64": AMD64, "arm64": ARM64}

// ConvertType returns EC2's description of a type without offerings; false if no Kubernetes node can run on it, or if
// the description is incomplete. Missing data is from the embedded catalogue: the number of branch interfaces, which
// only the VPC resource controller has, and the EBS driver's corrections of volume limits.
func ConvertType(in cloud.InstanceType) (InstanceType, bool) {
	t := InstanceType{
		Name: in.Name, Arch: convertArchitecture(in.Architectures), OS: []string{Linux}, VCPU: in.VCPU, MemoryMiB: in.MemoryMiB,
		Storage: localStorage(in.Storage), Network: convertNetwork(in.Network),
		BareMetal: in.BareMetal, Burstable: in.Burstable, CPUManufacturer: in.Manufacturer,
		ClockMHz: int64(math.Round(in.ClockGHz * 1000)), EncryptionInTransit: in.Network.EncryptionInTransit,
		Enclaves: in.Enclaves, NestedVirtualization: in.NestedVirtualization, PlacementStrategies: slices.Sorted(slices.Values(in.PlacementStrategies)),
		SupportedUsage: convertUsage(in.UsageClasses), Volumes: volumeAttachments(in.EBS, in.Hypervisor),
	}
	if t.Arch == "" || t.VCPU <= 0 || t.MemoryMiB <= 0 || t.Network.ENIs <= 0 {
		return InstanceType{}, false
	}
	if t.Arch == AMD64 {
		t.OS = append(t.OS, Windows)
	}
	if !t.BareMetal {
		t.Hypervisor = in.Hypervisor
	}
	if in.EBS.Optimized {
		t.EBSMbps = in.EBS.MaximumMbps
	}
	for _, g := range in.GPUs {
		t.GPUs = append(t.GPUs, GPU{Name: g.Name, Manufacturer: g.Manufacturer, Count: g.Count, MemoryMiB: g.MemoryMiB})
	}
	t.Accelerators = convertAccelerators(in)
	return t.addEmbeddedFacts(), true
}

// addEmbeddedFacts adds data that only the embedded catalogue has.
func (t InstanceType) addEmbeddedFacts() InstanceType {
	known, ok := findEmbeddedType(t.Name)
	if !ok {
		return t
	}
	t.Volumes, t.Network.BranchENIs = known.Volumes, known.Network.BranchENIs
	if t.Network.Mbps == 0 {
		t.Network.Mbps = known.Network.Mbps
	}
	if t.ClockMHz == 0 {
		t.ClockMHz = known.ClockMHz
	}
	return t
}

// convertArchitecture returns the first architecture that Kubernetes supports: some old types also list a 32-bit one.
func convertArchitecture(all []string) string {
	for _, one := range all {
		if arch := architectures[one]; arch != "" {
			return arch
		}
	}
	return ""
}

// convertUsage omits capacity blocks, which are bought as reservations.
func convertUsage(classes []string) []string {
	var out []string
	for _, class := range classes {
		if class == OnDemand || class == Spot {
			out = append(out, class)
		}
	}
	slices.Sort(out)
	return out
}

func localStorage(in cloud.InstanceStore) LocalStorage {
	if in.TotalGB <= 0 {
		return LocalStorage{}
	}
	return LocalStorage(in)
}

func convertNetwork(in cloud.InstanceNetwork) Network {
	return Network{
		ENIs: in.Interfaces, IPv4PerENI: in.IPv4, Cards: in.Cards, EFAs: in.EFAs,
		Mbps: int64(math.Round(in.BaselineGbps * 1000)),
	}
}

// xenVolumes is how many volumes a type without Nitro always supports in addition to its root volume, as in the EBS driver.
const xenVolumes = 39

// volumeAttachments returns zero for the limit that most types have.
func volumeAttachments(in cloud.EBS, hypervisor string) Attachments {
	switch {
	case hypervisor == "xen":
		return Attachments{Count: xenVolumes, Dedicated: true}
	case in.Attachments == commonVolumes && !in.Dedicated:
		return Attachments{}
	}
	return Attachments{Count: in.Attachments, Dedicated: in.Dedicated && in.Attachments > 0}
}

// convertAccelerators prefers the Neuron list, because the other list has the same devices without their cores.
func convertAccelerators(in cloud.InstanceType) []Accelerator {
	devices := in.Neuron
	if len(devices) == 0 {
		devices = in.Inference
	}
	var out []Accelerator
	for _, d := range devices {
		out = append(out, Accelerator{Name: d.Name, Manufacturer: d.Manufacturer, Count: d.Count, CoresPerDevice: d.Cores})
	}
	return out
}

// findEmbeddedType returns a type's hardware from the embedded catalogue, which is the same in all regions.
func findEmbeddedType(name string) (InstanceType, bool) {
	h, err := embeddedHardware()
	if err != nil {
		return InstanceType{}, false // Unreachable: the data is part of the binary.
	}
	return Catalogue{Types: h.Types}.Find(name)
}
