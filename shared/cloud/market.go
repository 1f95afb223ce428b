package cloud

import (
	"context"
	"time"
)

// Market reads a region's offerings: hardware, zones and spot prices. Every result is complete or an error: callers
// may conclude that anything missing is not offered.
type Market interface {
	// InstanceTypes returns the region's types that run Linux on amd64 or arm64.
	InstanceTypes(ctx context.Context) ([]InstanceType, error)
	// TypeOfferings returns which zone offers which type.
	TypeOfferings(ctx context.Context) ([]TypeOffering, error)
	// AvailabilityZones returns the zones that the account may use.
	AvailabilityZones(ctx context.Context) ([]AvailabilityZone, error)
	// SpotPrices returns the prices of Linux at that time, one for each type and zone.
	SpotPrices(ctx context.Context, at time.Time) ([]SpotPrice, error)
}

// Prices reads on-demand prices.
type Prices interface {
	// OnDemandPrices returns a region's prices for Linux, with shared tenancy or on bare metal.
	OnDemandPrices(ctx context.Context, region string) ([]OnDemandPrice, error)
}

// ZonalShifts reads from Amazon Application Recovery Controller which zones a cluster is shifted away from.
type ZonalShifts interface {
	// ZonalShifts returns the shifts in force for the resource with that ARN. A resource that is not registered with
	// the controller has none.
	ZonalShifts(ctx context.Context, arn string) ([]ZonalShift, error)
}

// InstanceType is the result of ec2:DescribeInstanceTypes for a type, in EC2's spelling and units.
type InstanceType struct {
	Name string
	// Architectures are x86_64, arm64 and older ones.
	Architectures []string
	VCPU          int64
	MemoryMiB     int64
	BareMetal     bool
	Burstable     bool
	// Hypervisor is nitro or xen; empty on bare metal.
	Hypervisor   string
	Manufacturer string
	// ClockGHz is the sustained clock speed; 0 if EC2 does not report it.
	ClockGHz float64
	// UsageClasses are on-demand, spot and capacity-block.
	UsageClasses []string
	// GPUs, Inference and Neuron are three lists, as in EC2: a Neuron device may be in two of them.
	GPUs, Inference, Neuron []Device
	Storage                 InstanceStore
	EBS                     EBS
	Network                 InstanceNetwork
	// Enclaves and NestedVirtualization mean that Nitro Enclaves or virtual machines can run in an instance.
	Enclaves, NestedVirtualization bool
	// PlacementStrategies are the strategies of placement groups that accept the type: cluster, partition, spread.
	PlacementStrategies []string
}

// Device is one model of device in a type.
type Device struct {
	Name, Manufacturer string
	Count              int64
	// MemoryMiB is the memory of one device, and Cores its Neuron cores.
	MemoryMiB, Cores int64
}

// InstanceStore is the local disks of a type.
type InstanceStore struct {
	Disks, TotalGB int64
	NVMe           bool
}

// EBS is the EBS properties of a type.
type EBS struct {
	// Optimized means that EBS optimization is on by default.
	Optimized bool
	// MaximumMbps is the burst bandwidth.
	MaximumMbps int64
	// Attachments is the maximum number of volumes, 0 if EC2 does not report it; a Dedicated limit is not shared with
	// network interfaces and local disks.
	Attachments int64
	Dedicated   bool
}

// InstanceNetwork is the network properties of a type.
type InstanceNetwork struct {
	// Interfaces is the maximum on the default card, and IPv4 the maximum number of addresses of one interface.
	Interfaces, IPv4, Cards int64
	EFAs                    int64
	// BaselineGbps is the sustained bandwidth of all cards together; 0 if EC2 does not report it.
	BaselineGbps        float64
	EncryptionInTransit bool
}

// TypeOffering means that a zone, by name, offers a type.
type TypeOffering struct {
	Type, Zone string
}

// AvailabilityZone is a zone by the account's name and by AWS's id.
type AvailabilityZone struct {
	Name, ID string
	// Down means that AWS accepts no launches there.
	Down bool
}

// SpotPrice is a spot price per hour in the region's currency.
type SpotPrice struct {
	Type, Zone string
	// ZoneID may be empty.
	ZoneID  string
	PerHour float64
}

// OnDemandPrice is a type's price per hour.
type OnDemandPrice struct {
	Type    string
	PerHour float64
	// Currency is USD, or CNY in China.
	Currency string
}

// ZonalShift shifts a resource away from a zone.
type ZonalShift struct {
	ZoneID string
	// Until is when it ends; zero for an autoshift, which AWS ends.
	Until time.Time
}
