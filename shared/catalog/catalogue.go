package catalog

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Kind is the folder of catalogue documents.
const Kind = event.CatalogueKind

// Capacity types.
const (
	OnDemand = karpenter.CapacityTypeOnDemand
	Spot     = karpenter.CapacityTypeSpot
	Reserved = karpenter.CapacityTypeReserved
)

// Architectures and operating systems in Kubernetes' spelling.
const (
	AMD64   = karpenter.ArchitectureAMD64
	ARM64   = karpenter.ArchitectureARM64
	Linux   = "linux"
	Windows = "windows"
)

// Catalogue is everything that is known about one region at one time.
type Catalogue struct {
	Region    string `json:"region"`
	Partition string `json:"partition"`
	// AsOf is the date of the data, not when it was read; with several sources it is the oldest one on which prices
	// depend.
	AsOf time.Time `json:"asOf"`
	// Sources are the sources of the data, in the order of use.
	Sources []Provenance   `json:"sources,omitempty"`
	Types   []InstanceType `json:"types"`
	// Embedded is true if the types or their zones were not read from EC2: the account may have others.
	Embedded bool `json:"embedded,omitempty"`
	// Currency is the currency of prices if it is not US dollars: CNY in China.
	Currency string `json:"currency,omitempty"`
	// ShiftedZones are the ids of the zones from which a zonal shift moves the cluster away, sorted. Their offerings
	// and reservations are not available.
	ShiftedZones []string `json:"shiftedZones,omitempty"`
	// Cluster is empty in an embedded catalogue.
	Cluster ClusterFacts `json:"cluster,omitzero"`
	// Counted is when Reservations and Subnets were counted, or since when the counts are unchanged; zero means AsOf.
	// Read it with CountedAt.
	Counted time.Time `json:"counted,omitzero"`
	// Reservations are the remaining counts of the account's capacity reservations at that time, sorted by id; those
	// that are not listed are unknown.
	Reservations []ReservationCount `json:"reservations,omitempty"`
	// Subnets are the numbers of free addresses of the account's subnets at that time, and PlacementGroups its
	// placement groups, both sorted by id; unlisted ones are unknown.
	Subnets         []SubnetCount    `json:"subnets,omitempty"`
	PlacementGroups []PlacementGroup `json:"placementGroups,omitempty"`
}

// CountedAt returns when Reservations and Subnets were counted.
func (c Catalogue) CountedAt() time.Time {
	if c.Counted.IsZero() {
		return c.AsOf
	}
	return c.Counted
}

// SubnetCount is the number of free IPv4 addresses of a subnet.
type SubnetCount struct {
	ID      string `json:"id"`
	FreeIPs int64  `json:"freeIPs"`
}

// PlacementGroup is a group that controls how EC2 places instances relative to each other.
type PlacementGroup struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Strategy is cluster, partition or spread.
	Strategy string `json:"strategy"`
	// Partitions is the number of partitions of a group with the strategy partition.
	Partitions int64 `json:"partitions,omitempty"`
}

// Strategies of placement groups with special handling: spread puts each instance on separate hardware, partition
// each partition of instances, and cluster places them near each other.
const (
	SpreadStrategy    = "spread"
	PartitionStrategy = "partition"
	ClusterStrategy   = "cluster"
)

// FindPlacementGroup returns the selected placement group, if the catalogue has it.
func (c Catalogue) FindPlacementGroup(selector *karpenter.PlacementGroupSelector) (PlacementGroup, bool) {
	for _, g := range c.PlacementGroups {
		if selector != nil && (selector.ID != nil && *selector.ID == g.ID || selector.Name != nil && *selector.Name == g.Name) {
			return g, true
		}
	}
	return PlacementGroup{}, false
}

// ReservationCount is how many more instances fit into a capacity reservation.
type ReservationCount struct {
	ID    string `json:"id"`
	Count int64  `json:"count"`
}

// Provenance is one source of a catalogue's data.
type Provenance struct {
	// Source is a Go module path, or the name of an AWS API such as ec2:DescribeInstanceTypes.
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
	License string `json:"license,omitempty"`
	// Date is the day that the source describes, as YYYY-MM-DD.
	Date string `json:"date"`
	// Carries briefly describes the data from the source.
	Carries string `json:"carries"`
}

