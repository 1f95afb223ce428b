package catalog

import (
	"math"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// architectures are Kubernetes' words for EC2's.
var architectures = map[string]string{"x86_64": AMD64, "arm64": ARM64}

// ConvertType is the hardware that EC2 describes, without offerings; false where no Kubernetes node can run on it, or where
// EC2 says too little. What EC2 does not say at all is taken from the embedded catalogue: how many branch interfaces a
// type has, which only the VPC resource controller knows, and the EBS driver's corrections of volume limits.
func ConvertType(in cloud.InstanceType) (InstanceType, bool) {
	t := InstanceType{
		Name: in.Name, Arch: convertArchitecture(in.Architectures), OS: []string{Linux}, VCPU: in.VCPU, MemoryMiB: in.MemoryMiB,
		Storage: localStorage(in.Storage), Network: convertNetwork(in.Network),
		BareMetal: in.BareMetal, Burstable: in.Burstable, CPUManufacturer: in.Manufacturer,
		ClockMHz: int64(math.Round(in.ClockGHz * 1000)), EncryptionInTransit: in.Network.EncryptionInTransit,
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

// addEmbeddedFacts adds what only the embedded catalogue knows.
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

// convertArchitecture is the first that Kubernetes has a word for: some old types run 32 bits too.
func convertArchitecture(all []string) string {
	for _, one := range all {
		if arch := architectures[one]; arch != "" {
			return arch
		}
	}
	return ""
}

// convertUsage leaves out capacity blocks, which are bought as reservations.
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

// xenVolumes is how many volumes a type without Nitro takes for certain, besides its root volume, as the EBS driver has it.
const xenVolumes = 39

// volumeAttachments leaves what EC2 says of most types unsaid.
func volumeAttachments(in cloud.EBS, hypervisor string) Attachments {
	switch {
	case hypervisor == "xen":
		return Attachments{Count: xenVolumes, Dedicated: true}
	case in.Attachments == commonVolumes && !in.Dedicated:
		return Attachments{}
	}
	return Attachments{Count: in.Attachments, Dedicated: in.Dedicated && in.Attachments > 0}
}

// convertAccelerators prefers the Neuron list, since the other has the same devices without their cores.
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

// findEmbeddedType is a type's hardware in the embedded catalogue, whatever the region.
func findEmbeddedType(name string) (InstanceType, bool) {
	h, err := embeddedHardware()
	if err != nil {
		return InstanceType{}, false // Not reached: the data is part of the binary.
	}
	return Catalogue{Types: h.Types}.Find(name)
}
