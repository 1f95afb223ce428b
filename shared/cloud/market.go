package cloud

import (
	"context"
	"time"
)

// Market reads what a region sells: hardware, where it is sold, and what spot
// costs. Every answer is whole or an error: a caller may take what is absent
// for what is not sold.
type Market interface {
	// InstanceTypes are the types of the region that run Linux on amd64 or arm64.
	InstanceTypes(ctx context.Context) ([]InstanceType, error)
	// TypeOfferings says which zone sells which type.
	TypeOfferings(ctx context.Context) ([]TypeOffering, error)
	// AvailabilityZones are the zones that the account may use.
	AvailabilityZones(ctx context.Context) ([]AvailabilityZone, error)
	// SpotPrices are the prices of Linux at that time, one for each type and zone.
	SpotPrices(ctx context.Context, at time.Time) ([]SpotPrice, error)
}

// Prices reads what types cost on demand.
type Prices interface {
	// OnDemandPrices are those of Linux in a region: on shared tenancy, or of bare
	// metal.
	OnDemandPrices(ctx context.Context, region string) ([]OnDemandPrice, error)
}

// ZonalShifts reads which zones Amazon Application Recovery Controller keeps a
// cluster away from.
type ZonalShifts interface {
	// ZonalShifts are those in force for the resource of that ARN. One that was
	// never handed to the controller has none.
	ZonalShifts(ctx context.Context, arn string) ([]ZonalShift, error)
}

// InstanceType is what ec2:DescribeInstanceTypes says of a type, in EC2's own
// words and units.
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
	// ClockGHz is the sustained speed; 0 where EC2 does not say it.
	ClockGHz float64
	// UsageClasses are on-demand, spot and capacity-block.
	UsageClasses []string
	// GPUs, Inference and Neuron are three lists because EC2 has three: a Neuron
	// device may be in two of them.
	GPUs, Inference, Neuron []Device
	Storage                 InstanceStore
	EBS                     EBS
	Network                 InstanceNetwork
}

// Device is one model of a card in a type.
type Device struct {
	Name, Manufacturer string
	Count              int64
	// MemoryMiB is that of one card, and Cores its Neuron cores.
	MemoryMiB, Cores int64
}

// InstanceStore is the local disks of a type.
type InstanceStore struct {
	Disks, TotalGB int64
	NVMe           bool
}

// EBS is how a type reaches its volumes.
type EBS struct {
	// Optimized says that the bandwidth is there without being asked for.
	Optimized bool
	// MaximumMbps is the bandwidth in bursts.
	MaximumMbps int64
	// Attachments is how many EC2 allows, 0 where it does not say; Dedicated ones
	// are not shared with network interfaces and local disks.
	Attachments int64
	Dedicated   bool
}

// InstanceNetwork is how a type reaches the network.
type InstanceNetwork struct {
	// Interfaces is the most on the default card, and IPv4 the most addresses on
	// one of them.
	Interfaces, IPv4, Cards int64
	EFAs                    int64
	// BaselineGbps is the bandwidth that lasts, of all cards together; 0 where EC2
	// does not say it.
	BaselineGbps        float64
	EncryptionInTransit bool
}

// TypeOffering says that a zone, by name, sells a type.
type TypeOffering struct {
	Type, Zone string
}

// AvailabilityZone is a zone by the account's name and by AWS's own id.
type AvailabilityZone struct {
	Name, ID string
	// Down says that AWS takes no launches there.
	Down bool
}

// SpotPrice is what spot costs an hour in the region's currency.
type SpotPrice struct {
	Type, Zone string
	// ZoneID may be empty.
	ZoneID  string
	PerHour float64
}

// OnDemandPrice is what a type costs an hour.
type OnDemandPrice struct {
	Type    string
	PerHour float64
	// Currency is USD, or CNY in China.
	Currency string
}

// ZonalShift keeps a resource away from a zone.
type ZonalShift struct {
	ZoneID string
	// Until is when it ends; zero where AWS started it and will end it.
	Until time.Time
}