// ClusterFacts are the cluster's properties that nodes need to join it (eks:DescribeCluster).
type ClusterFacts struct {
	Name     string `json:"name,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// CABundle is the cluster's certificate authority, base64 of PEM as EKS returns it.
	CABundle    string `json:"caBundle,omitempty"`
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// Version is the Kubernetes minor version, such as "1.35".
	Version string `json:"version,omitempty"`
	// IPFamily is "ipv4" or "ipv6".
	IPFamily string `json:"ipFamily,omitempty"`
}

// InstanceType is one EC2 instance type: its hardware and its offerings.
type InstanceType struct {
	Name string `json:"name"`
	// Arch is the Kubernetes architecture, amd64 or arm64.
	Arch string `json:"arch"`
	// OS lists the operating systems that it supports, sorted: linux, and windows on amd64.
	OS        []string `json:"os"`
	VCPU      int64    `json:"vcpu"`
	MemoryMiB int64    `json:"memoryMiB"`

	GPUs         []GPU         `json:"gpus,omitempty"`
	Accelerators []Accelerator `json:"accelerators,omitempty"`
	Storage      LocalStorage  `json:"storage,omitzero"`
	Network      Network       `json:"network"`

	// EBSMbps is the maximum EBS bandwidth; 0 if EBS optimization is not on by default.
	EBSMbps int64 `json:"ebsMbps,omitempty"`
	// Volumes is EC2's limit of EBS volumes per instance; zero is the limit of most types.
	Volumes Attachments `json:"volumes,omitzero"`

	// Hypervisor is nitro or xen; empty on bare metal.
	Hypervisor string `json:"hypervisor,omitempty"`
	BareMetal  bool   `json:"bareMetal,omitempty"`
	// Burstable types earn CPU credits, so they cannot sustain their full speed.
	Burstable bool `json:"burstable,omitempty"`
	// CPUManufacturer is in EC2's spelling: AWS, Intel, AMD, Apple.
	CPUManufacturer string `json:"cpuManufacturer,omitempty"`
	// ClockMHz is the sustained clock speed; 0 if it is unknown.
	ClockMHz            int64 `json:"clockMHz,omitempty"`
	EncryptionInTransit bool  `json:"encryptionInTransit,omitempty"`
	// Enclaves and NestedVirtualization mean that Nitro Enclaves or virtual machines can run in an instance. Only EC2
	// has these facts: an embedded catalogue has neither.
	Enclaves             bool `json:"enclaves,omitempty"`
	NestedVirtualization bool `json:"nestedVirtualization,omitempty"`
	// PlacementStrategies are the strategies of placement groups that accept the type, sorted. An embedded catalogue
	// has none; read it with AcceptsPlacement.
	PlacementStrategies []string `json:"placementStrategies,omitempty"`

	// SupportedUsage is a sorted subset of on-demand and spot.
	SupportedUsage []string   `json:"supportedUsage"`
	Offerings      []Offering `json:"offerings,omitempty"`
}

// Attachments is how many EBS volumes an instance can have, including the root volume. The instance store and the
// first network interface are already subtracted from a shared limit.
type Attachments struct {
	Count int64 `json:"count"`
	// Dedicated limits are for volumes only. In a shared limit each further network interface counts as one.
	Dedicated bool `json:"dedicated,omitempty"`
}

// GPU is one GPU model of an instance type.
type GPU struct {
	// Name and Manufacturer are in EC2's spelling: A10G, NVIDIA.
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Count        int64  `json:"count"`
	// MemoryMiB is the memory of one GPU.
	MemoryMiB int64 `json:"memoryMiB"`
}

// Accelerator is one model of machine-learning device that is not a GPU.
type Accelerator struct {
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Count        int64  `json:"count"`
	// CoresPerDevice is the number of Neuron cores; 0 for other devices.
	CoresPerDevice int64 `json:"coresPerDevice,omitempty"`
}

// LocalStorage is the instance store: disks that exist only as long as the instance.
type LocalStorage struct {
	Disks int64 `json:"disks"`
	// TotalGB is the total size of the disks in units of 10^9 bytes.
	TotalGB int64 `json:"totalGB"`
	NVMe    bool  `json:"nvme,omitempty"`
}

// Network is the limits of an instance type for pods and traffic.
type Network struct {
	// ENIs is the number of interfaces of the default network card: the VPC CNI uses no other.
	ENIs       int64 `json:"enis"`
	IPv4PerENI int64 `json:"ipv4PerENI"`
	// Cards is the number of network cards, 1 for most types.
	Cards int64 `json:"cards,omitempty"`
	// BranchENIs is the number of interfaces for pods with their own security groups; 0 if the type does not support
	// trunking.
	BranchENIs int64 `json:"branchENIs,omitempty"`
	EFAs       int64 `json:"efas,omitempty"`
	// Mbps is the baseline bandwidth; 0 if the source has no exact value.
	Mbps int64 `json:"mbps,omitempty"`
}

// Offering is a zone and a capacity type in which an instance type is sold.
type Offering struct {
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneID"`
	// CapacityType is spot, on-demand or reserved.
	CapacityType string `json:"capacityType"`
	// PricePerHour is in US dollars, or in the catalogue's Currency, for Linux with shared tenancy; 0 if AWS
	// publishes no price.
	PricePerHour float64 `json:"pricePerHour"`
	// Available is false while EC2 is known to refuse launches; the price remains, for messages. It is false for
	// every offering without a price, which a NodeOverlay may supply.
	Available bool `json:"available"`
}

// HasPrice reports whether AWS publishes a price for the offering.
func (o Offering) HasPrice() bool { return o.PricePerHour > 0 }
