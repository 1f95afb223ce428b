package cloud

import "time"

// TagSet is the tags that one kind of resource gets at creation
// ("instance", "volume", "fleet", "network-interface", "spot-instances-request").
type TagSet struct {
	Resource string            `json:"resource"`
	Tags     map[string]string `json:"tags"`
}

// Template is a whole launch template. The name derives from the content.
type Template struct {
	Name     string `json:"name"`
	ImageID  string `json:"imageId"`
	UserData string `json:"userData"`
	// InstanceProfile is a name.
	InstanceProfile string              `json:"instanceProfile,omitempty"`
	SecurityGroups  []string            `json:"securityGroups,omitempty"`
	BlockDevices    []BlockDevice       `json:"blockDevices,omitempty"`
	Metadata        Metadata            `json:"metadata"`
	Monitoring      bool                `json:"monitoring,omitempty"`
	PublicIP        *bool               `json:"publicIp,omitempty"`
	Interfaces      []NetworkInterface  `json:"interfaces,omitempty"`
	PrefixCount     *int32              `json:"prefixCount,omitempty"`
	Connections     *ConnectionTracking `json:"connections,omitempty"`
	CPU             *CPUOptions         `json:"cpu,omitempty"`
	Placement       *Placement          `json:"placement,omitempty"`
	Reservation     *ReservationTarget  `json:"reservation,omitempty"`
	TagSets         []TagSet            `json:"tagSets,omitempty"`
	Tags            map[string]string   `json:"tags,omitempty"`
	PrivateDNS      *PrivateDNSOptions  `json:"privateDns,omitempty"`
	// IPv6 gives an IPv6 address to every interface that carries IP, and counts
	// PrefixCount in IPv6 prefixes.
	IPv6 bool `json:"ipv6,omitempty"`
	// Market is how instances of the template are bought where their reservation is
	// no plain one: MarketCapacityBlock or MarketInterruptible.
	Market string `json:"market,omitempty"`
}

// Markets of a launch template, as EC2 spells them (InstanceMarketOptions).
const (
	MarketCapacityBlock = "capacity-block"
	MarketInterruptible = "interruptible-capacity-reservation"
)

// BlockDevice is one EBS volume that an instance starts with. Sizes are GiB.
type BlockDevice struct {
	Device              string `json:"device"`
	SizeGiB             int64  `json:"sizeGiB,omitempty"`
	Type                string `json:"type,omitempty"`
	IOPS                int64  `json:"iops,omitempty"`
	ThroughputMiBps     int64  `json:"throughputMiBps,omitempty"`
	Encrypted           *bool  `json:"encrypted,omitempty"`
	KMSKey              string `json:"kmsKey,omitempty"`
	Snapshot            string `json:"snapshot,omitempty"`
	DeleteOnTermination *bool  `json:"deleteOnTermination,omitempty"`
	InitializationRate  int32  `json:"initializationRate,omitempty"`
}

// Metadata is how the instance metadata service answers.
type Metadata struct {
	Endpoint string `json:"endpoint"`
	IPv6     string `json:"ipv6"`
	HopLimit int64  `json:"hopLimit"`
	Tokens   string `json:"tokens"`
	Tags     string `json:"tags,omitempty"`
}

// Kinds of network interfaces, as EC2 spells them. EFA-only interfaces carry no IP.
const (
	InterfaceEFA     = "efa"
	InterfaceEFAOnly = "efa-only"
)

// NetworkInterface is one network interface of an instance.
type NetworkInterface struct {
	Card   int32  `json:"card"`
	Device int32  `json:"device"`
	Kind   string `json:"kind"`
}

// ConnectionTracking is idle timeouts in seconds.
type ConnectionTracking struct {
	TCPEstablished *int32 `json:"tcpEstablished,omitempty"`
	UDPStream      *int32 `json:"udpStream,omitempty"`
	UDP            *int32 `json:"udp,omitempty"`
}

// CPUOptions is what the CPU allows ("enabled" or "disabled").
type CPUOptions struct {
	NestedVirtualization string `json:"nestedVirtualization,omitempty"`
}

// Placement is a placement group, and the tenancy of instances ("dedicated"; empty
// for the default).
type Placement struct {
	Group     string `json:"group,omitempty"`
	GroupID   string `json:"groupId,omitempty"`
	Partition int32  `json:"partition,omitempty"`
	Tenancy   string `json:"tenancy,omitempty"`
}

// ReservationTarget is the capacity reservation that an instance must run in.
type ReservationTarget struct {
	ID         string `json:"id,omitempty"`
	Preference string `json:"preference,omitempty"`
}

// PrivateDNSOptions is how the host name is made.
type PrivateDNSOptions struct {
	HostnameType string `json:"hostnameType,omitempty"`
}

// TemplateInfo is what Templates says of one launch template.
type TemplateInfo struct {
	Name    string
	Created time.Time
	Tags    map[string]string
}

// Capacity types, as the labels spell them.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
	Reserved = "reserved"
)

// Override is one way to fulfil a fleet: a type in a subnet. Priority orders
// prioritized strategies; the lowest is tried first.
type Override struct {
	InstanceType string   `json:"instanceType"`
	SubnetID     string   `json:"subnetId"`
	Zone         string   `json:"zone"`
	ImageID      string   `json:"imageId,omitempty"`
	Priority     *float64 `json:"priority,omitempty"`
}

// FleetConfig is one launch template with its overrides.
type FleetConfig struct {
	Template  string     `json:"template"`
	Overrides []Override `json:"overrides"`
}

// Targets of a fleet of CapacityType Reserved that takes from another kind of
// reservation than a plain one, which to a fleet is on-demand.
const (
	TargetCapacityBlock    = "capacity-block"
	TargetReservedCapacity = "reserved-capacity"
)

// FleetRequest is the whole of a CreateFleet call of type instant.
type FleetRequest struct {
	// Token is the ClientToken, at most 64 ASCII characters.
	Token        string `json:"token"`
	Count        int    `json:"count"`
	CapacityType string `json:"capacityType"`
	// Strategy is the allocation strategy ("lowest-price", "prioritized",
	// "price-capacity-optimized", "capacity-optimized-prioritized").
	Strategy string `json:"strategy"`
	// Target is one of the Targets, empty for what CapacityType says by itself.
	Target string `json:"target,omitempty"`
	// Context is a value that EC2 reserves, handed on as it is.
	Context string        `json:"context,omitempty"`
	Configs []FleetConfig `json:"configs"`
	TagSets []TagSet      `json:"tagSets,omitempty"`
}

// FleetResult is what a call gave: instances, errors inside the 200, or both.
type FleetResult struct {
	FleetID   string
	Instances []FleetInstances
	Errors    []FleetError
}

// FleetInstances is the instances that one override gave.
type FleetInstances struct {
	IDs          []string
	InstanceType string
	Zone         string
	SubnetID     string
	Template     string
	CapacityType string
}

// FleetError is why one override gave nothing.
type FleetError struct {
	Code, Message string
	InstanceType  string
	Zone          string
	SubnetID      string
	Template      string
}
