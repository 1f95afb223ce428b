// Package cloud is Joist's word for EC2 and the AWS calls beside it (SSM, IAM,
// EKS): small types, and small interfaces by who may call what.
//
// The split of the interfaces is the split of rights: the launcher writes
// (Launcher, Profiles), the catalog and interruption read (the others). The
// invariants that cloudtest proves of every implementation:
//
//   - CreateFleet with a ClientToken that EC2 has seen gives the first answer
//     again, failures included; the same token with another body is
//     fault.Conflict and says nothing about a launch.
//   - A fleet call may give some of what it was asked for, with errors inside.
//   - What was just created may be absent from a Describe for a while.
//   - Terminating twice is terminating once.
//
// Errors: fault.Throttled when nothing was done because of rate; fault.Denied;
// fault.Invalid for a request that EC2 refuses; fault.Missing for names that do
// not exist; fault.Unknown when a write may or may not have happened.
package cloud

import (
	"context"
	"strings"
	"time"
)

// State is the state of an instance, as EC2 spells it.
type State string

// The states of an instance.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Stopping     State = "stopping"
	Stopped      State = "stopped"
	Terminated   State = "terminated"
)

// Gone reports whether the instance no longer exists for good.
func (s State) Gone() bool { return s == Terminated }

// Instance is what Describe says of one instance.
type Instance struct {
	ID           string    `json:"id"`
	Type         string    `json:"type"`
	Zone         string    `json:"zone"`
	CapacityType string    `json:"capacityType"`
	State        State     `json:"state"`
	ImageID      string    `json:"imageId,omitempty"`
	SubnetID     string    `json:"subnetId,omitempty"`
	PrivateDNS   string    `json:"privateDns,omitempty"`
	Launched     time.Time `json:"launched"`
	// Profile is the name of the instance profile that it runs with.
	Profile string `json:"profile,omitempty"`
	// Partition is the one of its placement group that it is in, from 1; 0 for an
	// instance that is in none.
	Partition int32 `json:"partition,omitempty"`
	// PlacementGroup and PlacementGroupID are the group's name and id.
	PlacementGroup   string `json:"placementGroup,omitempty"`
	PlacementGroupID string `json:"placementGroupId,omitempty"`
	// SecurityGroups are the ids of those of its first network interface.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// Reservation is the id of the capacity reservation that it runs in.
	Reservation string            `json:"reservation,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

// InstanceFilter selects instances; empty fields select all. Tags are ANDed; a
// tag with an empty value means that the key is present.
type InstanceFilter struct {
	IDs    []string
	Tags   map[string]string
	States []State
}

// Instances reads instances.
type Instances interface {
	// DescribeInstances reads all pages. An id that EC2 does not know is left
	// out rather than failing the others.
	DescribeInstances(ctx context.Context, filter InstanceFilter) ([]Instance, error)
}

// Launcher writes instances and launch templates.
type Launcher interface {
	Instances
	// EnsureTemplate creates the launch template unless one of that name is
	// there; names are derived from content, so one that is there is the same.
	EnsureTemplate(ctx context.Context, template Template) error
	// Templates lists the launch templates that carry all of the tags.
	Templates(ctx context.Context, tags map[string]string) ([]TemplateInfo, error)
	// DeleteTemplate removes a template; one that is gone already is no error.
	DeleteTemplate(ctx context.Context, name string) error
	// CreateFleet asks for instances at once (type instant).
	CreateFleet(ctx context.Context, request FleetRequest) (FleetResult, error)
	// Terminate ends instances. Ids that EC2 no longer knows are ignored. EC2 may
	// end some of them or none where it refuses one for another reason, such as
	// termination protection: whoever batches asks again one by one.
	Terminate(ctx context.Context, ids []string) error
	// Tag sets tags on instances.
	Tag(ctx context.Context, ids []string, tags map[string]string) error
}

// Network reads subnets and security groups.
type Network interface {
	DescribeSubnets(ctx context.Context, selectors []Selector) ([]Subnet, error)
	DescribeSecurityGroups(ctx context.Context, selectors []Selector) ([]SecurityGroup, error)
}

// Images reads AMIs and the parameters that name them.
type Images interface {
	// DescribeImages reads AMIs that any selector finds.
	DescribeImages(ctx context.Context, selectors []Selector) ([]Image, error)
	// Parameter reads one SSM parameter; fault.Missing when there is none.
	Parameter(ctx context.Context, name string) (string, error)
}

// Clusters reads EKS.
type Clusters interface {
	// DescribeCluster reads how nodes join a cluster.
	DescribeCluster(ctx context.Context, name string) (ClusterInfo, error)
}

// Profiles reads and writes IAM instance profiles.
type Profiles interface {
	// Profile reads one; fault.Missing when there is none.
	Profile(ctx context.Context, name string) (Profile, error)
	// ListProfiles lists those below a path. IAM leaves their tags out.
	ListProfiles(ctx context.Context, path string) ([]Profile, error)
	// TagProfile sets tags beside those that are there.
	TagProfile(ctx context.Context, name string, tags map[string]string) error
	// EnsureProfile makes sure that the profile exists with the tags and holds
	// exactly the role.
	EnsureProfile(ctx context.Context, profile Profile) error
	// DeleteProfile removes it; one that is gone already is no error.
	DeleteProfile(ctx context.Context, name string) error
}

// Statuses reads instance status checks and scheduled events.
type Statuses interface {
	DescribeStatus(ctx context.Context) ([]Status, error)
}

// Selector is one term that finds resources: fields are ANDed, selectors ORed.
// Values of tags, and Name, may hold the wildcards * and ?. A selector that says
// nothing finds nothing.
type Selector struct {
	// Any finds everything there is, whatever the other fields say.
	Any   bool
	ID    string
	Name  string
	Owner string
	Tags  map[string]string
}

// Subnet is one subnet.
type Subnet struct {
	ID, Zone, ZoneID, VPC string
	FreeIPs               int
	Tags                  map[string]string
}

// SecurityGroup is one security group.
type SecurityGroup struct {
	ID, Name string
	Tags     map[string]string
}

// Image is one AMI.
type Image struct {
	ID, Name, Owner string
	// Arch is Kubernetes' word: amd64 or arm64.
	Arch       string
	Created    time.Time
	Deprecated bool
	Tags       map[string]string
}

// ClusterInfo is what a node needs to know of its cluster.
type ClusterInfo struct {
	Name, ARN, Endpoint string
	// CABundle is the base64 of the PEM certificates.
	CABundle    string
	ServiceCIDR string
	Version     string
}

// Profile is an IAM instance profile.
type Profile struct {
	Name, Path string
	// Role is a name, or where it is wanted also a name behind a path, which IAM
	// does not take and which is cut off.
	Role string
	Tags map[string]string
	// Created is not read where a profile is wanted.
	Created time.Time
}

// RoleName is the name of a role without its path.
func RoleName(role string) string { return role[strings.LastIndex(role, "/")+1:] }

// Status is what the instance's status checks say.
type Status struct {
	InstanceID string
	// Impaired is since when the instance or the system check fails; zero when
	// neither does.
	Impaired time.Time
	// Undated says that one fails of which EC2 does not say since when.
	Undated bool
	// Events are the codes of scheduled events that are not yet done.
	Events []ScheduledEvent
}

// ScheduledEvent is a maintenance that AWS has planned.
type ScheduledEvent struct {
	Code      string
	NotBefore time.Time
}
