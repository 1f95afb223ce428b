package cloud

import "time"

const (
	// CallTimeout is the timeout of one call to EC2, including retries.
	CallTimeout = 4 * time.Minute
	// LaunchTimeout is the launcher's timeout for one message: a call, and time to report its result. The launcher
	// begins no expired message, so no instance is launched later than this after the expiry of the last request.
	LaunchTimeout = CallTimeout + 15*time.Second
)

// TagSet is the tags of one kind of resource at creation ("instance", "volume", "fleet", "network-interface",
// "spot-instances-request").
type TagSet struct {
	Resource string            `json:"resource"`
	Tags     map[string]string `json:"tags"`
}

// Template is a complete launch template. Its name derives from the content.
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
	// Enclaves allows Nitro Enclaves in instances.
	Enclaves    bool               `json:"enclaves,omitempty"`
	Placement   *Placement         `json:"placement,omitempty"`
	Reservation *ReservationTarget `json:"reservation,omitempty"`
	TagSets     []TagSet           `json:"tagSets,omitempty"`
	Tags        map[string]string  `json:"tags,omitempty"`
	PrivateDNS  *PrivateDNSOptions `json:"privateDns,omitempty"`
	// IPv6 gives an IPv6 address to every interface with IP, and makes PrefixCount count IPv6 prefixes.
	IPv6 bool `json:"ipv6,omitempty"`
	// Market is the purchase option of instances in a capacity block or an interruptible reservation:
	// MarketCapacityBlock or MarketInterruptible.
	Market string `json:"market,omitempty"`
}

// Markets of a launch template, in EC2's spelling (InstanceMarketOptions).
const (
	MarketCapacityBlock = "capacity-block"
	MarketInterruptible = "interruptible-capacity-reservation"
)

// BlockDevice is one EBS volume of a new instance.
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

// Metadata configures the instance metadata service.
type Metadata struct {
	Endpoint string `json:"endpoint"`
	IPv6     string `json:"ipv6"`
	HopLimit int64  `json:"hopLimit"`
	Tokens   string `json:"tokens"`
	Tags     string `json:"tags,omitempty"`
}

// Kinds of network interfaces, in EC2's spelling. EFA-only interfaces have no IP.
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

// ConnectionTracking has idle timeouts in seconds.
type ConnectionTracking struct {
	TCPEstablished *int32 `json:"tcpEstablished,omitempty"`
	UDPStream      *int32 `json:"udpStream,omitempty"`
	UDP            *int32 `json:"udp,omitempty"`
}

// CPUOptions has CPU settings ("enabled" or "disabled").
type CPUOptions struct {
	NestedVirtualization string `json:"nestedVirtualization,omitempty"`
}

// Placement is a placement group, and the tenancy of instances ("dedicated"; empty means the default).
type Placement struct {
	Group     string `json:"group,omitempty"`
	GroupID   string `json:"groupId,omitempty"`
	Partition int32  `json:"partition,omitempty"`
	Tenancy   string `json:"tenancy,omitempty"`
}

// ReservationTarget is the capacity reservation of an instance.
type ReservationTarget struct {
	ID         string `json:"id,omitempty"`
	Preference string `json:"preference,omitempty"`
}

// PrivateDNSOptions configures the host name.
type PrivateDNSOptions struct {
	HostnameType string `json:"hostnameType,omitempty"`
}

// TemplateInfo describes one launch template in Templates.
type TemplateInfo struct {
	Name    string
	Created time.Time
	Tags    map[string]string
}

// Capacity types, as in the labels.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
	Reserved = "reserved"
)

// Override is one option of a fleet: a type in a subnet. Prioritized strategies try the lowest Priority first.
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

// Targets of a fleet of CapacityType Reserved in a capacity block or an interruptible reservation. A default
// reservation needs none: to a fleet it is on-demand.
const (
	TargetCapacityBlock    = "capacity-block"
	TargetReservedCapacity = "reserved-capacity"
)

// FleetRequest is a complete CreateFleet call of type instant.
type FleetRequest struct {
	// Token is the ClientToken, at most 64 ASCII characters.
	Token        string `json:"token"`
	Count        int    `json:"count"`
	CapacityType string `json:"capacityType"`
	// Strategy is the allocation strategy ("lowest-price", "prioritized",
	// "price-capacity-optimized", "capacity-optimized-prioritized").
	Strategy string `json:"strategy"`
	// Target is one of the Targets, or empty for CapacityType's default.
	Target string `json:"target,omitempty"`
	// Context is a value that EC2 reserves; it is passed on unchanged.
	Context string        `json:"context,omitempty"`
	Configs []FleetConfig `json:"configs"`
	TagSets []TagSet      `json:"tagSets,omitempty"`
}

// FleetResult is the result of a call: instances, errors in a 200 response, or both.
type FleetResult struct {
	FleetID   string
	Instances []FleetInstances
	Errors    []FleetError
}

// FleetInstances are the instances from one override.
type FleetInstances struct {
	IDs          []string
	InstanceType string
	Zone         string
	SubnetID     string
	Template     string
	CapacityType string
}

// FleetError is why one override launched no instances.
type FleetError struct {
	Code, Message string
	InstanceType  string
	Zone          string
	SubnetID      string
	Template      string
}
