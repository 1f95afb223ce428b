package catalog

import "time"

// Catalogue is everything known about one region at one moment.
type Catalogue struct {
	Region    string `json:"region"`
	Partition string `json:"partition"`
	// AsOf is the date of the data, not of its reading; with several sources it is the oldest that prices depend on.
	AsOf time.Time `json:"asOf"`
	// Sources says where the data came from, in the order of use.
	Sources []Provenance   `json:"sources,omitempty"`
	Types   []InstanceType `json:"types"`
	// Currency is what prices are in where it is not US dollars: CNY in China.
	Currency string `json:"currency,omitempty"`
	// ShiftedZones are the ids of the zones that a zonal shift keeps the cluster away from, sorted. Their offerings
	// are not available, reservations there included.
	ShiftedZones []string `json:"shiftedZones,omitempty"`
	// Cluster is empty in an embedded catalogue.
	Cluster ClusterFacts `json:"cluster,omitzero"`
	// Counted is the moment at which what is left in the account was counted, or from which it has been the same; zero means
	// AsOf. Read it through CountedAt.
	Counted time.Time `json:"counted,omitzero"`
	// Reservations are what the account had left of its capacity reservations when it was counted, sorted by id; what is not
	// listed is not known.
	Reservations []ReservationCount `json:"reservations,omitempty"`
	// Subnets are how many addresses the account's subnets had left then, and PlacementGroups its placement groups, both
	// sorted by id; what is not listed is not known.
	Subnets         []SubnetCount    `json:"subnets,omitempty"`
	PlacementGroups []PlacementGroup `json:"placementGroups,omitempty"`
}

// CountedAt is when Reservations and Subnets were counted.
func (c Catalogue) CountedAt() time.Time {
	if c.Counted.IsZero() {
		return c.AsOf
	}
	return c.Counted
}

// SubnetCount is how many IPv4 addresses a subnet has left.
type SubnetCount struct {
	ID      string `json:"id"`
	FreeIPs int64  `json:"freeIPs"`
}

// PlacementGroup says how EC2 places instances beside each other.
type PlacementGroup struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Strategy is cluster, partition or spread.
	Strategy string `json:"strategy"`
	// Partitions is how many partitions a group of that strategy has.
	Partitions int64 `json:"partitions,omitempty"`
}

// Strategies of placement groups that are treated apart: one keeps each instance on hardware of its own, the other whole
// partitions of them.
const (
	SpreadStrategy    = "spread"
	PartitionStrategy = "partition"
)

// ReservationCount is how many more instances a capacity reservation takes.
type ReservationCount struct {
	ID    string `json:"id"`
	Count int64  `json:"count"`
}

// Provenance names one source of a catalogue's data.
type Provenance struct {
	// Source is a Go module path, or the name of an AWS API such as ec2:DescribeInstanceTypes.
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
	License string `json:"license,omitempty"`
	// Date is the day the source describes, as YYYY-MM-DD.
	Date string `json:"date"`
	// Carries says in a few words what was taken from the source.
	Carries string `json:"carries"`
}

// ClusterFacts are the facts of the cluster that nodes need in order to join it (eks:DescribeCluster).
type ClusterFacts struct {
	Name     string `json:"name,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// CABundle is the cluster's certificate authority, base64 of PEM as EKS gives it.
	CABundle    string `json:"caBundle,omitempty"`
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// Version is the Kubernetes minor version, such as "1.35".
	Version string `json:"version,omitempty"`
	// IPFamily is "ipv4" or "ipv6".
	IPFamily string `json:"ipFamily,omitempty"`
}

// InstanceType is one EC2 instance type: its hardware, and where it is offered.
type InstanceType struct {
	Name string `json:"name"`
	// Arch is the Kubernetes architecture, amd64 or arm64.
	Arch string `json:"arch"`
	// OS lists the operating systems that run on it, sorted: linux, and windows on amd64.
	OS        []string `json:"os"`
	VCPU      int64    `json:"vcpu"`
	MemoryMiB int64    `json:"memoryMiB"`

	GPUs         []GPU         `json:"gpus,omitempty"`
	Accelerators []Accelerator `json:"accelerators,omitempty"`
	Storage      LocalStorage  `json:"storage,omitzero"`
	Network      Network       `json:"network"`

	// EBSMbps is the largest EBS bandwidth; 0 where EBS optimization is not on by default.
	EBSMbps int64 `json:"ebsMbps,omitempty"`
	// Volumes is how EC2 bounds the EBS volumes of an instance; zero is what it says of most types.
	Volumes Attachments `json:"volumes,omitzero"`

	// Hypervisor is nitro or xen; empty on bare metal.
	Hypervisor string `json:"hypervisor,omitempty"`
	BareMetal  bool   `json:"bareMetal,omitempty"`
	// Burstable types earn CPU credits, so their full speed does not last.
	Burstable bool `json:"burstable,omitempty"`
	// CPUManufacturer is as EC2 writes it: AWS, Intel, AMD, Apple.
	CPUManufacturer string `json:"cpuManufacturer,omitempty"`
	// ClockMHz is the sustained clock speed; 0 when it is unknown.
	ClockMHz            int64 `json:"clockMHz,omitempty"`
	EncryptionInTransit bool  `json:"encryptionInTransit,omitempty"`

	// SupportedUsage is a sorted subset of on-demand and spot.
	SupportedUsage []string   `json:"supportedUsage"`
	Offerings      []Offering `json:"offerings,omitempty"`
}

// Attachments is how many EBS volumes an instance takes, the root volume included; what its instance store and its first
// network interface take of a common limit is off already.
type Attachments struct {
	Count int64 `json:"count"`
	// Dedicated limits are for volumes alone. Of any other, each further network interface takes one.
	Dedicated bool `json:"dedicated,omitempty"`
}

// GPU is one model of graphics card in an instance type.
type GPU struct {
	// Name and Manufacturer are as EC2 writes them: A10G, NVIDIA.
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Count        int64  `json:"count"`
	// MemoryMiB is the memory of one card.
	MemoryMiB int64 `json:"memoryMiB"`
}

// Accelerator is one model of machine-learning device that is not a GPU.
type Accelerator struct {
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Count        int64  `json:"count"`
	// CoresPerDevice counts Neuron cores; 0 for devices that are no Neuron.
	CoresPerDevice int64 `json:"coresPerDevice,omitempty"`
}

// LocalStorage is the instance store: disks that live and die with the instance.
type LocalStorage struct {
	Disks int64 `json:"disks"`
	// TotalGB is the size of all disks together in units of 10^9 bytes.
	TotalGB int64 `json:"totalGB"`
	NVMe    bool  `json:"nvme,omitempty"`
}

// Network is what bounds pods and traffic on an instance type.
type Network struct {
	// ENIs is the number of interfaces on the default network card: the VPC CNI uses no other.
	ENIs       int64 `json:"enis"`
	IPv4PerENI int64 `json:"ipv4PerENI"`
	// Cards is the number of network cards, 1 for most types.
	Cards int64 `json:"cards,omitempty"`
	// BranchENIs counts interfaces for pods with security groups of their own; 0 when the type cannot trunk.
	BranchENIs int64 `json:"branchENIs,omitempty"`
	EFAs       int64 `json:"efas,omitempty"`
	// Mbps is the baseline bandwidth; 0 when the source is vague about it.
	Mbps int64 `json:"mbps,omitempty"`
}

// Offering is one way to buy an instance type: a zone and a capacity type.
type Offering struct {
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneID"`
	// CapacityType is spot, on-demand or reserved.
	CapacityType string `json:"capacityType"`
	// PricePerHour is in US dollars, or in the catalogue's Currency, for Linux on shared tenancy; 0 where AWS publishes no price.
	PricePerHour float64 `json:"pricePerHour"`
	// Available is false where EC2 is known to refuse it for now; the price stays, so a reader can say what was lost. It is
	// false for every offering without a price, which a NodeOverlay may supply.
	Available bool `json:"available"`
}

// HasPrice reports whether AWS publishes a price for the offering.
func (o Offering) HasPrice() bool { return o.PricePerHour > 0 }
